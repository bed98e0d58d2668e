"""Leases, roles and scores, with a clock that the test moves."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter

import pytest

from fleetcast.config.sections import Forecast
from fleetcast.engine import OpenScores, format_time
from fleetcast.errors import OperatorError
from fleetcast.forecast.families import SNR
from fleetcast.forecast.serving.records import LEASE_NS
from fleetcast.forecast.serving.releases import Releases
from fleetcast.forecast.serving.rollouts import Role
from fleetcast.forecast.serving.scoring import Scoring
from fleetcast.metrics import Counters, Totals
from tests.waiting import PATIENCE_SECONDS

from .serving import MINUTE_NS, MovedClock, answer, codes, kept, serving, write


class SlowReleases(Releases):
    """Loads its models only when it is let."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.asked, self.let = threading.Event(), threading.Event()

    def forecaster(self, family, release):
        self.asked.set()
        assert self.let.wait(PATIENCE_SECONDS)
        return super().forecaster(family, release)


@contextlib.contextmanager
def away(store):
    """No model can be loaded until the end of the block."""
    moved = store.models.folder.with_name("away")
    store.models.folder.rename(moved)
    yield
    moved.rename(store.models.folder)


@pytest.fixture
def slow(store, clock):
    return SlowReleases(store, clock)


class Request(threading.Thread):
    """An answer that somebody else waits for."""

    def __init__(self, predictions, plane, account="account"):
        super().__init__()
        self.predictions, self.plane, self.account = predictions, plane, account
        self.start()

    def run(self):
        self.document = answer(self.predictions, self.plane, "a", account=self.account)

    def result(self):
        self.join(PATIENCE_SECONDS)
        return self.document


def test_one_computes_while_others_are_told_to_come_back(store, releases, slow, plane):
    write(plane, ["a"], range(-20, 0))
    first = Request(serving(store, slow, Forecast), plane)
    assert slow.asked.wait(PATIENCE_SECONDS)
    others = serving(store, releases, Forecast)
    (error,) = answer(others, plane, "a")["entity_errors"]
    assert error["code"] == "prediction_unavailable"
    slow.let.set()
    items = first.result()["items"]
    assert len(items) == 4
    assert answer(others, plane, "a")["items"] == items


def test_others_compute_what_a_batch_under_way_leaves_out(store, releases, slow, plane):
    write(plane, ["a", "b"], range(-20, 0))
    first = Request(serving(store, slow, Forecast), plane)
    assert slow.asked.wait(PATIENCE_SECONDS)
    document = answer(serving(store, releases, Forecast), plane, "a", "b")
    assert codes(document) == {"a": "prediction_unavailable"}
    assert {item["link_id"] for item in document["items"]} == {"b"}
    slow.let.set()
    assert {item["link_id"] for item in first.result()["items"]} == {"a"}
    assert kept(store) == {"values": 2, "pending": 8}


def before_the_claim(monkeypatch, store, work):
    """Does `work` before the next change of the store, which is the claim of the next request."""
    change = store.write

    def late():
        monkeypatch.setattr(store, "write", change)
        work()
        return change()

    monkeypatch.setattr(store, "write", late)


@pytest.mark.parametrize("entities", [("a",), ("a", "b")])
def test_a_claim_after_another_batch_leaves_out_what_that_batch_computed(
    store, releases, plane, monkeypatch, entities
):
    """The request had looked for kept forecasts before the other batch wrote any."""
    write(plane, ["a", "b"], range(-20, 0))
    first, second = (serving(store, releases, Forecast) for _ in range(2))
    earlier = []
    before_the_claim(monkeypatch, store, lambda: earlier.extend(answer(first, plane, "a")["items"]))
    document = answer(second, plane, *entities)
    assert [item for item in document["items"] if item["link_id"] == "a"] == earlier
    assert {item["link_id"] for item in document["items"]} == {*entities}
    with store.read() as records:
        open_scores = [OpenScores.count(value) for _, value in records.under("pending", b"")]
    assert open_scores == [1] * 4 * len(entities), "each forecast is scored once"
    assert kept(store).keys() == {"values", "pending"}


