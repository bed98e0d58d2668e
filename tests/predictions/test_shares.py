"""N6, N7: what forecasts keep is bounded by tenant and in all, and ends."""

from __future__ import annotations

import time

import pytest

from fleetcast.config.sections import Forecast
from fleetcast.engine import Plane, encode_records
from fleetcast.forecast.serving.clock import NS_PER_SECOND
from fleetcast.forecast.serving.embedded import EmbeddedPredictions
from fleetcast.forecast.serving.filling import VALUE_BYTES_MAX
from fleetcast.forecast.serving.records import LEASE_NS
from fleetcast.forecast.serving.releases import Releases
from fleetcast.forecast.serving.scoring import Scoring
from fleetcast.forecast.serving.sweeping import Sweeping
from fleetcast.forecast.serving.tables import QUOTAS, Quota, due
from fleetcast.metrics import Counters

from .conftest import pool_rows
from .serving import MINUTE_NS, answer, codes, counted, kept, serving, write

LINKS = [f"link-{number}" for number in range(100)]
UNKEPT = "fleetcast_forecast_unkept_total"
UNSCORED = "fleetcast_forecast_unscored_total"


@pytest.fixture
def counters():
    return Counters.alone()


@pytest.fixture
def small(tmp_path, clock):
    """A store with the shares a test asks for, and what answers from it."""
    stores = []

    def make(counters=None, **shares):
        store = EmbeddedPredictions(tmp_path / "small", bytes(32), {**QUOTAS, **shares})
        stores.append(store)
        store.ensure()
        releases = Releases(store, clock)
        releases.promote("snr")
        return store, serving(store, releases, Forecast, counters)

    yield make
    for store in stores:
        store.close()


def used(store, table, account):
    with store.read() as records:
        return int.from_bytes(records.get("shares", f"{table}/{account}".encode()) or b"", "big")


def length(store, table):
    with store.read() as records:
        return sum(len(key) + len(value) for key, value in records.under(table, b""))


def sweep(store, clock, settings=Forecast):
    sweeping = Sweeping(store, clock, settings)
    while sweeping.sweep():
        pass


def test_n7_ten_thousand_unknown_entities_leave_nothing(store, releases, plane, tmp_path):
    write(plane, ["known"], range(-20, 0))
    predictions = serving(store, releases, Forecast)
    assert answer(predictions, plane, "known")["items"]
    before, file = kept(store), tmp_path / "forecast" / "store" / "data.mdb"
    bytes_before = file.read_bytes()
    for first in range(0, 10_000, 100):
        asked = [f"unknown-{number}" for number in range(first, first + 100)]
        assert set(codes(answer(predictions, plane, *asked)).values()) == {"no_telemetry"}
    assert kept(store) == before == {"values": 1, "pending": 4}
    assert file.read_bytes() == bytes_before, "not even a transaction"


def test_n7_entities_with_too_little_telemetry_leave_nothing(store, releases, plane):
    write(plane, ["old"], range(-90, -60))
    write(plane, ["short"], range(-3, 0))
    predictions = serving(store, releases, Forecast)
    document = answer(predictions, plane, "old", "short")
    assert codes(document) == {"old": "no_telemetry", "short": "insufficient_telemetry"}
    assert kept(store) == {}


def test_a_batch_is_one_open_score_for_each_horizon(store, releases, plane):
    write(plane, LINKS, range(-20, 0))
    assert len(answer(serving(store, releases, Forecast), plane, *LINKS)["items"]) == 400
    assert kept(store) == {"values": 100, "pending": 4}
    assert length(store, "pending") < 400 * 120
    assert length(store, "values") < 100 * 900
    for table in ("values", "pending"):
        assert used(store, table, "account") == length(store, table)


def test_n6_a_tenant_over_its_share_is_answered_and_others_are_kept(small, plane, counters):
    """Thirteen values fit; the others are computed again with each request."""
    store, predictions = small(counters, values=Quota(9_000, 1 << 20))
    write(plane, LINKS, range(-20, 0))
    assert len(answer(predictions, plane, *LINKS, horizon=5)["items"]) == 100
    fit = kept(store)["values"]
    assert 10 <= fit <= 14
    assert counted(counters, UNKEPT) == 100 - fit
    assert used(store, "values", "account") == length(store, "values") <= 9_000
    answer(predictions, plane, "link-1", account="other")
    assert kept(store)["values"] == fit + 1
    first, again = (answer(predictions, plane, *LINKS, horizon=5)["items"] for _ in range(2))
    same = [a["link_id"] for a, b in zip(first, again, strict=True) if a == b]
    assert len(same) == fit


def test_n6_all_tenants_together_have_a_bound(small, plane):
    store, predictions = small(values=Quota(9_000, 18_000))
    write(plane, LINKS, range(-20, 0))
    for account in ("a", "b", "c", "d"):
        assert len(answer(predictions, plane, *LINKS, horizon=5, account=account)["items"]) == 100
    assert length(store, "values") <= 18_000
    assert used(store, "values", "d") == 0


