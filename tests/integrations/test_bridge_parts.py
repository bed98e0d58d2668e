"""Parts of the bridge without a broker: templates, messages, the spool, settings, delivery."""

import json
import threading
import time
import tracemalloc
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fleetcast.cli.main import run
from fleetcast.client import Client
from fleetcast.client.connection import ApiError
from fleetcast.client.spool import SpoolInUse
from fleetcast.mqtt.bridge import Bridge
from fleetcast.mqtt.delivery import Delivery, Stopped
from fleetcast.mqtt.messages import Parser
from fleetcast.mqtt.reading import SettingsFault, read_settings
from fleetcast.mqtt.session import Message
from fleetcast.mqtt.settings import TopicSettings
from fleetcast.mqtt.spool import MessageIdentity, MessageSpool
from fleetcast.mqtt.tally import BridgeTally
from fleetcast.mqtt.topics import Template
from tests.tidy.files import ROOT

NOW_NS = 1_790_000_000_123_456_789


@pytest.mark.parametrize(
    ("template", "subscribed", "topic", "named"),
    [
        ("fleet/{entity_id}/{measurement}", "fleet/+/+", "fleet/u1/link",
         {"entity_id": "u1", "measurement": "link"}),
        ("fleet/{entity_id}", "fleet/+", "fleet/u1/link", None),
        ("fleet/{entity_id}", "fleet/+", "fleets/u1", None),
        ("+/{entity_id}/#", "+/+/#", "north/u1/a/b", {"entity_id": "u1"}),
        ("+/{entity_id}/#", "+/+/#", "north/u1", {"entity_id": "u1"}),
        ("fleet/all", "fleet/all", "fleet/all", {}),
    ],
)  # fmt: skip
def test_levels_of_a_topic_become_names(template, subscribed, topic, named):
    made = Template(template)
    assert (made.filter, made.match(topic)) == (subscribed, named)


@pytest.mark.parametrize("text", ["", "a/#/b", "a{x}", "a+", "{x}/{x}", "{}/b", "{a b}"])
def test_templates_that_broker_or_bridge_would_not_understand(text):
    with pytest.raises(ValueError, match=r"level|twice"):
        Template(text)


def parsed(payload, topic="fleet/u1/link", **options):
    topics = [TopicSettings("fleet/{entity_id}/{measurement}", **options)]
    return Parser(topics).parse(topic, json.dumps(payload).encode(), NOW_NS)


def test_an_object_is_fields_and_the_topic_says_the_rest():
    found = parsed({"time": "2026-01-01T00:00:00Z", "snr_db": 1.5, "up": True}, tags={"site": "n"})
    assert found.timed
    assert found.records == [
        {
            "measurement": "link",
            "time": "2026-01-01T00:00:00Z",
            "tags": {"site": "n", "entity_id": "u1"},
            "fields": {"snr_db": 1.5, "up": True},
        }
    ]


def test_a_record_says_its_own_names_but_not_another_entity():
    record = {"measurement": "weather", "tags": {"entity_id": "x", "a": "b"}, "fields": {"t": 1}}
    (found,) = parsed(record).records
    assert (found["measurement"], found["tags"]) == ("weather", {"entity_id": "u1", "a": "b"})


@pytest.mark.parametrize(
    ("time", "unit", "text"),
    [
        (1_790_000_000, "s", "2026-09-21T14:13:20.000000000Z"),
        (1_790_000_000.123, "s", "2026-09-21T14:13:20.123000000Z"),
        (1_790_000_000_123, "ms", "2026-09-21T14:13:20.123000000Z"),
        (NOW_NS, "ns", "2026-09-21T14:13:20.123456789Z"),
    ],
)
def test_times_that_are_numbers(time, unit, text):
    (record,) = parsed({"time": time, "a": 1}, time_unit=unit).records
    assert record["time"] == text


