"""fleetcast over gRPC: `TelemetryIngest.Write`, TLS; reads over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fleetcast.bench.drivers.fleetcast_service import TIMEOUT_SECONDS, RunningService, SplitSession
from fleetcast.bench.faults import DatabaseFault
from fleetcast.client.transport import Channel, Verdict
from fleetcast.engine import encode_protobuf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.bench.rows import SentRow


class GrpcCalls(RunningService):
    """Calls that are answered once the batch is on disk."""

    about = "fleetcast over gRPC with TLS, its defaults"
    listeners = ("--grpc", "127.0.0.1:0")

    def encode(self, rows: Sequence[SentRow]) -> bytes:
        records = [
            {
                "measurement": row.measurement,
                "time": row.time_ns,
                "tags": dict(row.tags),
                "fields": {name: float(value) for name, value in row.fields},
            }
            for row in rows
        ]
        return b"".join(encode_protobuf(records))

    def connect(self) -> SplitSession:
        authority = Path(self.ready["grpc_ca"]).read_bytes()
        target = self.ready["grpc"]
        channel = Channel(target, self.key, authority, TIMEOUT_SECONDS)
        return SplitSession(GrpcWriter(channel), self.reader())


class GrpcWriter:
    """A channel to write."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def write(self, payload: bytes) -> None:
        outcome = self._channel.send(payload)
        if outcome.verdict is not Verdict.WRITTEN or outcome.rejected_count:
            # If the service did not refuse the call, the call failed on its way, with gRPC's own
            # words.
            refused = outcome.verdict in {Verdict.REFUSED, Verdict.SPLIT}
            message = f"it answered {outcome.status} {outcome.details if refused else ''}".rstrip()
            raise DatabaseFault(message)

    def close(self) -> None:
        self._channel.close()
