"""Clients of gRPC and HTTP/2 that others have written, against the front in Rust."""

import json
import re
import subprocess
import time

import pytest

from tests.grpc.messages import HealthResponse, WriteResponse, encode, record
from tests.integrations.programs import MADE, found, needs
from tests.service.service import running
from tests.tidy.files import ROOT
from tests.waiting import PATIENCE_SECONDS

INGEST = "fleet.telemetry.v1.TelemetryIngest"
CALLER = ROOT / "tests" / "integrations" / "grpcjava" / "Caller.java"
JARS = MADE / "grpcjava"
CALLS = 2_000
# h2spec sends requests that are no calls. They are answered 415 without content, for which these
# cases wait;
WANT_CONTENT = {
    "Sends a WINDOW_UPDATE frame on half-closed (remote) stream",
    "Sends a PRIORITY frame on half-closed (remote) stream",
}
# and at once, often before the next frame, of which these cases want another answer.
RACE = {
    "Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded",
    (
        "Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on "
        "a stream"
    ),
    "Sends a HEADERS frame that contains a pseudo-header field as trailers",
    "closed: Sends a HEADERS frame after sending RST_STREAM frame",
    "closed: Sends a DATA frame after sending RST_STREAM frame",
    "Sends a second HEADERS frame without the END_STREAM flag",
    *(
        f'Sends a HEADERS frame with the "content-length" header field which does not equal {of}'
        for of in (
            "the DATA frame payload length",
            "the sum of the multiple DATA frames payload length",
        )
    ),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    data = tmp_path_factory.mktemp("clients") / "data"
    with running(data, "--grpc", "127.0.0.1:0") as started:
        yield started


def printed(*command, **options) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        **options,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def batch() -> str:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    one = {"measurement": "link", "time": at, "tags": {"entity_id": "e"}}
    return json.dumps({"records": [{**one, "fields": {"snr_db": {"numberValue": 1.5}}}]})


@needs("h2spec")
def test_h2spec(service):
    """`rust/grpc/src/tests/streams.rs` has the cases left out, on calls that are open."""
    host, _, port = service.ready["grpc"].rpartition(":")
    command = [found("h2spec"), "-t", "-k", "-S", "-h", host, "-p", port]
    told = subprocess.run(command, capture_output=True, check=False, text=True).stdout
    assert "146 tests, " in told
    failed = set(re.findall(r"\u00d7 \d+: (.+)", told))
    assert failed - RACE == WANT_CONTENT


@needs("curl")
def test_curl(service, tmp_path):
    (tmp_path / "empty").write_bytes(bytes(5))
    url = f"https://localhost:{service.ready['grpc'].rpartition(':')[2]}/{INGEST}/Health"
    out = printed(
        *(found("curl"), "--silent", "--http2", "--cacert", service.ready["grpc_ca"]),
        *("-H", "content-type: application/grpc", "-H", "te: trailers"),
        *("--data-binary", f"@{tmp_path / 'empty'}", "--output", tmp_path / "answer"),
        *("--write-out", "%{http_version} %{http_code}", url),
    )
    assert out == "2 200"
    assert HealthResponse.FromString((tmp_path / "answer").read_bytes()[5:]).ok


def grpcurl(service, *words, key=None, body=None) -> str:
    given = ["-cacert", service.ready["grpc_ca"], *(["-d", body] if body else [])]
    given += ["-H", f"x-api-key: {key}"] if key else []
    return printed(found("grpcurl"), *given, service.ready["grpc"], *words)


@needs("grpcurl")
def test_grpcurl_finds_the_service_and_writes(service):
    assert INGEST in grpcurl(service, "list").split()
    assert "rpc Write" in grpcurl(service, "describe", INGEST)
    assert json.loads(grpcurl(service, f"{INGEST}/Health")) == {"ok": True}
    checked = grpcurl(service, "grpc.health.v1.Health/Check", body="{}")
    assert json.loads(checked) == {"status": "SERVING"}
    written = json.loads(grpcurl(service, f"{INGEST}/Write", key=service.key, body=batch()))
    assert written["acceptedCount"] == 1


def ghz(service, key) -> dict:
    report = printed(
        *(found("ghz"), "--cacert", service.ready["grpc_ca"], "--call", f"{INGEST}/Write"),
        *("--metadata", json.dumps({"x-api-key": key}), "--data", batch()),
        *("--concurrency", 20, "--connections", 4, "--total", CALLS, "--format", "json"),
        service.ready["grpc"],
    )
    return json.loads(report)["statusCodeDistribution"]


@needs("ghz")
def test_ghz_has_each_call_answered(service):
    assert ghz(service, service.key) == {"OK": CALLS}
    # A connection whose last ten calls were refused is closed, with the calls that are on it.
    refused = ghz(service, "nonsense")
    assert refused.keys() <= {"Unauthenticated", "Unavailable"}
    assert sum(refused.values()) == CALLS


class Caller:
    """grpc-java on one channel."""

    def __init__(self, service, folder):
        self.folder, self.key = folder, service.key
        command = [found("java"), "-cp", f"{JARS}/*", CALLER]
        command += [service.ready["grpc"], service.ready["grpc_ca"]]
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, method, message=None, *, key=None, milliseconds=0):
        """Status, details and response of a call."""
        file = "-"
        if message is not None:
            file = self.folder / "message"
            file.write_bytes(message)
        self.process.stdin.write(f"{INGEST}/{method} {key or self.key} {milliseconds} {file}\n")
        self.process.stdin.flush()
        status, details, response = self.process.stdout.readline().rstrip("\n").split("\t")
        return status, details, bytes.fromhex(response)

    def stop(self):
        self.process.communicate(timeout=PATIENCE_SECONDS)
        assert self.process.returncode == 0


@needs("java")
@pytest.mark.skipif(not JARS.is_dir(), reason="no grpc-java here")
def test_grpc_java(service, tmp_path):
    caller = Caller(service, tmp_path)
    records = encode(*(record(time.time_ns() - n, entity=f"j{n % 9}") for n in range(9_000)))
    for message, count in ((encode(record(time.time_ns())), 1), (records, 9_000)):
        status, _, response = caller.call("Write", message, milliseconds=60_000)
        assert status == "OK"
        assert WriteResponse.FromString(response).accepted_count == count
    assert HealthResponse.FromString(caller.call("Health", b"")[2]).ok
    assert caller.call("Write", b"", key="nonsense")[:2] == ("UNAUTHENTICATED", "auth_failed")
    too_large = bytes(16 * 2**20 + 1)
    assert caller.call("Write", too_large)[:2] == ("RESOURCE_EXHAUSTED", "batch_too_large")
    # Neither ends the channel.
    assert caller.call("Write", milliseconds=200)[0] == "DEADLINE_EXCEEDED"
    assert caller.call("Write")[0] == "CANCELLED"
    assert caller.call("Nothing", b"")[0] == "UNIMPLEMENTED"
    assert caller.call("Write", encode(record(time.time_ns())))[0] == "OK"
    caller.stop()
