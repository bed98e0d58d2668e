"""The bridge beside Debian's mosquitto: kill -9 of each part under load, and what it refuses."""

import json
import random
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing

import pytest

from fleetcast.client.times import time_ns
from tests.integrations.broker import (
    Broker,
    Device,
    MuffledBroker,
    Storing,
    TlsBroker,
    bridge,
    payload_of,
    row_of,
    topic_of,
)
from tests.integrations.programs import needs
from tests.waiting import until

pytestmark = needs("mosquitto")
MESSAGES = 2_000
ROUNDS = 3


class World:
    """All parts, running."""

    def __init__(self, folder, broker=Broker, **spool):
        self.folder = folder
        self.service = Storing(folder).start()
        self.broker = broker(folder).start()
        self.bridge = bridge(folder, self.broker, self.service, **spool).start()
        until(lambda: "SUBACK to bridge" in self.broker.text())
        self.device = Device(self.broker)

    def close(self):
        self.device.close()
        status = self.bridge.stop()
        self.broker.stop()
        self.service.running.stop()
        assert status == 0, self.bridge.text()[-3000:]

    def lines(self, event):
        lines = [json.loads(line) for line in self.bridge.text().splitlines()]
        return [line for line in lines if line["event"] == event]

    def kill_and_start(self, part):
        if part == "service":
            self.service.running.kill()
            self.service.start()
        else:
            killed = getattr(self, part)
            killed.kill()
            killed.start()


@pytest.fixture
def world(tmp_path, request):
    made = World(tmp_path, **getattr(request, "param", {}))
    yield made
    made.close()


def expected(numbers):
    return {row_of(number): 1 for number in numbers}


SPOOLED = {"acknowledge": "spooled"}


