"""One HTTP connection to the service, which may have ended while it rested."""

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
    """An answer that is no success of the service: its status, its body, and when to come back.

    A redirect, and a success whose body is not the service's, come from something between client
    and service: the request was not done, or nobody knows.
    """

    def __init__(self, status: int, body: object, retry_after_seconds: int | None) -> None:
        super().__init__(f"{status} {json.dumps(body)[:500]}")
        self.status = status
        self.body = body
        self.retry_after_seconds = retry_after_seconds

    @property
    def code(self) -> str | None:
        """The `error` of the body if it is a text; `None` for a `detail` list or a proxy's body."""
        code = self.body.get("error") if isinstance(self.body, dict) else None
        return code if isinstance(code, str) else None


class RestingConnection:
    """Requests with a key to `base_url`, one after the other. Not to be shared by threads."""

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
        """The document of one answer. Raises `ApiError`, `OSError`.

        `has` is a member, and its type, without which a success is not the service's.
        """
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._answer(method, self._prefix + path, body, headers)
            content = response.read()
        except BaseException as error:
            # Half an exchange must not be taken for the beginning of the next.
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
        raise ApiError(response.status, document, seconds)

    def _answer(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        """Sends a request and waits for the head of its answer.

        A connection that rested may end between the look at it and the request. To read again does
        no harm then; a write may have been stored.
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
        """True where an idle connection has something to read: its end, or bytes nobody asked for.

        Nothing has been sent on it then, so even a write can go over another one.
        """
        if self._http.sock is None:
            return False
        poll = select.poll()
        poll.register(self._http.sock, select.POLLIN)
        return bool(poll.poll(0))


def _has(document: Mapping[str, object], member: tuple[str, type] | None) -> bool:
    return member is None or type(document.get(member[0])) is member[1]