def test_records_without_a_time_get_that_of_the_receipt_each_its_own():
    found = parsed([{"a": 1}, {"a": 2}])
    assert not found.timed
    times = [record["time"] for record in found.records]
    assert times == ["2026-09-21T14:13:20.123456789Z", "2026-09-21T14:13:20.123456790Z"]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "Expecting value"),
        (b"\xff\xfe\xfd", "decode"),
        (b"7", "object of fields"),
        (b"[]", "0 records"),
        (b"{}", "fields: there are none"),
        (b'{"time": "2026-01-01T00:00:00Z"}', "fields: there are none"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": [1]}', "fields.a"),
        (b'{"a": 1, "time": "yesterday"}', "time"),
        (b'{"a": 1, "time": 1e300}', "time"),
        (b'{"a": 1, "time": 1e999}', "time"),
        (b'{"a": 1, "time": "1999-01-01T00:00:00Z"}', "before 2000"),
        (b'{"a": 1, "time": true}', "time"),
        (b'{"fields": {"a": 1}, "tags": 7}', "tags"),
        (b"[" * 100_000, "deep"),
        (json.dumps([{"a": 1}] * 1001).encode(), "1001 records"),
    ],
)
def test_poison_says_why(payload, reason):
    parser = Parser([TopicSettings("fleet/{entity_id}")])
    with pytest.raises(ValueError, match=reason):
        parser.parse("fleet/u1", payload, NOW_NS)


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


class Answers:
    """A service that refuses some records, and does not answer for some writes."""

    def __init__(self, refused=(), lost=(), *, stored_though_lost=True):
        self.refused, self.lost, self.keeps = set(refused), list(lost), stored_though_lost
        self.stored, self.writes = [], 0

    def write(self, records):
        self.writes += 1
        if any(record["n"] in self.refused for record in records):
            raise ApiError(400, {"error": "field_type_conflict"}, None)
        is_lost = self.writes in self.lost
        if not is_lost or self.keeps:
            self.stored += [record["n"] for record in records]
        if is_lost:
            raise TimeoutError
        return {"accepted_count": len(records), "rejected_indices": None}

    def was_stored(self, records):
        return records[0]["n"] in self.stored


def delivered(folder, service, count):
    """Counts of a delivery of one batch that it takes up again as often as it is interrupted."""
    spool, stopping, tally = MessageSpool(folder), threading.Event(), BridgeTally()
    records = [{"n": n, "measurement": "link", "tags": {}} for n in range(count)]
    spool.append(records, [], acknowledged=False)
    delivery = Delivery(spool, service, 0.0, tally, stopping)
    while (batch := spool.first()) is not None:
        try:
            delivery.deliver(batch)
        except Stopped:
            stopping.clear()
    spool.close()
    return tally


def test_a_record_at_fault_is_found_and_the_others_are_stored_once(tmp_path):
    service = Answers(refused={3, 11})
    tally = delivered(tmp_path, service, 16)
    assert sorted(service.stored) == [n for n in range(16) if n not in {3, 11}]
    assert (tally.refused, tally.stored) == (2, 14)


@pytest.mark.parametrize("kept", [True, False])
def test_f7_a_write_without_an_answer_is_looked_up_before_it_is_sent_again(tmp_path, kept):
    # The second write is of half a batch: the other half must be neither lost nor sent twice.
    service = Answers(refused={5}, lost={2, 4}, stored_though_lost=kept)
    tally = delivered(tmp_path, service, 8)
    assert sorted(service.stored) == [0, 1, 2, 3, 4, 6, 7]
    assert tally.looked_up >= 1


