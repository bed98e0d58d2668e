"""The contract's retry table and the batching, on a transport that does as it is told."""

from __future__ import annotations

import queue
import threading

import pytest

from fleetcast.client import GatewayWriter, Options, SpoolFull
from fleetcast.client.records import decode_records
from fleetcast.client.transport import Outcome, Verdict

WAIT = 60


class Script:
    """Answers with the outcomes it is given; one at a time where `step` is set."""

    def __init__(self, *outcomes, step=False):
        self.outcomes = queue.SimpleQueue()
        for outcome in outcomes:
            self.outcomes.put(outcome)
        self.sent = []
        self.step = step
        self.arrived = threading.Semaphore(0)

    def send(self, request):
        self.sent.append([record["time"] for record in decode_records(request)])
        self.arrived.release()
        try:
            outcome = self.outcomes.get(timeout=WAIT if self.step else 0)
        except queue.Empty:
            outcome = Outcome(Verdict.WRITTEN)
        if outcome.verdict is Verdict.WRITTEN:
            return Outcome(Verdict.WRITTEN, accepted_count=len(self.sent[-1]))
        return outcome

    def close(self):
        self.outcomes.put(Outcome(Verdict.UNCERTAIN, "CANCELLED"))


class Picky(Script):
    """Refuses every batch that holds one of these records, as the service does."""

    def __init__(self, *bad_times):
        super().__init__()
        self.bad_times = set(bad_times)

    def send(self, request):
        times = {record["time"] for record in decode_records(request)}
        if times & self.bad_times:
            self.outcomes.put(INVALID)
        return super().send(request)


INVALID = Outcome(Verdict.SPLIT, "INVALID_ARGUMENT", "invalid_input:tags")
AGAIN = Outcome(Verdict.AGAIN, "RESOURCE_EXHAUSTED", "ingest_buffer_full", retry_seconds=0.0)
UNCERTAIN = Outcome(Verdict.UNCERTAIN, "UNAVAILABLE", "Socket closed")
SPLIT = Outcome(Verdict.SPLIT, "RESOURCE_EXHAUSTED", "batch_too_large")
REFUSED = Outcome(Verdict.REFUSED, "INVALID_ARGUMENT", "invalid_input:tags")
WRITTEN = Outcome(Verdict.WRITTEN)


def record(time):
    return {"measurement": "link", "time": time, "tags": {"entity_id": "a"}, "fields": {"n": 1}}


@pytest.fixture(autouse=True)
def _no_backoff(monkeypatch):
    monkeypatch.setattr("fleetcast.client.gateway._BACKOFF_FIRST_SECONDS", 0.0)


@pytest.fixture
def open_writer():
    opened = []

    def open_writer(script, refused=None, spool=None, **options):
        options = {"records_max": 2, "age_seconds": 3600.0, **options}
        handed_back = [] if refused is None else refused
        writer = GatewayWriter(
            "",
            "",
            on_refused=handed_back.append,
            spool=spool,
            options=Options(**options),
            transport=script,
        )
        opened.append(writer)
        return writer

    yield open_writer
    for writer in opened:
        writer.close(0.0)


def write(writer, *times):
    for time in times:
        writer.write(record(time))


def test_batches_by_count_and_in_order(open_writer):
    script = Script()
    writer = open_writer(script)
    write(writer, 1, 2, 3, 4, 5)
    assert writer.flush(WAIT)
    assert script.sent == [[1, 2], [3, 4], [5]]
    assert writer.tally.accepted == 5


def test_batches_by_bytes(open_writer):
    script = Script()
    writer = open_writer(script, records_max=100, bytes_max=100)
    write(writer, 1, 2, 3, 4, 5)
    assert writer.flush(WAIT)
    assert [time for batch in script.sent for time in batch] == [1, 2, 3, 4, 5]
    assert max(map(len, script.sent)) == 2


def test_batches_by_age(open_writer):
    script = Script()
    write(open_writer(script, age_seconds=0.0), 1)
    assert script.arrived.acquire(timeout=WAIT)  # nobody flushes


@pytest.mark.parametrize("outcome", [AGAIN, UNCERTAIN])
def test_the_same_is_sent_again(open_writer, outcome):
    script = Script(outcome, outcome)
    writer = open_writer(script)
    write(writer, 1, 2, 3)
    assert writer.flush(WAIT)
    assert script.sent == [[1, 2], [1, 2], [1, 2], [3]]
    assert (writer.tally.accepted, writer.tally.resent_batches) == (3, 2)


def test_too_large_a_batch_is_split_until_it_fits(open_writer):
    refused = []
    script = Script(SPLIT, WRITTEN, SPLIT, WRITTEN, SPLIT)
    writer = open_writer(script, refused, records_max=4)
    write(writer, 1, 2, 3, 4)
    assert writer.flush(WAIT)
    assert script.sent == [[1, 2, 3, 4], [1, 2], [3, 4], [3], [4]]
    assert [batch.details for batch in refused] == ["batch_too_large"]
    assert [each["time"] for each in refused[0].records] == [4]


def test_what_is_refused_is_handed_back_and_the_rest_goes_on(open_writer):
    refused = []
    writer = open_writer(Script(REFUSED, WRITTEN), refused)
    write(writer, 1, 2, 3)
    assert writer.flush(WAIT)
    (batch,) = refused
    assert (batch.status, batch.details) == ("INVALID_ARGUMENT", "invalid_input:tags")
    assert batch.records == [{**record(time)} for time in (1, 2)]
    assert not batch.uncertain
    assert (writer.tally.accepted, writer.tally.refused) == (1, 2)


