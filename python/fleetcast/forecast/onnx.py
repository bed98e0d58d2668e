"""Models: ONNX files, checked against the features that this version feeds them.

A model of raw values has in its metadata how many of them it looks at, its `context`.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from fleetcast.errors import OperatorError

# Its packages send what they run to their makers, and keep an identifier of the machine in the
# user's home, unless this is there before they are loaded.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime

if TYPE_CHECKING:
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.features import FeatureView
    from fleetcast.forecast.rows import Floats

INPUT = "features"
CONTEXT = "context"
OUTPUT = "quantiles"
_CONTEXT_ROWS = 64
"""Rows that a model of raw values gets at once: such models may be large."""
_ROWS_MULTIPLE = 16
"""Batches are filled up to this: kernels for a few rows add up in another order."""


@dataclass(frozen=True)
class Metadata:
    """Metadata in a model file. `sha256` is of the file, `training_data` of its data.

    `context` is the number of values that a model of raw values looks at, `None` for features.
    """

    family: str
    model_version: str
    feature_view_id: str
    horizons_minutes: tuple[int, ...]
    quantiles: tuple[float, ...]
    training_data: str
    sha256: str
    context: int | None = None


class Model:
    """A loaded model; safe to share between threads, not across a fork."""

    def __init__(self, content: bytes, family: Family, view: FeatureView) -> None:
        """Raises `OperatorError` where `content` is no model of this family and feature view."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
            written = self._session.get_modelmeta().custom_metadata_map
            self.metadata = Metadata(
                family=written["family"],
                model_version=written["model_version"],
                feature_view_id=written["feature_view_id"]
                if CONTEXT not in written
                else context_view_id(family, int(written[CONTEXT])),
                horizons_minutes=tuple(json.loads(written["horizons_minutes"])),
                quantiles=tuple(json.loads(written["quantiles"])),
                training_data=written["training_data"],
                sha256=hashlib.sha256(content).hexdigest(),
                context=int(written[CONTEXT]) if CONTEXT in written else None,
            )
        except KeyError as error:
            message = f"not a model of fleetcast: its metadata lack {error}"
            raise OperatorError(message) from error
        except Exception as error:
            # onnxruntime's exceptions have no common base but this. Their words name lines of its
            # own source.
            message = (
                "not a model that can be loaded: it is no ONNX file, is cut short, or needs what"
                f" onnxruntime {onnxruntime.__version__} does not have"
            )
            raise OperatorError(message) from error
        self._floor = family.floor
        self._check(family, view)

    def _check(self, family: Family, view: FeatureView) -> None:
        meta = self.metadata
        view_id, name = view.id, INPUT
        if meta.context is not None:
            view_id, name = meta.feature_view_id, CONTEXT
            if not 0 < meta.context <= family.context_steps:
                message = (
                    f"model {meta.model_version} is refused: its context of {meta.context} values,"
                    f" at most {family.context_steps}"
                )
                raise OperatorError(message)
        for part, found, wanted in (
            ("family", meta.family, family.name),
            ("feature view", meta.feature_view_id, view_id),
            ("horizons", meta.horizons_minutes, family.horizons_minutes),
            ("quantiles", meta.quantiles, family.quantiles),
            ("inputs", [i.name for i in self._session.get_inputs()], [name]),
            ("outputs", [o.name for o in self._session.get_outputs()], [OUTPUT]),
        ):
            if found != wanted:
                message = f"model {meta.model_version} is refused: its {part} {found}, not {wanted}"
                raise OperatorError(message)

    def quantiles_of_context(self, values: Floats) -> Floats:
        """The same of raw values [rows, `context`], NaN where missing; sorted, none below `floor`.

        Such a model is somebody else's: what it says is put in order.
        """
        kind = np.float64 if "double" in self._session.get_inputs()[0].type else np.float32
        parts = [
            self._session.run(
                [OUTPUT], {CONTEXT: values[first : first + _CONTEXT_ROWS].astype(kind)}
            )
            for first in range(0, len(values), _CONTEXT_ROWS)
        ]
        answer = np.concatenate([part[0] for part in parts]).astype(np.float64)
        shape = (len(values), len(self.metadata.horizons_minutes), len(self.metadata.quantiles))
        result: Floats = np.maximum(np.sort(answer.reshape(shape), axis=-1), self._floor)
        return result

    def quantiles(self, matrix: Floats) -> Floats:
        """Quantiles [rows, horizons, quantiles], ascending, of a feature matrix [rows, features].

        They are in the target's unit. A row's answer does not depend on the others.
        """
        rows = len(matrix)
        fill = -rows % _ROWS_MULTIPLE
        batch = np.concatenate([matrix, np.zeros((fill, matrix.shape[1]))])
        (answer,) = self._session.run([OUTPUT], {INPUT: batch})
        result: Floats = answer[:rows]
        return result


def context_view_id(family: Family, steps: int) -> str:
    """The id of raw values, so many of them, in the place of a feature view's."""
    return f"{family.name}-context-{steps}"


def shipped(family: Family) -> bytes:
    """The file of the model that came with this version."""
    return (files("fleetcast.forecast") / "models" / f"{family.name}.onnx").read_bytes()
