"""Faults below the forecasts of the console are told to the log, not to its client."""

import logging
from types import SimpleNamespace

import pytest

from fleetcast.console.answers import ConsoleRefused
from fleetcast.console.query import ConsoleQuery
from fleetcast.console.views import forecasts as view
from fleetcast.errors import OperatorError
from fleetcast.forecast.serving.store import PredictionStoreUnavailable


@pytest.mark.parametrize("kind", [OperatorError, OSError, PredictionStoreUnavailable])
def test_a_store_or_release_that_fails_is_told_in_our_words(monkeypatch, caplog, kind):
    def read_plane(*_):
        raise kind("/var/lib/fleetcast: mdb_get: MDB_CORRUPTED")

    monkeypatch.setattr(view, "read_plane", read_plane)
    services = SimpleNamespace(hindsight=lambda: None)
    with caplog.at_level(logging.ERROR), pytest.raises(ConsoleRefused) as caught:
        view.forecasts(services, "acme", ConsoleQuery("entity_id=a"))
    answer = caught.value.answer
    assert b"cannot be used now; the log says why" in b"".join(map(bytes, answer.body))
    assert b"mdb_" not in b"".join(map(bytes, answer.body))
    assert "MDB_CORRUPTED" in caplog.text
