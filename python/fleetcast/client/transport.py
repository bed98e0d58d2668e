"""One gRPC call, and the next step that its outcome asks for: the contract's retry table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import grpc

from fleetcast.protobuf import fields, integers, messages, texts

_METHOD = "/fleet.telemetry.v1.TelemetryIngest/Write"
_RETRY_INFO = "google.rpc.RetryInfo"
_WRITE_OUTCOME = "x-write-outcome"
# Fields of a WriteResponse.
_ACCEPTED_COUNT, _REJECTED_COUNT = 2, 3
# Fields of google.rpc.Status, google.protobuf.Any and RetryInfo.
_STATUS_DETAILS, _ANY_TYPE_URL, _ANY_VALUE, _RETRY_DELAY = 3, 1, 2, 1
_MESSAGE_BYTES_MAX = -1  # only the server bounds messages
# A connection gets half of a call's time, so that a failed connection ends before the call times
# out. After a time-out it would be unknown if the request was sent. gRPC's name of the option is
# misleading.
_CONNECT_TIMEOUT = "grpc.min_reconnect_backoff_ms"
_OPTIONS = (
    ("grpc.max_send_message_length", _MESSAGE_BYTES_MAX),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.max_reconnect_backoff_ms", 5_000),
)


_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"  # in the words of gRPC's C core


class Verdict(Enum):
    """Next step for a batch."""

    WRITTEN = "written"
    AGAIN = "again"
    """The batch was not stored. Wait, then send the same batch again."""
    SPLIT = "split"
    """The batch was not stored. Send it in two halves, to fit a limit or find a refused record."""
    UNCERTAIN = "uncertain"
    """The batch may be stored: the connection was lost, time ran out, or the server says so."""
    REFUSED = "refused"
    """The server will never take the batch."""


@dataclass(frozen=True)
class Outcome:
    """Result of one call."""

    verdict: Verdict
    status: str = "OK"
    details: str = ""
    accepted_count: int = 0
    rejected_count: int = 0
    retry_seconds: float | None = None

    def in_words(self) -> str:
        """Returns what went wrong, and what to do if the server's certificate is at fault."""
        if _UNTRUSTED in self.details:
            return "the server's certificate is not trusted: give its authority=, tls/ca.pem"
        return f"{self.status}: {self.details}"


class Channel:
    """One TLS channel, which connects at the first call."""

    def __init__(
        self, target: str, key: str, authority: bytes | Path | None, timeout: float
    ) -> None:
        pem = authority.read_bytes() if isinstance(authority, Path) else authority
        credentials = grpc.ssl_channel_credentials(pem)
        options = (*_OPTIONS, (_CONNECT_TIMEOUT, round(timeout * 1000 / 2)))
        self._channel = grpc.secure_channel(target, credentials, options)
        self._write: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(_METHOD)
        self._metadata = (("x-api-key", key),)
        self._timeout = timeout

    def send(self, request: bytes) -> Outcome:
        """Sends one batch and waits for its outcome."""
        try:
            response = self._write(request, timeout=self._timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            return _failure(error)
        except ValueError as error:  # the channel was closed before the call was made
            return Outcome(Verdict.AGAIN, grpc.StatusCode.CANCELLED.name, str(error))
        counts = integers(response)
        accepted, rejected = counts.get(_ACCEPTED_COUNT, 0), counts.get(_REJECTED_COUNT, 0)
        return Outcome(Verdict.WRITTEN, accepted_count=accepted, rejected_count=rejected)

    def close(self) -> None:
        """Ends the connection and cancels a call that is under way."""
        self._channel.close()


def _failure(error: grpc.RpcError) -> Outcome:
    status, details = error.code(), error.details() or ""
    trailers: dict[str, str | bytes] = {
        each.key: each.value for each in error.trailing_metadata() or ()
    }
    retry_seconds = _retry_seconds(trailers.get("grpc-status-details-bin"))
    if trailers.get(_WRITE_OUTCOME) == "unknown":
        return Outcome(Verdict.UNCERTAIN, status.name, details, retry_seconds=retry_seconds)
    if retry_seconds is not None or details.startswith(_NEVER_SENT):
        return Outcome(Verdict.AGAIN, status.name, details, retry_seconds=retry_seconds)
    if status in _OF_A_PART or details.startswith(_CONFLICT):
        return Outcome(Verdict.SPLIT, status.name, details)
    if status in _UNCERTAIN:
        return Outcome(Verdict.UNCERTAIN, status.name, details)
    return Outcome(Verdict.REFUSED, status.name, details)


# Statuses of a batch with too many records or bytes, or with a faulty record: the other records of
# the batch can be stored. The same holds for a value whose type differs from its field's type,
# which is the only INTERNAL error with a name.
_OF_A_PART = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INVALID_ARGUMENT)
_CONFLICT = "field_type_conflict:"
# Words of gRPC's C core for a call that got no connection. The state of the channel is reported
# late, so a connection may have come and gone during the call. The words are therefore the only
# proof.
_NEVER_SENT = ("failed to connect to all addresses", "errors resolving ")
_UNCERTAIN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
)


def _retry_seconds(status: bytes | str | None) -> float | None:
    """Returns the delay of a `google.rpc.RetryInfo` inside a `google.rpc.Status`, in seconds."""
    if not isinstance(status, bytes):
        return None
    try:
        for detail in messages(status, _STATUS_DETAILS):
            type_url = "".join(texts(detail, _ANY_TYPE_URL)[-1:])
            if type_url.rpartition("/")[2] == _RETRY_INFO:
                info = messages(detail, _ANY_VALUE)[-1]
                delay = dict(fields(messages(info, _RETRY_DELAY)[-1]))
                seconds, nanos = delay.get(1, 0), delay.get(2, 0)
                if isinstance(seconds, int) and isinstance(nanos, int):
                    return seconds + nanos / 1e9
    except (ValueError, IndexError):  # not a message, or a message without these fields
        return None
    return None
