"""A22, stage 0: slow and hostile clients harm nobody, and get the contract's answer."""

from __future__ import annotations

import threading

import pytest

from tests.conformance.api import raw

from .hostile import ATTACKS, FORMS, holding, refusal_of
from .service import running

CONNECTIONS = 200
ENTITIES = 3_500  # sixteen of these answers are less than a tenant may leave unread in one worker


@pytest.mark.parametrize("name", FORMS)
def test_a_hostile_form_is_refused_in_json_and_nothing_behind_it_is_read(service, name):
    form, expected = FORMS[name]
    assert refusal_of(service, form, service.key) == expected


def test_b4_what_the_parser_refuses_takes_nothing_from_the_rate_limit(tmp_path):
    with running(tmp_path / "data", "--set", "limits.requests_per_minute=1") as limited:
        for _ in range(4):
            with raw(limited) as client:
                head = b"POST /telemetry HTTP/1.1\r\nContent-Length: x\r\n\r\n"
                assert client.send(head).response().status == 400
        assert [limited.get("/health").status for _ in range(2)] == [200, 429]


@pytest.fixture(scope="module")
def large(service):
    """An answer that no socket buffer takes whole."""
    for first in range(0, ENTITIES, 500):
        records = [
            {
                "measurement": "link",
                "time": "2100-01-01",  # which is now, D11
                "tags": {"entity_id": f"hostile-{number}", "text": "x" * 200},
                "fields": {"text": "y" * 600},
            }
            for number in range(first, first + 500)
        ]
        assert service.post(records).status == 202
    assert len(service.get("/topology", freshness_seconds=604_800).body) > 3_000_000
    # A first read follows all that was written, which is no matter of those who hold connections.
    for one in service.each_worker():
        assert one.get("/topology", measurement="telemetry").status == 200


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("name", ATTACKS)
def test_a_healthy_client_is_answered_while_others_hold_connections(service, name):
    """More of them than all workers have threads; each keeps on sending, or reading, a little."""
    count = 16 if "reader" in name else CONNECTIONS
    connection = service.connect()
    with holding(service, name, count) as held:
        stop = threading.Event()

        def keep_on():
            while not stop.wait(0.05):
                if "slow reader" in name:
                    held.sip()
                elif "slow" in name:
                    held.trickle()

        attacker = threading.Thread(target=keep_on)
        attacker.start()
        try:
            for _ in range(20):
                wrote = service.post([], connection=connection)
                read = service.request(
                    "GET", "/topology?measurement=telemetry", connection=connection
                )
                fresh = service.get("/health", key=None)
                assert (wrote.status, read.status, fresh.status) == (202, 200, 200)
            assert held.open_count() == count
        finally:
            stop.set()
            attacker.join()
            connection.close()