def test_a_forecast_that_grows_old_while_others_are_computed_is_still_the_answer(
    store, releases, plane, clock, monkeypatch
):
    """It held when the request looked."""
    write(plane, ["a", "b"], range(-20, 0))
    predictions = serving(store, releases, Forecast)
    kept_item = answer(predictions, plane, "a", horizon=5)["items"]
    fresh_ns = Forecast().fresh_seconds * 1_000_000_000
    before_the_claim(monkeypatch, store, lambda: clock.advance(fresh_ns))
    document = answer(predictions, plane, "a", "b", horizon=5)
    assert [item["link_id"] for item in document["items"]] == ["a", "b"]
    assert document["items"][:1] == kept_item


def test_an_answer_under_an_ended_lease_is_thrown_away(store, releases, slow, plane, clock):
    write(plane, ["a"], range(-20, 0))
    first = Request(serving(store, slow, Forecast), plane)
    assert slow.asked.wait(PATIENCE_SECONDS)
    clock.advance(LEASE_NS)
    others = serving(store, releases, Forecast)
    items = answer(others, plane, "a")["items"]
    assert len(items) == 4, "the lease of a worker that hangs holds nobody up for ever"
    slow.let.set()
    late = first.result()
    assert late["items"] == []
    assert [each["code"] for each in late["entity_errors"]] == ["prediction_unavailable"]
    assert answer(others, plane, "a")["items"] == items


@pytest.mark.usefixtures("releases")
def test_requests_of_a_tenant_are_computed_one_after_the_other_and_once(
    slow, store, plane, monkeypatch
):
    """N6: in one process; the second finds what the first has made."""
    wait = "fleetcast.forecast.serving.computing.WAIT_SECONDS"
    monkeypatch.setattr(wait, PATIENCE_SECONDS)
    write(plane, ["a"], range(-20, 0))
    predictions = serving(store, slow, Forecast)
    requests = [Request(predictions, plane) for _ in range(3)]
    assert slow.asked.wait(PATIENCE_SECONDS)
    other = Request(predictions, plane, account="other")
    slow.let.set()
    documents = [request.result() for request in requests]
    assert documents[0]["items"]
    assert all(each["items"] == documents[0]["items"] for each in documents)
    assert other.result()["items"]
    assert kept(store) == {"values": 2, "pending": 8}


@pytest.mark.usefixtures("releases")
def test_a_tenant_that_waits_too_long_is_told_and_holds_up_nobody(slow, store, plane, monkeypatch):
    """N6: its requests do not take all threads for as long as the first one computes."""
    monkeypatch.setattr("fleetcast.forecast.serving.computing.WAIT_SECONDS", 0.05)
    write(plane, ["a"], range(-20, 0))
    predictions = serving(store, slow, Forecast)
    first = Request(predictions, plane)
    assert slow.asked.wait(PATIENCE_SECONDS)
    assert codes(answer(predictions, plane, "a")) == {"a": "prediction_unavailable"}
    slow.let.set()
    assert first.result()["items"]


@pytest.mark.parametrize("step_minutes", [-600, 600])
def test_a_clock_that_is_set_changes_no_lease_cooldown_or_freshness(
    slow, store, releases, plane, clock, step_minutes
):
    """A lease by the wall clock would last for ten hours, or have ended."""
    write(plane, ["a"], range(-20, 10))
    write(plane, ["a"], range(step_minutes - 20, step_minutes))
    first = Request(serving(store, slow, Forecast), plane)
    assert slow.asked.wait(PATIENCE_SECONDS)
    clock.step(step_minutes * MINUTE_NS)
    others = serving(store, releases, lambda: Forecast(cooldown_seconds=60))
    assert codes(answer(others, plane, "a")) == {"a": "prediction_unavailable"}
    clock.advance(LEASE_NS)
    items = answer(others, plane, "a")["items"]
    assert items
    slow.let.set()
    assert first.result()["items"] == []

    clock.step(-step_minutes * MINUTE_NS)
    clock.advance(300_000_000_000)
    with away(store):
        assert answer(serving(store, Releases(store, clock), Forecast), plane, "a")["items"] == []
    clock.step(step_minutes * MINUTE_NS)
    (error,) = answer(others, plane, "a")["entity_errors"]
    assert "earlier" in error["message"]


