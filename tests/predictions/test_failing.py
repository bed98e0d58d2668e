"""Releases that fail: each answers for itself, and no lease stays behind."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import onnx
import pytest

from fleetcast.config.sections import Forecast
from fleetcast.errors import OperatorError
from fleetcast.forecast.families import SNR
from fleetcast.forecast.onnx import shipped
from fleetcast.forecast.serving.clock import NS_PER_SECOND
from fleetcast.forecast.serving.rollouts import Role
from fleetcast.metrics import Counters

from .serving import answer, codes, counted, kept, serving, write

if TYPE_CHECKING:
    from pathlib import Path

    from fleetcast.engine import Plane
    from fleetcast.forecast.serving.releases import Releases
    from fleetcast.forecast.serving.store import PredictionStore

    from .serving import MovedClock

LINKS = [f"link-{number}" for number in range(40)]
FAILED = "fleetcast_forecast_release_failed_total"


def another_version(content=None):
    """The model of this version under another name, which makes it another file."""
    model = onnx.load_from_string(content or shipped(SNR))
    props = {prop.key: prop.value for prop in model.metadata_props}
    onnx.helper.set_model_props(model, props | {"model_version": "another"})
    return model.SerializeToString()


def fails_at_run():
    """A model that loads, and looks for a row that no batch has."""
    model = onnx.load_from_string(another_version())
    graph = model.graph
    for node in graph.node:
        node.output[:] = ["inner" if name == "quantiles" else name for name in node.output]
    graph.initializer.append(onnx.helper.make_tensor("row", onnx.TensorProto.INT64, [1], [10**6]))
    graph.node.append(onnx.helper.make_node("Gather", ["inner", "row"], ["quantiles"], axis=0))
    return model.SerializeToString()


def cut_short(here, role):
    """A release whose file was damaged after it was promoted."""
    file = here.folder / "cut.onnx"
    file.write_bytes(another_version())
    rollout = here.releases.promote("snr", file, role, 50)
    release = dict(rollout.roles())[role]
    stored = here.store.models.folder / f"{release.sha256}.onnx"
    stored.write_bytes(stored.read_bytes()[:-100])
    return release


def broken_at_run(here, role):
    file = here.folder / "run.onnx"
    file.write_bytes(fails_at_run())
    return dict(here.releases.promote("snr", file, role, 50).roles())[role]


def answers_nothing():
    """A model whose every number is NaN."""
    model = onnx.load_from_string(another_version())
    graph = model.graph
    for node in graph.node:
        node.output[:] = ["inner" if name == "quantiles" else name for name in node.output]
    kind = graph.output[0].type.tensor_type.elem_type
    graph.initializer.append(onnx.helper.make_tensor("nan", kind, [1], [float("nan")]))
    graph.node.append(onnx.helper.make_node("Mul", ["inner", "nan"], ["quantiles"]))
    return model.SerializeToString()


KINDS = pytest.mark.parametrize("broken", [cut_short, broken_at_run])


@dataclass
class Here:
    """Everything that a request stands on."""

    store: PredictionStore
    releases: Releases
    plane: Plane
    clock: MovedClock
    folder: Path
    counters: Counters = field(default_factory=Counters.alone)

    def __post_init__(self):
        settings = Forecast(fresh_seconds=1)
        self.predictions = serving(self.store, self.releases, lambda: settings, self.counters)

    def answer(self, *entities, horizon=5):
        return answer(self.predictions, self.plane, *entities, horizon=horizon)


@pytest.fixture
def here(store, releases, plane, clock, tmp_path):
    return Here(store, releases, plane, clock, tmp_path)


@KINDS
@pytest.mark.parametrize("role", [Role.SHADOW, Role.CANARY])
def test_the_primary_answers_whatever_the_others_do(broken, role, here, caplog):
    """It was the end of the primary's answers, too."""
    write(here.plane, LINKS, range(-20, 0))
    release = broken(here, role)
    with caplog.at_level(logging.ERROR):
        document = here.answer(*LINKS)
        assert document["entity_errors"] == []
        assert document["traffic_role"] == "primary"
        assert [item["link_id"] for item in document["items"]] == LINKS
        assert kept(here.store) == {"values": 40, "pending": 4}
        assert counted(here.counters, FAILED) == 1
        (said,) = [record.getMessage() for record in caplog.records]
        assert release.release_id in said
        for seconds in (20, 20, 20):
            here.clock.advance(seconds * NS_PER_SECOND)
            assert len(here.answer(*LINKS)["items"]) == 40
        assert counted(here.counters, FAILED) == 4
        assert len(caplog.records) == 2, "once a minute"


