import numpy as np
import pytest

from fleetcast.forecast.families import FAMILIES
from fleetcast.forecast.model import Forecaster
from fleetcast.forecast.rows import Rows

MINUTE = 60_000_000_000
WINDOW = 15 * MINUTE
DAY = 1440 * MINUTE
NOON = 1_760_011_200_000_000_000
"""2025-10-09T12:00:00Z."""


def link(minutes, level=10.0, start=NOON):
    """A sample in each of these minutes, counted from `start`, as a wavy level in dB."""
    minutes = np.asarray(minutes)
    values = level + np.sin(minutes / 40) + 0.1 * (minutes % 3)
    return Rows(start + minutes * MINUTE + MINUTE // 3, {"snr_db": values})


def pool(windows, scale=1e6, start=NOON, per_window=1):
    """Intervals that fill these windows, counted from `start`, with a daily rhythm in bytes."""
    starts = np.asarray(windows) * WINDOW
    parts = np.arange(per_window) * (WINDOW // per_window)
    times = start + (starts[:, None] + parts).ravel()
    rhythm = 2 + np.sin((times % DAY) / DAY * 2 * np.pi) + ((times // WINDOW) % 7) / 20
    return Rows(times, {"offered_bytes": scale * rhythm / per_window})


@pytest.fixture(scope="session")
def forecasters():
    return {name: Forecaster(family) for name, family in FAMILIES.items()}
