"""A client that says exactly the bytes it is told to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import grpc

from fleetcast.protobuf import delimited, fields, integer
from tests.waiting import PATIENCE_SECONDS

from .messages import HealthResponse, WriteResponse

INGEST = "fleet.telemetry.v1.TelemetryIngest"
SECONDS = PATIENCE_SECONDS


@dataclass
class Outcome:
    """Outcome of a call."""

    status: str
    details: str
    trailers: dict
    response: object = None

    @property
    def refusal(self):
        return self.status, self.details

    @property
    def retry_seconds(self):
        """Delay of the `google.rpc.RetryInfo`, `None` where there is none."""
        data = self.trailers.get("grpc-status-details-bin")
        if data is None:
            return None
        status = dict(fields(data))
        assert status[2].decode() == self.details
        detail = dict(fields(status[3]))
        assert detail[1] == b"type.googleapis.com/google.rpc.RetryInfo"
        return dict(fields(dict(fields(detail[2]))[1]))[1]


class Station:
    """One warm channel."""

    def __init__(self, ready, *options):
        authority = Path(ready["grpc_ca"]).read_bytes()
        credentials = grpc.ssl_channel_credentials(authority)
        sizes = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
        self.channel = grpc.secure_channel(ready["grpc"], credentials, (*sizes, *options))

    def call(self, method, body=b"", key=None, *, metadata=None, **options):
        if metadata is None:
            metadata = () if key is None else (("x-api-key", key),)
        call = self.channel.unary_unary(f"/{method}")
        try:
            response, done = call.with_call(body, metadata=metadata, timeout=SECONDS, **options)
        except grpc.RpcError as error:
            trailers = dict(error.trailing_metadata() or ())
            return Outcome(error.code().name, error.details(), trailers)
        return Outcome("OK", done.details(), dict(done.trailing_metadata() or ()), response)

    def write(self, body, key, service=INGEST, **options):
        outcome = self.call(f"{service}/Write", body, key, **options)
        if outcome.response is not None:
            outcome.response = WriteResponse.FromString(outcome.response)
        return outcome

    def health(self, service=INGEST):
        outcome = self.call(f"{service}/Health")
        if outcome.response is not None:
            outcome.response = HealthResponse.FromString(outcome.response)
        return outcome

    def check(self, service):
        return self.call("grpc.health.v1.Health/Check", delimited(1, service))

    def watch(self, service):
        call = self.channel.unary_stream("/grpc.health.v1.Health/Watch")
        return call(delimited(1, service), timeout=SECONDS)

    def close(self):
        self.channel.close()


SERVING, NOT_SERVING, SERVICE_UNKNOWN = (integer(1, status) for status in (1, 2, 3))


def until_serving(watch):
    """Reads a watch up to SERVING: a probe that took longer than its second comes before (J2)."""
    assert SERVING in watch
