"""Remote write 1.0 of Prometheus: a message in protobuf, packed as a block of snappy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.adapters.explaining import sentence, sentences

if TYPE_CHECKING:
    import falcon

    from fleetcast.http.answers import ErrorResponse
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.writing import Writing

MESSAGE = "prometheus.WriteRequest"
"""The message of remote write 1.0. A message of 2.0 reads as an empty message of 1.0."""

_TEXT = "text/plain; charset=utf-8"


def error(answer: ErrorResponse) -> tuple[str, bytes]:
    """A line of text, which Prometheus writes to its log."""
    text = sentence(answer)
    if answer.code == "unsupported_media_type":
        text += f" {MESSAGE} of remote write 1.0 is accepted, as application/x-protobuf."
    return _TEXT, f"{text}\n".encode()


class RemoteWriteResource:
    """204 means that all samples are on disk, or queued as over HTTP.

    Faulty samples are left out and the answer is 400; the other samples are written. Prometheus
    does not send a batch again after 400. Values that are not numbers do not cause 400, because
    Prometheus sends such values as markers.
    """

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Raises `Refused`, `StoreError`."""
        written = self._writing.write(request)
        if not written.dropped:
            response.status = 204
            return
        state: RequestState = request.context.state
        state.code = "invalid_input"
        response.status = 400
        response.content_type = _TEXT
        text = f"partial write: {sentences(written.dropped, 'series')}\n"
        response.data = text.encode()
