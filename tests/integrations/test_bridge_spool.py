"""The bridge keeps each message once, and takes no more than fit."""

import tracemalloc

import pytest

from fleetcast.client.spool import SpoolInUse
from fleetcast.mqtt.bridge import Bridge
from fleetcast.mqtt.reading import read_settings
from fleetcast.mqtt.session import Message
from fleetcast.mqtt.spool import MessageIdentity, MessageSpool

SETTINGS = """
[broker]
url = "mqtt://127.0.0.1"
client_id = "a"
[[topic]]
template = "fleet/{entity_id}"
[service]
url = "http://127.0.0.1"
[spool]
folder = "spool"
"""


def test_a_message_that_says_its_time_is_known_for_good_others_until_the_broker_knows(tmp_path):
    timed = MessageIdentity.of("a", b"1", None)
    untimed = MessageIdentity.of("a", b"1", 7)
    spool = MessageSpool(tmp_path)
    first = spool.append([{"n": 1}], [timed, untimed], acknowledged=False)
    assert spool.is_known(timed)
    assert spool.is_known(untimed)
    assert not spool.is_known(MessageIdentity.of("a", b"1", 8))
    spool.forget_acknowledged()
    assert spool.is_known(untimed)
    spool.replace_parts(first, [])
    assert spool.is_known(untimed)
    spool.forget_acknowledged()
    assert spool.is_known(timed)
    assert not spool.is_known(untimed)
    spool.append([{"n": 2}], [untimed], acknowledged=True)
    spool.close()
    again = MessageSpool(tmp_path)
    assert again.is_known(untimed)
    again.forget([timed, untimed])
    assert not again.is_known(untimed)
    again.append([{"n": 3}], [untimed], acknowledged=False)
    again.forget_packets()
    assert not again.is_known(untimed)
    assert again.is_known(timed)
    with pytest.raises(SpoolInUse, match="another bridge"):
        MessageSpool(tmp_path)
    again.close()


class Unsubscribed:
    """A session that never hears from a broker: the test delivers its messages."""

    def __init__(self, *_arguments, **_options):
        pass


@pytest.mark.parametrize("size", [1 << 20, 1_000, 0])
def test_messages_of_qos_0_are_dropped_before_they_fill_the_memory(
    tmp_path, monkeypatch, caplog, size
):
    monkeypatch.setattr("fleetcast.mqtt.bridge.BrokerSession", Unsubscribed)
    file = tmp_path / "bridge.toml"
    file.write_text(SETTINGS)
    bridge = Bridge(read_settings(file, {"FLEETCAST_MQTT_KEY": "k"}))
    tracemalloc.start()
    try:
        while not bridge.tally.dropped:
            payload, topic = bytes(size), f"fleet/{bridge._arrived.qsize()}"
            bridge._receive(Message(topic, payload, 0, again=False, session=0, connection=0))
        taken_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken_bytes < 20 << 20
    assert caplog.text.count("messages of QoS 0 are dropped") == 1
    taken = bridge._arrived.qsize()
    bridge._receive(Message("fleet/a", payload, 1, again=False, session=0, connection=0))
    assert bridge._arrived.qsize() == taken + 1, "the broker has it until it is acknowledged"
    bridge._spool.close()