def test_what_an_earlier_run_of_the_machine_wrote_has_ended(store, releases, plane):
    write(plane, ["a"], range(-20, 0))
    predictions = serving(store, releases, Forecast)
    first = answer(predictions, plane, "a")["items"]
    rebooted = MovedClock()
    rebooted.boot = bytes(16)
    anew = serving(store, Releases(store, rebooted), Forecast)
    second = answer(anew, plane, "a")["items"]
    assert second
    assert second[0]["lease_id"] != first[0]["lease_id"]


def test_a_failed_computation_cools_down(store, releases, plane, clock):
    write(plane, ["a"], range(-20, 0))
    predictions = serving(store, releases, lambda: Forecast(cooldown_seconds=30))
    with away(store):
        assert answer(predictions, plane, "a")["items"] == []
    clock.advance(30_000_000_000 - 1)
    (error,) = answer(predictions, plane, "a")["entity_errors"]
    assert error["code"] == "prediction_unavailable"
    assert "earlier" in error["message"]
    clock.advance(1)
    assert len(answer(predictions, plane, "a")["items"]) == 4


def test_a_value_is_served_while_it_is_fresh_and_about_the_future(store, releases, plane, clock):
    write(plane, ["a"], range(-20, 10))
    predictions = serving(store, releases, lambda: Forecast(fresh_seconds=3600))
    first = answer(predictions, plane, "a")["items"]
    clock.advance(4 * MINUTE_NS)
    assert answer(predictions, plane, "a")["items"] == first
    clock.advance(2 * MINUTE_NS)  # the target of five minutes has passed
    later = answer(predictions, plane, "a", horizon=15)["items"]
    assert later[0]["predicted_at"] == first[0]["predicted_at"]
    (renewed,) = answer(predictions, plane, "a", horizon=5)["items"]
    assert renewed["predicted_at"] == format_time(clock.wall_ns)


def test_a_canary_answers_for_its_share_and_keeps_its_entities(store, releases, plane):
    # Each goes its way by a key of the store: of 100 alone, it had more than 45 once in a while.
    entities = [f"link-{number}" for number in range(400)]
    write(plane, entities, range(-20, 0))
    predictions = serving(store, releases, lambda: Forecast(fill_budget=len(entities)))
    rollout = releases.promote("snr", role=Role.CANARY, canary_percent=30)
    document = answer(predictions, plane, *entities, horizon=5)
    roles = {item["link_id"]: item["traffic_role"] for item in document["items"]}
    assert len(roles) == 400
    assert 60 <= Counter(roles.values())["canary"] <= 180
    assert document["traffic_role"] is None  # I11
    assert document["model_release_id"] is None
    released = {item["traffic_role"]: item["model_release_id"] for item in document["items"]}
    assert released == {
        "primary": rollout.primary.release_id,
        "canary": rollout.canary.release_id,
    }
    releases.promote("snr", role=Role.CANARY, canary_percent=30)
    again = answer(predictions, plane, *entities, horizon=5)
    assert {item["link_id"]: item["traffic_role"] for item in again["items"]} == roles


def totals(counters, name):
    """By role and quantile, where the counter has one."""
    found = Counter()
    for series, value in Totals(counters.shared).all().items():
        if series.startswith(name):
            labels = dict(
                pair.split("=") for pair in series.partition("{")[2].rstrip("}").split(",")
            )
            key = tuple(json.loads(labels[k]) for k in ("traffic_role", "quantile") if k in labels)
            found[key] += value
    return found


