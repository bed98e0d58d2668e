"""One HTTP connection to the service, which the service may end while it is idle."""

from __future__ import annotations

import http.client
import json
import select
import ssl
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

_SUCCESS = 2  # first digit of the status


class ApiError(Exception):
    """An answer that is not a success of the service: `status`, `body` and `retry_after_seconds`.

    `write_outcome` is `none` if a write was not stored, `unknown` if it may be stored, and `None`
    if the answer does not say. A redirect, or a success with a foreign body, comes from something
    between client and service. The request was then not done, or its fate is unknown.

    Example: 429 with `code` "rate_limited" and `retry_after_seconds` 12 means: try again in 12 s.
    """

    def __init__(
        self,
        status: int,
        body: object,
        retry_after_seconds: int | None,
        write_outcome: str | None = None,
    ) -> None:
        super().__init__(f"{status} {json.dumps(body)[:500]}")
        self.status = status
        self.body = body
        self.retry_after_seconds = retry_after_seconds
        self.write_outcome = write_outcome

    @property
    def code(self) -> str | None:
        """The `error` of the body if it is a text; `None` for a `detail` list or a proxy's body."""
        code = self.body.get("error") if isinstance(self.body, dict) else None
        return code if isinstance(code, str) else None


class RestingConnection:
    """Sends requests with a key to `base_url`, one after the other.

    Not safe to share between threads.
    """

    def __init__(self, base_url: str, key: str, timeout_seconds: float) -> None:
        url = urlsplit(base_url)
        host = url.hostname or ""
        self._prefix = url.path.rstrip("/")
        self._http = (
            http.client.HTTPSConnection(
                host, url.port, timeout=timeout_seconds, context=ssl.create_default_context()
            )
            if url.scheme == "https"
            else http.client.HTTPConnection(host, url.port, timeout=timeout_seconds)
        )
        self._headers = {"x-api-key": key}

    def close(self) -> None:
        """Ends the connection; the next request opens another."""
        self._http.close()

    def exchange(
        self, method: str, path: str, body: bytes | None, *, has: tuple[str, type] | None = None
    ) -> dict[str, Any]:
        """Sends a request and returns the JSON document of its answer.

        Raises `ApiError`, `OSError`.

        `has` is the name and type of a member that every success of the service has. A success
        without this member raises `ApiError`.
        """
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._answer(method, self._prefix + path, body, headers)
            content = response.read()
        except BaseException as error:
            # The rest of a broken answer must not be read as the beginning of the next answer.
            self._http.close()
            if isinstance(error, http.client.HTTPException) and not isinstance(error, OSError):
                message = "the answer is cut off, or is not one of HTTP"
                raise ConnectionError(message) from error
            raise
        try:
            document = json.loads(content)
        except ValueError:
            document = content.decode(errors="replace")
        is_success = response.status // 100 == _SUCCESS
        if is_success and isinstance(document, dict) and _has(document, has):
            return document
        retry_after = response.headers.get("Retry-After", "")
        seconds = int(retry_after) if retry_after.isdecimal() else None
        outcome = response.headers.get("X-Write-Outcome")
        raise ApiError(response.status, document, seconds, outcome)

    def _answer(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        """Sends a request and waits for the head of its answer.

        An idle connection may end between the check and the request. A read is then sent again,
        which does no harm. A write is not, because it may have been stored.
        """
        if self._is_ended():
            self._http.close()  # the request opens another
        is_safe_again = method == "GET" and self._http.sock is not None
        try:
            self._http.request(method, path, body, headers)
            return self._http.getresponse()
        except (ConnectionError, ssl.SSLEOFError):
            if not is_safe_again:
                raise
        self._http.close()
        self._http.request(method, path, body, headers)
        return self._http.getresponse()

    def _is_ended(self) -> bool:
        """Returns true if an idle connection has something to read: its end, or unexpected bytes.

        No request has been sent on the connection at that time, so even a write can use another
        connection.
        """
        if self._http.sock is None:
            return False
        poll = select.poll()
        poll.register(self._http.sock, select.POLLIN)
        return bool(poll.poll(0))


def _has(document: Mapping[str, object], member: tuple[str, type] | None) -> bool:
    return member is None or type(document.get(member[0])) is member[1]