@pytest.mark.parametrize("world", [{}, SPOOLED], indirect=True, ids=["stored", "spooled"])
@pytest.mark.parametrize("part", ["bridge", "service", "broker"])
def test_killed_under_load_nothing_acknowledged_is_lost_and_nothing_is_twice(world, part):
    for round_number in range(ROUNDS):
        numbers = range(round_number * MESSAGES, (round_number + 1) * MESSAGES)
        loading = threading.Thread(target=world.device.publish, args=(numbers,))
        loading.start()
        some = random.Random(round_number).randrange(MESSAGES // 4)
        before = round_number * MESSAGES
        until(lambda least=before + some: world.service.count() > least)
        world.kill_and_start(part)
        loading.join()
    numbers = range(ROUNDS * MESSAGES)
    if part == "broker":
        # It may forget at kill -9 what it has answered to the device, but nothing that the bridge
        # has acknowledged is missing; what is missing is published once more.
        until(lambda: world.service.rows().keys() >= stored_by_now(world))
        world.device.publish(numbers)
    until(lambda: world.service.count() >= len(numbers))
    assert world.service.rows() == expected(numbers)


def stored_by_now(world):
    return {row_of(int(topic.split("/")[1][1:])) for topic in world.broker.acknowledged()}


def test_nothing_is_acknowledged_before_it_is_stored(world):
    world.service.running.kill()
    world.device.publish(range(50))
    until(lambda: world.lines("the service does not store"))
    assert world.broker.acknowledged() == set()
    world.service.start()
    until(lambda: world.broker.acknowledged() == set(map(topic_of, range(50))))
    assert world.service.rows() == expected(range(50))


@pytest.mark.parametrize("world", [SPOOLED], indirect=True)
def test_a_spool_takes_over_from_the_broker_while_the_service_is_away(world):
    world.service.running.kill()
    world.device.publish(range(500))
    until(lambda: len(world.broker.acknowledged()) == 500)
    world.service.start()
    until(lambda: world.service.count() >= 500)
    assert world.service.rows() == expected(range(500))


@pytest.mark.parametrize("world", [{**SPOOLED, "bytes_max": 2 << 20}], indirect=True)
def test_a_full_spool_stops_acknowledging_and_loses_nothing(world):
    world.service.running.kill()
    text = "x" * 40_000
    for number in range(60):
        document = {**json.loads(payload_of(number)), "note": text}
        world.device.send([(topic_of(number), json.dumps(document).encode())])
    until(lambda: world.lines("the spool is full"))
    held = len(world.broker.acknowledged())
    assert 0 < held < 60
    world.service.start()
    until(lambda: world.service.count() >= 60)
    assert world.service.rows() == expected(range(60))
    until(lambda: len(world.broker.acknowledged()) == 60)


@pytest.mark.parametrize("world", [{"broker": TlsBroker}], indirect=True, ids=["tls"])
def test_a_broker_is_reached_by_tls_and_shown_a_certificate_over_its_restarts_too(world):
    world.device.publish(range(50))
    until(lambda: world.service.count() >= 50)
    world.kill_and_start("broker")
    world.device.publish(range(50, 100))
    until(lambda: world.service.count() >= 100)
    assert world.service.rows() == expected(range(100))


UNKNOWN = {
    "broker": (["authority"], "certificate verify failed"),
    "bridge": (["certificate", "private_key"], "disconnected"),
}


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_a_broker_or_bridge_that_nobody_vouches_for_is_not_spoken_to(tmp_path, unknown):
    without, reason = UNKNOWN[unknown]
    service, broker = Storing(tmp_path), TlsBroker(tmp_path).start()
    for name in without:
        del broker.for_bridge[name]
    alone = bridge(tmp_path, broker, service).start()
    try:
        until(lambda: reason in alone.text())
    finally:
        assert alone.stop() == 0
        broker.stop()
    assert "CONNACK" not in broker.text()
    assert '"event":"connected"' not in alone.text()


def test_poison_is_counted_logged_and_holds_nothing_up(world):
    world.device.send([("fleet/e0/link", b"no json")])
    world.device.send([("fleet//link", b'{"snr_db": 1}')])
    world.device.send([("fleet/e0/link", b'{"snr_db": {"a": 1}}')])
    world.device.send([("fleet/e1/link", payload_of(1))])
    until(world.service.count)
    # Another type than the service has: found in its batch, and refused alone.
    world.device.send([("fleet/e2/link", b'{"time": "2026-01-01T00:00:00Z", "snr_db": "high"}')])
    world.device.publish([3])
    until(lambda: world.service.count() >= 2)
    assert set(world.service.rows()) == {row_of(1), row_of(3)}
    reasons = [line["reason"] for line in world.lines("a message is no telemetry")]
    assert [reason.split(":")[0] for reason in reasons] == [
        "Expecting value",
        "tags.entity_id",
        "fields.snr_db",
    ]
    assert "field_type_conflict" in world.lines("a record is refused")[0]["reason"]
    until(lambda: len(world.broker.acknowledged()) == 4)  # topics; five of the messages share two
    assert world.bridge.stop() == 0
    tally = world.lines("tally")[-1]
    assert (tally["messages"], tally["poison"], tally["refused"], tally["stored"]) == (6, 3, 1, 2)


def entities(world):
    return Counter(entity for entity, _ in world.service.rows().elements())


def remembered(world):
    """Messages that the bridge knows by their packets."""
    with closing(sqlite3.connect(world.folder / "spool" / "spool.sqlite")) as spool:
        return spool.execute("SELECT count(*) FROM seen WHERE NOT timed").fetchone()[0]


@pytest.mark.parametrize(
    "world",
    [{"broker": MuffledBroker}, {"broker": MuffledBroker, **SPOOLED}],
    indirect=True,
    ids=["stored", "spooled"],
)
@pytest.mark.parametrize("ends", ["bridge", "line"])
def test_a_message_without_a_time_is_stored_once_though_its_acknowledgment_is_lost(world, ends):
    send = world.device.send
    send([("fleet/e0/link", b'{"snr_db": 1}')])
    until(lambda: world.service.count() == 1 and remembered(world) == 0)
    world.broker.loses = True
    send([("fleet/e1/link", b'{"snr_db": 1}')])
    until(lambda: world.service.count() == 2 and world.broker.lost)
    if ends == "bridge":
        world.bridge.kill()
        world.broker.cut()
        world.bridge.start()
    else:
        world.broker.cut()
    until(lambda: "fleet/e1/link" in world.broker.acknowledged())
    send([(f"fleet/{entity}/link", b'{"snr_db": 1}') for entity in ("e1", "e2")])
    until(lambda: world.service.count() >= 4 and remembered(world) == 0)
    assert entities(world) == {"e0": 1, "e1": 2, "e2": 1}


def test_a_message_without_a_time_has_that_of_its_receipt(world):
    before_ns = time.time_ns()
    world.device.send([("fleet/e0/link", b'[{"snr_db": 1}, {"snr_db": 2}]')])
    until(lambda: world.service.count() >= 2)
    for _, at in world.service.rows():
        assert before_ns <= time_ns(at) <= time.time_ns()