def test_what_was_served_is_scored_when_the_truth_has_come(store, releases, plane, clock):
    write(plane, ["a"], range(-20, 0))
    releases.promote("snr", role=Role.SHADOW)
    predictions = serving(store, releases, Forecast)
    document = answer(predictions, plane, "a")
    assert {item["traffic_role"] for item in document["items"]} == {"primary"}
    counters = Counters.alone()
    scoring = Scoring(store, lambda _account: plane, counters)
    clock.advance(25 * MINUTE_NS)
    assert scoring.score(clock.wall_ns) == 0, "the truth may come late"
    truth = 11.25
    write(plane, ["a"], range(100), snr_db=truth)
    clock.advance(60 * MINUTE_NS)
    assert scoring.score(clock.wall_ns) == 8
    assert scoring.score(clock.wall_ns) == 0, "once each"
    assert totals(counters, "fleetcast_forecast_scored_total") == {("primary",): 4, ("shadow",): 4}
    covered, loss = Counter(), 0.0
    for item in document["items"]:
        for level, (name, value) in zip(SNR.quantiles, item["value"].items(), strict=True):
            covered[name.rpartition("_")[2]] += truth <= value
            loss += level * (truth - value) if truth > value else (1 - level) * (value - truth)
    counted = totals(counters, "fleetcast_forecast_covered_total")
    for name, count in covered.items():
        assert counted["primary", name] == counted["shadow", name] == count
    losses = totals(counters, "fleetcast_forecast_snr_loss_millidecibels_total")
    assert losses["primary",] == pytest.approx(loss * 1000, abs=4)


def test_open_scores_need_quantiles_at_each_horizon(plane):
    with pytest.raises(ValueError, match="each horizon"):
        OpenScores.seal(
            plane,
            issued_at_ns=0,
            horizons_minutes=SNR.horizons_minutes,
            model_version="snr-1",
            role=Role.PRIMARY,
            quantiles={"a": [[1.0, 2.0, 3.0]]},
        )


def test_a_forecast_whose_truth_never_came_is_not_scored(store, releases, plane, clock):
    write(plane, ["a"], range(-20, 0))
    answer(serving(store, releases, Forecast), plane, "a")
    counters = Counters.alone()
    clock.advance(200 * MINUTE_NS)
    assert Scoring(store, lambda _account: plane, counters).score(clock.wall_ns) == 4
    assert totals(counters, "fleetcast_forecast_scored_total") == {}


def test_o2_a_clock_that_jumped_gives_up_no_forecast(store, releases, plane, clock):
    """A moment of it, and every forecast went without its score."""
    write(plane, ["a"], range(-20, 0))
    answer(serving(store, releases, Forecast), plane, "a")
    counters = Counters.alone()
    scoring = Scoring(store, lambda _account: plane, counters)
    year_ns = 365 * 24 * 60 * MINUTE_NS
    for wrong_ns in (clock.wall_ns + year_ns, clock.wall_ns - year_ns):
        assert scoring.score(wrong_ns, is_clock_believed=False) == 0
    assert totals(counters, "fleetcast_forecast_unscored_total") == {}
    clock.advance(200 * MINUTE_NS)
    assert scoring.score(clock.wall_ns, is_clock_believed=False) == 4


def test_a_file_that_is_no_model_of_the_family_is_refused(store, releases, tmp_path):
    nonsense = tmp_path / "nonsense.onnx"
    nonsense.write_bytes(b"nonsense")
    with pytest.raises(OperatorError, match="not a model"):
        releases.promote("snr", nonsense)
    releases.promote("demand")
    (demand,) = (release for _, release in releases.all("demand")[-1].roles())
    with pytest.raises(OperatorError, match="family"):
        releases.promote("snr", store.models.folder / f"{demand.sha256}.onnx")
    assert len(releases.all("snr")) == 1


def test_a_canary_needs_a_primary_and_a_rollback_something_to_undo(store, clock):
    empty = Releases(store, clock)
    with pytest.raises(OperatorError, match="no primary"):
        empty.promote("snr", role=Role.CANARY)
    with pytest.raises(OperatorError, match="no release"):
        empty.rollback("snr")