@pytest.mark.parametrize("bad", [(0,), (7,), (15,), (3, 4), range(16)])
def test_of_a_batch_only_the_records_at_fault_come_back(open_writer, bad):
    refused = []
    script = Picky(*bad)
    writer = open_writer(script, refused, records_max=16)
    write(writer, *range(20))
    assert writer.flush(WAIT)
    assert [[each["time"] for each in batch.records] for batch in refused] == [[n] for n in bad]
    delivered = [time for sent in script.sent if not set(sent) & set(bad) for time in sent]
    assert delivered == [n for n in range(20) if n not in bad]
    assert (writer.tally.accepted, writer.tally.refused) == (20 - len(bad), len(bad))
    assert len(script.sent) <= 1 + 2 * 4 * len(bad) + 1  # twice the depth of the halving for each


def test_what_of_a_halved_batch_is_not_sent_is_sent_by_the_next_writer(open_writer, tmp_path):
    script = Script(INVALID, step=True)
    writer = open_writer(script, spool=tmp_path, records_max=4)
    write(writer, *range(8))
    script.outcomes.put(WRITTEN)  # the first half
    for _ in range(3):
        assert script.arrived.acquire(timeout=WAIT)
    assert writer.close(0.0) == 0
    assert script.sent == [[0, 1, 2, 3], [0, 1], [2, 3]]
    rest = Script()
    assert open_writer(rest, spool=tmp_path).flush(WAIT)
    assert [time for batch in rest.sent for time in batch] == [2, 3, 4, 5, 6, 7]


def test_what_the_service_would_refuse_is_refused_at_once(open_writer):
    script = Script()
    writer = open_writer(script)
    write(writer, 1)
    for wrong in ({"tags": {}}, {"fields": {"n": float("nan")}}, {"time": None}):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))}"):
            writer.write(record(2) | wrong)
    many = {"entity_id": "a"} | dict.fromkeys("bcd", "")
    with pytest.raises(ValueError, match="tags: 4 of them, 3 at most"):
        open_writer(script, tags_max=3).write(record(2) | {"tags": many})
    write(writer, 3)
    assert writer.flush(WAIT)
    assert script.sent == [[1, 3]]


@pytest.mark.parametrize("content", [b"", b"\xff" * 9, None], ids=["empty", "garbage", "folder"])
def test_a_file_that_holds_no_batch_is_set_aside_and_the_next_goes_on(
    open_writer, tmp_path, caplog, content
):
    writer = open_writer(Script(step=True), spool=tmp_path, records_max=1, memory_bytes_max=1)
    write(writer, *range(4))
    writer.close(0.0)
    _, bad, _, _ = sorted(tmp_path.iterdir())
    bad.unlink()
    if content is None:
        bad.mkdir()
    else:
        bad.write_bytes(content)
    script = Script()
    writer = open_writer(script, spool=tmp_path)
    assert writer.flush(WAIT)
    assert script.sent == [[0], [2], [3]]
    assert writer.tally.unreadable_batches == 1
    assert [path.name for path in tmp_path.iterdir()] == [bad.with_suffix(".unreadable").name]
    assert str(bad) in caplog.text


def test_what_may_have_been_stored_can_be_handed_back(open_writer):
    refused = []
    writer = open_writer(Script(UNCERTAIN), refused, resend_uncertain=False)
    write(writer, 1)
    assert writer.flush(WAIT)
    assert [batch.uncertain for batch in refused] == [True]


def test_f7_what_close_cuts_off_is_handed_back_and_not_sent_by_the_next_writer(
    open_writer, tmp_path
):
    refused = []
    script = Script(step=True)
    writer = open_writer(script, refused, spool=tmp_path, resend_uncertain=False)
    write(writer, *range(4))
    assert script.arrived.acquire(timeout=WAIT)
    assert writer.close(0.0) == 0  # the call under way ends as UNCERTAIN
    assert [batch.uncertain for batch in refused] == [True]
    rest = Script()
    assert open_writer(rest, spool=tmp_path, resend_uncertain=False).flush(WAIT)
    assert rest.sent == [[2, 3]]


def test_a_caller_that_fails_does_not_stop_the_writer(open_writer):
    script = Script(REFUSED)
    writer = open_writer(script)
    writer._on_refused = None  # calling it raises
    write(writer, 1, 2, 3)
    assert writer.flush(WAIT)
    assert script.sent == [[1, 2], [3]]


def test_a_full_spool_says_so_and_takes_nothing(open_writer):
    script = Script(step=True)
    writer = open_writer(script, records_max=1, memory_bytes_max=1)
    with pytest.raises(SpoolFull):
        write(writer, *range(10))
    script.step = False
    script.outcomes.put(WRITTEN)
    assert writer.flush(WAIT)
    sent = [time for batch in script.sent for time in batch]
    assert sent == list(range(len(sent)))
    assert sent


def test_what_was_not_sent_is_sent_by_the_next_writer(open_writer, tmp_path):
    away = Script(step=True)
    writer = open_writer(away, spool=tmp_path, memory_bytes_max=60)
    write(writer, *range(9))
    assert writer.close(0.0) == 0
    script = Script()
    writer = open_writer(script, spool=tmp_path)
    write(writer, 9)
    assert writer.flush(WAIT)
    assert [time for batch in script.sent for time in batch] == list(range(10))
    assert list(tmp_path.iterdir()) == []


def test_a_closed_writer_takes_nothing(open_writer):
    writer = open_writer(Script())
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        write(writer, 1)
