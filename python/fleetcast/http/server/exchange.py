"""A WSGI exchange. An answer is gathered before it is sent, unless it is a `LongAnswer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.engine import LongAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from wsgiref.types import WSGIApplication, WSGIEnvironment

    ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


class Exchange:
    """Runs the application once and holds its answer."""

    def __init__(self, application: WSGIApplication, variables: WSGIEnvironment) -> None:
        self.status = ""
        self.fields: list[tuple[str, str]] = []
        self.chunks: list[bytes] = []
        self.long: LongAnswer | None = None
        """Body of a long answer; `chunks` then stays empty."""
        produced: Iterable[bytes] = application(variables, self._start_response)
        if isinstance(produced, LongAnswer):
            self.long = produced
            return
        try:
            self.chunks.extend(produced)
        finally:
            close = getattr(produced, "close", None)
            if close is not None:
                close()

    @property
    def wants_body(self) -> bool:
        """Returns true if the answer is not final: it depends on a body that is still to come."""
        return self.status.startswith("100 ")

    def _start_response(
        self,
        status: str,
        fields: list[tuple[str, str]],
        exc_info: ExcInfo | None = None,  # noqa: ARG002 - nothing is sent before the end
    ) -> Callable[[bytes], None]:
        self.status = status
        self.fields = fields
        return self.chunks.append