class Waits(threading.Event):
    """Notes how long somebody would wait for it, and lets nobody wait."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def wait(self, timeout=None):
        self.seconds.append(timeout)
        return self.is_set()


@pytest.mark.parametrize("ahead_seconds", [-365 * 86_400, 0, 365 * 86_400])
def test_o5_a_bridge_that_starts_waits_for_a_write_whatever_the_clock_was(tmp_path, ahead_seconds):
    """It looked at once for what the service had not stored yet, and sent it twice."""
    spool, waits = MessageSpool(tmp_path), Waits()
    batch = spool.append([{"n": 1, "measurement": "link", "tags": {}}], [], acknowledged=False)
    spool.note_sent(batch, time.time() + ahead_seconds)
    Delivery(spool, Answers(), 31.0, BridgeTally(), waits).deliver(spool.first())
    spool.close()
    assert 0 < waits.seconds[0] <= 31.0


class Fronted(Answers):
    """A service behind a front that loses it while the first write is under way."""

    def write(self, records):
        answer = super().write(records)
        if self.writes == 1:
            raise ApiError(503, {"error": "unavailable"}, 0)
        return answer


def test_an_answer_of_a_front_that_lost_the_service_says_nothing(tmp_path):
    service = Fronted()
    delivered(tmp_path, service, 4)
    assert service.stored == [0, 1, 2, 3]


class Saying(Answers):
    """A service that says of its first answer, a 503, what the write left behind."""

    def __init__(self, word):
        super().__init__()
        self.word = word

    def write(self, records):
        if self.writes == 0 and self.word == "none":
            self.writes += 1
        else:
            super().write(records)
        if self.writes == 1:
            raise ApiError(503, {"error": "telemetry_unavailable"}, 0, self.word)
        return {"accepted_count": len(records), "rejected_indices": None}


@pytest.mark.parametrize(("word", "looked_up"), [("none", 0), ("unknown", 1), (None, 1)])
def test_o9_only_a_write_that_may_be_stored_is_looked_up(tmp_path, word, looked_up):
    service = Saying(word)
    tally = delivered(tmp_path, service, 4)
    assert service.stored == [0, 1, 2, 3]
    assert tally.looked_up == looked_up


class Proxied(Answers):
    """A service behind a proxy, which answers the first writes itself."""

    def __init__(self, *answers):
        super().__init__()
        self.answers = list(answers)

    def write(self, records):
        if self.answers:
            status, body = self.answers.pop(0)
            raise ApiError(status, body, 0)
        return super().write(records)


@pytest.mark.parametrize("status", [301, 400, 404, 422])
@pytest.mark.parametrize(
    "body",
    [
        *("<html>Bad Request</html>", {}, {"message": "no"}, ["no"]),
        *({"error": {"code": 400, "message": "no"}}, {"error": ["invalid_input"]}),
    ],
)
def test_a_proxys_answer_refuses_no_record(tmp_path, status, body):
    # As often as it takes to halve a batch of four down to a single record, which is then refused.
    tally = delivered(tmp_path, Proxied(*[(status, body)] * 3), 4)
    assert (tally.stored, tally.refused) == (4, 0)


class ProxiedBytes(BaseHTTPRequestHandler):
    """A service behind a proxy, which answers a write, and a look-up, by itself."""

    def answer(self, document):
        self.server.asked.append(self.command)
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        is_first = "POST" not in self.server.asked
        self.answer(
            {"status": "ok"} if is_first else {"accepted_count": 1, "rejected_indices": None}
        )

    def do_GET(self):
        is_first = "GET" not in self.server.asked
        self.answer({} if is_first else {"entities": []})

    def log_message(self, *_of):
        pass


def test_an_object_that_is_not_the_services_is_no_acknowledgement(tmp_path):
    """`{"status": "ok"}` ended the bridge with KeyError: 'accepted_count'."""
    record = {"measurement": "link", "time": "2026-01-01T00:00:00Z", "fields": {"n": 1}}
    spool, tally = MessageSpool(tmp_path), BridgeTally()
    spool.append([{**record, "tags": {"entity_id": "a"}}], [], acknowledged=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), ProxiedBytes) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever).start()
        try:
            with Client(f"http://127.0.0.1:{server.server_address[1]}", "key") as client:
                Delivery(spool, client, 0.0, tally, Waits()).deliver(spool.first())
        finally:
            server.shutdown()
    assert server.asked == ["POST", "GET", "GET", "POST"]
    assert (tally.stored, tally.refused, spool.first()) == (1, 0, None)
    spool.close()


def test_a_proxy_that_takes_only_small_bodies_gets_small_ones(tmp_path):
    page = "<html>Request Entity Too Large</html>"
    service = Proxied((413, page), (413, page))
    tally = delivered(tmp_path, service, 4)
    assert (sorted(service.stored), tally.refused) == ([0, 1, 2, 3], 0)


class Unsubscribed:
    """A session that never hears from a broker: the test delivers its messages."""

    def __init__(self, *_arguments, **_options):
        pass


@pytest.mark.parametrize("size", [1 << 20, 1_000, 0])
def test_messages_of_qos_0_are_dropped_before_they_fill_the_memory(
    tmp_path, monkeypatch, caplog, size
):
    monkeypatch.setattr("fleetcast.mqtt.bridge.BrokerSession", Unsubscribed)
    file = settings(
        tmp_path,
        '[broker]\nurl = "mqtt://127.0.0.1"\nclient_id = "a"\n'
        '[[topic]]\ntemplate = "fleet/{entity_id}"\n'
        '[service]\nurl = "http://127.0.0.1"\n'
        f'[spool]\nfolder = "{tmp_path}/spool"\n',
    )
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


def settings(tmp_path, text):
    file = tmp_path / "bridge.toml"
    file.write_text(text)
    return file


def test_all_faults_of_settings_are_named_at_once(tmp_path):
    file = settings(
        tmp_path,
        '[broker]\nurl = 7\nhost = "a"\n[[topic]]\n[service]\nurl = "http://a"\n[more]\n[spool]\n',
    )
    with pytest.raises(SettingsFault) as fault:
        read_settings(file, {})
    assert fault.value.problems == [
        "more: there is no such section",
        "broker.host: there is no such setting",
        "broker.url: should be a text",
        "broker.client_id: is missing",
        "spool.folder: is missing",
        "topic 1.template: is missing",
    ]


def test_values_that_cannot_be(tmp_path):
    file = settings(
        tmp_path,
        '[broker]\nurl = "tcp://a"\nclient_id = ""\n[[topic]]\ntemplate = "a+"\ntime_unit = "h"\n'
        '[service]\nurl = "a"\n[batch]\nrecords = 0\nseconds = 0\n'
        '[spool]\nfolder = "s"\nbytes_max = 1\nacknowledge = "never"\n',
    )
    with pytest.raises(SettingsFault) as fault:
        read_settings(file, {})
    named = [problem.split(":")[0] for problem in fault.value.problems]
    assert named == [
        *("broker.url", "broker.client_id", "service.url"),
        *("service.key_file or FLEETCAST_MQTT_KEY", "batch.records", "batch.seconds"),
        *("spool.bytes_max", "spool.acknowledge", "topic 1.time_unit", "topic 1.template"),
    ]


@pytest.mark.parametrize("name", ["key", "password"])
def test_a_key_or_password_that_is_no_text_is_a_fault_of_its_file(tmp_path, name):
    """It ended with "internal error: UnicodeDecodeError"."""
    file = settings(
        tmp_path,
        '[broker]\nurl = "mqtt://a"\nclient_id = "a"\npassword_file = "password"\n'
        '[[topic]]\ntemplate = "a"\n[service]\nurl = "http://a"\nkey_file = "key"\n'
        '[spool]\nfolder = "s"\n',
    )
    (tmp_path / "key").write_bytes(b"k")
    (tmp_path / "password").write_bytes(b"p")
    (tmp_path / name).write_bytes(b"a\xff")
    with pytest.raises(SettingsFault) as fault:
        read_settings(file, {})
    assert fault.value.problems == [f"{tmp_path / name}: byte 1 is no UTF-8"]


def test_the_settings_that_come_with_it_are_sound(tmp_path, capsys):
    file = tmp_path / "bridge.toml"
    file.write_text((ROOT / "integrations" / "mqtt" / "bridge.toml").read_text())
    assert run(["mqtt", str(file), "--check"]) == 1
    assert "fleetcast.key" in capsys.readouterr().err
    (tmp_path / "fleetcast.key").write_text("key\n")
    (tmp_path / "broker.password").write_text("password\n")
    assert run(["mqtt", str(file), "--check"]) == 0
    found = read_settings(file, {})
    assert (found.key, found.password, found.broker.port) == ("key", "password", 8883)
