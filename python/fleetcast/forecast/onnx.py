"""Models: ONNX files, checked against the features of this version.

The metadata of a model of raw values has the number of values that it uses, its `context`.
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

# The packages of onnxruntime report the models they run to their maker, and keep an identifier of
# the machine in the user's home. This variable prevents both if it is set before they are loaded.
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
"""Batches are padded to a multiple: kernels for a few rows add up in another order.

Example: 5 rows become 16.
"""


@dataclass(frozen=True)
class Metadata:
    """Metadata in a model file. `sha256` is of the file, `training_data` of its data.

    `context` is the number of values that a model of raw values uses, `None` for a model of
    features.
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
    """A loaded model. Threads may share it, processes across a fork may not."""

    def __init__(self, content: bytes, family: Family, view: FeatureView) -> None:
        """Loads a model. Raises `OperatorError` if `content` does not fit the family or view."""
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
            # onnxruntime's exceptions have no narrower common base. Their messages name lines of
            # its source.
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
        """Quantiles as in `quantiles`, of raw values [rows, `context`], NaN if missing.

        The model may be foreign, so its answers are sorted and raised to `floor`.
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

        Quantiles are in the target's unit. A row's answer does not depend on other rows.
        """
        rows = len(matrix)
        fill = -rows % _ROWS_MULTIPLE
        batch = np.concatenate([matrix, np.zeros((fill, matrix.shape[1]))])
        (answer,) = self._session.run([OUTPUT], {INPUT: batch})
        result: Floats = answer[:rows]
        return result


def context_view_id(family: Family, steps: int) -> str:
    """The id for `steps` raw values, in place of a feature view's. Example: `snr-context-512`."""
    return f"{family.name}-context-{steps}"


def shipped(family: Family) -> bytes:
    """The model file of this version."""
    return (files("fleetcast.forecast") / "models" / f"{family.name}.onnx").read_bytes()
