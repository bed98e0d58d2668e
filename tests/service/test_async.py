"""Asynchronous mode (F1, F10): acknowledged from a bounded queue, durable a little later."""

from __future__ import annotations

import random

import pytest

from tests.conformance.api import HOUR_S, at, record, refusal
from tests.grpc import messages
from tests.grpc.station import Station
from tests.waiting import until

from .service import prepare, start

QUEUED = ("--set", "ingest.mode=async", "--grpc", "127.0.0.1:0")
NEVER = ("--set", "ingest.flush_interval_ms=60000")  # not while a test looks
SMALL = ("--set", "ingest.buffer_bytes_max=1048576")
FULL = {"error": "ingest_buffer_full", "retry_after_seconds": 1}
ROUNDS_MAX = 100


@pytest.fixture
def begin(tmp_path):
    """Starts the service on one data directory, as often as it is called."""
    data = tmp_path / "data"
    key = prepare(data)
    started = []

    def begin(*options):
        started.append(start(data, key, *options))
        return started[-1]

    yield begin
    for service in started:
        service.end()


def entities(service):
    answer = service.get("/topology", as_of_utc=at(3600), freshness_seconds=3600)
    assert answer.status == 200, answer.body
    return {entity["entity_id"] for entity in answer.json["entities"]}


def random_fields():
    """Numbers that nothing makes smaller."""
    return {f"f{number}": random.random() for number in range(64)}


def test_f1_queued_batches_are_durable_soon(begin):
    service = begin(*QUEUED)
    assert service.post([record(at(1), "early")]).status == 202
    until(lambda: entities(service) == {"early"})
    service.kill()
    assert entities(begin()) == {"early"}


def test_f1_queued_batches_are_stored_at_the_end(begin):
    service = begin(*QUEUED, *NEVER)
    for number in range(20):
        assert service.post([record(at(1), f"http-{number}")]).status == 202
    station = Station(service.ready)
    body = messages.encode(messages.record(HOUR_S * messages.SECOND_NS, "grpc"))
    assert station.write(body, service.key).status == "OK"
    station.close()
    assert entities(service) == set(), "acknowledged, and not stored yet"
    assert service.stop() == 0
    assert entities(begin()) == {"grpc", *(f"http-{number}" for number in range(20))}


def test_f10_a_full_queue_refuses_and_keeps_what_it_took(begin):  # stage 14
    service = begin(*QUEUED, *NEVER, *SMALL)
    acknowledged = set()
    for number in range(ROUNDS_MAX):
        answer = service.post([record(at(n), f"e{number}", **random_fields()) for n in range(300)])
        if answer.status != 202:
            break
        acknowledged.add(f"e{number}")
    assert refusal(answer) == (503, FULL)
    assert answer.headers["Retry-After"] == "1"
    assert acknowledged
    assert service.stop() == 0
    assert entities(begin()) == acknowledged


def test_f10_l6_the_same_over_grpc(begin):
    service = begin(*QUEUED, *NEVER, *SMALL)
    station = Station(service.ready)
    for number in range(ROUNDS_MAX):
        rows = (
            messages.record((HOUR_S + n) * messages.SECOND_NS, f"e{number}", fields=random_fields())
            for n in range(300)
        )
        outcome = station.write(messages.encode(*rows), service.key)
        if outcome.status != "OK":
            break
    station.close()
    assert outcome.refusal == ("RESOURCE_EXHAUSTED", "ingest_buffer_full")
    assert outcome.retry_seconds == 1