def test_n6_open_scores_beyond_the_share_are_dropped_and_counted(small, plane, counters, clock):
    store, predictions = small(counters, pending=Quota(20_000, 1 << 20))
    write(plane, LINKS, range(-20, 0))
    assert len(answer(predictions, plane, *LINKS)["items"]) == 400
    fit = kept(store)["pending"]
    assert 0 < fit < 4
    assert counted(counters, UNSCORED) == 100 * (4 - fit)
    assert answer(predictions, plane, "link-1", account="other")["items"]
    assert kept(store)["pending"] == fit + 4
    write(plane, LINKS, range(100))
    clock.advance(200 * MINUTE_NS)
    scoring = Scoring(store, lambda _account: plane, counters)
    assert scoring.score(clock.now_ns()) == 100 * fit + 4
    assert counted(counters, "fleetcast_forecast_scored_total") == 100 * fit + 4
    assert used(store, "pending", "account") == 0


def test_a_value_longer_than_most_is_answered_and_not_kept(store, clock, counters):
    """The tags of a pool may be as long as a record."""
    releases = Releases(store, clock)
    releases.promote("demand")
    plane = Plane.in_memory("acme")
    clock.step(time.time_ns() - clock.now_ns())
    rows = list(pool_rows("pool"))
    rows[0]["tags"]["note"] = "x" * VALUE_BYTES_MAX
    plane.write_json(encode_records(rows))
    predictions = serving(store, releases, Forecast, counters)
    (item, *_) = answer(predictions, plane, "pool", family="demand")["items"]
    assert len(item["demand"]["pool_tags"]["note"]) == VALUE_BYTES_MAX
    assert "values" not in kept(store)
    assert counted(counters, UNKEPT) == 1


def test_what_has_ended_is_swept_away_and_counts_no_more(store, releases, plane, clock):
    write(plane, LINKS, range(-20, 0))
    predictions = serving(store, releases, Forecast)
    answer(predictions, plane, *LINKS)
    with store.write() as records:
        records.keep("cooldowns", b"account/snr/failed", clock.stamped(b""))
        records.put("leases", b"account/snr/killed", clock.stamped(b"{}"))
    clock.advance(LEASE_NS - 1)
    sweep(store, clock)
    assert kept(store) == {"leases": 1, "cooldowns": 1, "values": 100, "pending": 4}
    clock.advance(1)
    sweep(store, clock)
    assert kept(store) == {"cooldowns": 1, "values": 100, "pending": 4}
    clock.advance(60 * NS_PER_SECOND)
    sweep(store, clock)
    assert kept(store) == {"values": 100, "pending": 4}
    clock.advance(300 * NS_PER_SECOND)
    sweep(store, clock)
    assert kept(store) == {"pending": 4}
    assert used(store, "values", "account") == used(store, "cooldowns", "account") == 0


def test_a_large_table_is_swept_in_slices(store, clock):
    with store.write() as records:
        for number in range(2_500):
            records.keep("values", f"account/snr/{number:04}".encode(), clock.stamped(b"sealed"))
    clock.advance(200 * NS_PER_SECOND)
    with store.write() as records:
        records.keep("values", b"account/snr/1234", clock.stamped(b"renewed"))
    clock.advance(100 * NS_PER_SECOND)
    sweep(store, clock)
    assert kept(store) == {"values": 1}
    with store.read() as records:
        assert used(store, "values", "account") == length(store, "values")


def test_open_scores_of_a_clock_far_ahead_are_given_up(store, releases, plane, clock, counters):
    """They would take up the tenant's share until that year."""
    write(plane, ["a"], range(-20, 0))
    predictions = serving(store, releases, Forecast)
    answer(predictions, plane, "a")
    scoring = Scoring(store, lambda _account: plane, counters)
    with store.write() as records:
        ahead = due(clock.now_ns() + 365 * 1440 * MINUTE_NS)
        assert records.keep("pending", ahead + b"account/snr/x", (7).to_bytes(4, "big"))
    assert scoring.score(clock.now_ns()) == 0
    assert kept(store) == {"values": 1, "pending": 4}
    assert counted(counters, UNSCORED) == 7


def test_a_deleted_tenant_leaves_nothing_and_others_everything(store, releases, plane):
    write(plane, LINKS, range(-20, 0))
    predictions = serving(store, releases, Forecast)
    for account in ("gone", "stays"):
        answer(predictions, plane, *LINKS, account=account)
    with store.write() as records:
        records.keep("cooldowns", b"gone/snr/x", bytes(24))
        records.keep("series", b"gone/demand/x", bytes(24))
        records.put("leases", b"gone/snr/x", bytes(24))
    store.forget("gone")
    assert kept(store) == {"values": 100, "pending": 4}
    assert [used(store, table, "gone") for table in QUOTAS] == [0] * len(QUOTAS)
    assert used(store, "values", "stays") == length(store, "values")