def test_the_primary_answers_where_a_canary_has_no_number(here):
    write(here.plane, LINKS, range(-20, 0))
    file = here.folder / "nan.onnx"
    file.write_bytes(answers_nothing())
    rollout = here.releases.promote("snr", file, Role.CANARY, 50)
    document = here.answer(*LINKS)
    assert document["entity_errors"] == []
    assert document["model_release_id"] == rollout.primary.release_id
    assert len(document["items"]) == len(LINKS)


@KINDS
def test_a_primary_that_fails_leaves_the_canary_its_share_and_no_lease(broken, here):
    write(here.plane, LINKS, range(-20, 0))
    broken(here, Role.PRIMARY)
    here.releases.promote("snr", role=Role.CANARY, canary_percent=50)
    document = here.answer(*LINKS)
    assert document["traffic_role"] == "canary"
    failed = codes(document)
    assert 5 < len(failed) < 35
    assert set(failed.values()) == {"prediction_unavailable"}
    assert {item["link_id"] for item in document["items"]} == {*LINKS} - {*failed}
    assert kept(here.store) == {"values": 40 - len(failed), "pending": 4, "cooldowns": len(failed)}
    (again, *_) = here.answer(*failed)["entity_errors"]
    assert "earlier" in again["message"]
    here.releases.promote("snr")
    here.clock.advance(60 * NS_PER_SECOND)
    assert len(here.answer(*LINKS)["items"]) == 40


def test_a_release_that_was_mended_answers_at_once(here):
    """A file that does not load is tried again after ten seconds; its next release, right away."""
    write(here.plane, ["a", "b"], range(-20, 0))
    release = cut_short(here, Role.PRIMARY)
    assert codes(here.answer("a")) == {"a": "prediction_unavailable"}
    mended = here.releases.promote("snr", here.folder / "cut.onnx")
    assert mended.primary.sha256 == release.sha256
    (item, *_) = here.answer("b")["items"]
    assert item["model_release_id"] == mended.primary.release_id


def test_a_store_that_fails_under_a_batch_leaves_no_lease(here, monkeypatch):
    """The plane is closed between the claim and the write of the forecasts."""
    write(here.plane, ["a"], range(-20, 0))
    claimed = here.store.write

    @contextlib.contextmanager
    def closing():
        with claimed() as records:
            yield records
        here.plane.close()

    monkeypatch.setattr(here.store, "write", closing)
    assert codes(here.answer("a")) == {"a": "prediction_unavailable"}
    assert kept(here.store) == {"cooldowns": 1}
    assert counted(here.counters, "fleetcast_forecast_batch_failed_total") == 1


def test_numbers_too_large_to_reckon_with_fail_their_entity_alone(here):
    write(here.plane, ["sound"], range(-20, 0))
    write(here.plane, ["huge"], range(-20, 0), snr_db=1.7e308)
    document = here.answer("huge", "sound")
    assert codes(document) == {"huge": "prediction_unavailable"}
    assert [item["link_id"] for item in document["items"]] == ["sound"]


def test_a_release_without_its_file_says_so_in_our_words_each_time(here):
    release = here.releases.promote("snr").primary
    path = here.store.models.folder / f"{release.sha256}.onnx"
    path.unlink()
    with pytest.raises(FileNotFoundError):
        here.releases.forecaster(SNR, release)
    with pytest.raises(OperatorError) as caught:
        here.releases.forecaster(SNR, release)
    assert str(caught.value) == f"{path}: No such file or directory"
