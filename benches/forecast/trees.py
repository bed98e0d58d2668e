"""The challenger: gradient-boosted trees (LightGBM) on the same samples, a model per horizon and
quantile, shifted on the calibration period; and what they weigh as ONNX.
"""

from __future__ import annotations

import time

import lightgbm
import numpy as np
import onnxruntime
from onnxmltools import convert_lightgbm
from onnxmltools.convert.common.data_types import FloatTensorType

from fleetcast.forecast.families import DEMAND
from fleetcast.forecast.training.learn import lesson_of

ROWS_MAX = 40_000
ROUNDS = 150
SETTINGS = {
    "objective": "quantile",
    "learning_rate": 0.07,
    "num_leaves": 31,
    "min_data_in_leaf": 100,
    "feature_fraction": 0.6,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "verbosity": -1,
    "num_threads": 1,
    "seed": 0,
    "deterministic": True,
}
BATCH = 100


class Trees:
    """Boosters by horizon and quantile; predicts in the target's unit."""

    def __init__(self, family, material, scale):
        self.family, self._scale = family, scale
        lesson = lesson_of(family, material.learn)
        chosen = np.random.default_rng(0).permutation(len(lesson.inputs))[:ROWS_MAX]
        held = lesson_of(family, material.calibrate)
        self._boosters, self._shift = [], np.zeros((4, 3))
        for h in range(4):
            row = []
            for q, level in enumerate(family.quantiles):
                use = chosen[~np.isnan(lesson.truth[chosen, h])]
                data = lightgbm.Dataset(
                    lesson.inputs[use],
                    self._from_truth(lesson.truth[use, h]),
                    weight=np.maximum(lesson.weight[use, h], 1e-6),
                )
                booster = lightgbm.train({**SETTINGS, "alpha": level}, data, ROUNDS)
                known = ~np.isnan(held.truth[:, h])
                miss = self._from_truth(held.truth[known, h]) - booster.predict(held.inputs[known])
                self._shift[h, q] = np.quantile(miss, level)
                row.append(booster)
            self._boosters.append(row)

    def _from_truth(self, truth):
        return np.log(np.maximum(truth, 1e-3)) if self.family is DEMAND else truth

    def quantiles(self, matrix):
        scale = self._scale(matrix)
        z = np.stack(
            [np.stack([b.predict(scale.inputs) for b in row], axis=-1) for row in self._boosters],
            axis=1,
        )
        z = np.sort(z + self._shift, axis=-1)
        link = np.exp(np.clip(z, -8, 8)) if self.family is DEMAND else z
        answer = scale.offset[..., None] + scale.unit[..., None] * link
        return np.maximum(answer, 0) if self.family is DEMAND else answer

    def as_onnx(self, inputs):
        """Bytes of all boosters as ONNX, and seconds for a batch of `BATCH` rows."""
        kind = [("x", FloatTensorType([None, inputs.shape[1]]))]
        size, sessions = 0, []
        for row in self._boosters:
            for booster in row:
                content = convert_lightgbm(booster, initial_types=kind).SerializeToString()
                size += len(content)
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = 1
                sessions.append(onnxruntime.InferenceSession(content, options))
        batch = inputs[:BATCH].astype(np.float32)
        taken = []
        for _ in range(30):
            start = time.perf_counter()
            for session in sessions:
                session.run(None, {"x": batch})
            taken.append(time.perf_counter() - start)
        return size, float(np.median(taken))
