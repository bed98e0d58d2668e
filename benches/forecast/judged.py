"""Models as judged: `fleetcast forecast train` wrote them without the days that are judged here."""

from __future__ import annotations

from pathlib import Path

from fleetcast.forecast.features import view
from fleetcast.forecast.model import Forecaster
from fleetcast.forecast.onnx import Model

FOLDER = Path(__file__).parent / "models"


def as_judged(family):
    """The model that was fitted by the split. The model that ships knows the judged days."""
    content = (FOLDER / f"{family.name}-judged.onnx").read_bytes()
    return Forecaster(family, Model(content, family, view(family)))
