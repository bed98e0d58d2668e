"""The bridge delivers each record of its spool once, whatever the service or a proxy answers."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fleetcast.client import Client
from fleetcast.client.connection import ApiError
from fleetcast.mqtt.delivery import Delivery, Stopped
from fleetcast.mqtt.spool import MessageSpool
from fleetcast.mqtt.tally import BridgeTally


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
