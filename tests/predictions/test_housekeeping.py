"""Upkeep of forecasts beside the requests, and checks before libraries are loaded."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from fleetcast.accounts import ControlStore, Tenants
from fleetcast.composition.forecasting import forecasting
from fleetcast.config.sections import Forecast
from fleetcast.engine import Engine, encode_records
from fleetcast.forecast.serving.releases import Releases
from fleetcast.forecast.serving.tables import due
from fleetcast.maintenance.housekeeping import Housekeeping
from fleetcast.metrics import Counters
from tests.waiting import until

from .conftest import link_rows
from .serving import answer, counted, kept


@pytest.fixture
def tenant(tmp_path):
    """A tenant with a store of its own, and where both are found."""
    master_key = bytes(32)
    accounts = ControlStore.create(tmp_path / "control", master_key)
    engine = Engine(tmp_path / "planes", master_key)
    yield accounts, engine, Tenants(accounts, engine).create("acme")
    engine.close()
    accounts.close()


def test_forecasts_are_scored_and_cleared_away_beside_the_requests(tenant, store, monkeypatch):
    """By the maintenance process, which knows nothing of the requests."""
    monkeypatch.setattr("fleetcast.maintenance.housekeeping._ROUND_SECONDS", 0.01)
    accounts, engine, acme = tenant
    Releases(store).promote("snr")
    plane = engine.plane(acme.account_id, "acme")
    plane.write_json(encode_records(list(link_rows("a", 20))))
    counters = Counters.alone()
    predictions = forecasting(store, lambda: Forecast(fresh_seconds=1), counters)
    assert answer(predictions(), plane, "a", account=acme.account_id)["items"]
    with store.write() as records:  # as if it had been an hour ago
        pending = list(records.under("pending", b""))
        hour_ago_ns = time.time_ns() - 3_600 * 10**9
        for number, (key, value) in enumerate(pending):
            records.delete("pending", key)
            records.keep("pending", due(hour_ago_ns + number) + key[8:], value)
    work = Housekeeping(store, lambda: Forecast(fresh_seconds=1), accounts, engine, counters)
    with work.running():
        until(lambda: kept(store) == {})
    assert counted(counters, "fleetcast_forecast_unscored_total") == len(pending)


LOADS = """
import ctypes, json, sys
from pathlib import Path
from fleetcast.config.sections import Forecast
from fleetcast.engine import ForecastQuestion, Planes
from fleetcast.forecast.families import ANSWERED
from fleetcast.forecast.serving.embedded import EmbeddedPredictions
from fleetcast.metrics import Counters
from fleetcast.composition.forecasting import forecasting

library, key, taken = ctypes.CDLL(None), ctypes.c_uint(), []
while not library.pthread_key_create(ctypes.byref(key), None):
    taken.append(key.value)
for value in taken[:32]:
    library.pthread_key_delete(ctypes.c_uint(value))
stores, planes = Planes.in_directory(f"{sys.argv[1]}/planes"), []
for number in range(40):
    stores.create(str(number), bytes(32))
    planes.append(stores.open(str(number), bytes(32), f"tenant-{number}"))
store = EmbeddedPredictions(Path(sys.argv[1]), bytes(32))
predictions = forecasting(store, Forecast, Counters.alone())
asked = ForecastQuestion(ANSWERED["snr"], ["a"])
print(json.loads(predictions().answer(planes[0], "account", asked))["entity_errors"][0]["code"])
"""


def test_libraries_are_loaded_however_many_planes_are_open(store):
    """Polars and onnxruntime abort where no key for thread-local data is left.

    A process has 1,024, and each open plane took one: at 1,011 tenants the first forecast was the
    end of the worker. Loading takes eleven.
    """
    Releases(store).promote("snr")
    store.close()
    folder = str(store.models.folder.parent)
    ended = subprocess.run(
        [sys.executable, "-c", LOADS, folder], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "no_telemetry\n"), ended.stderr
