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
    from pathlib import Path

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

    def __init__(
        self,
        base_url: str,
        key: str,
        timeout_seconds: float,
        authority: bytes | Path | None = None,
    ) -> None:
        url = urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            message = (
                f"{base_url!r} is not the address of a service, such as http://127.0.0.1:8080 or "
                "https://telemetry.example.com"
            )
            raise ValueError(message)
        self._place = url.netloc
        self._prefix = url.path.rstrip("/")
        self._http = (
            http.client.HTTPSConnection(
                url.hostname, url.port, timeout=timeout_seconds, context=_context(authority)
            )
            if url.scheme == "https"
            else http.client.HTTPConnection(url.hostname, url.port, timeout=timeout_seconds)
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
        response, content = self._whole(method, path, body)
        document = _document(content)
        is_success = response.status // 100 == _SUCCESS
        if is_success and isinstance(document, dict) and _has(document, has):
            return document
        raise _error(response, document)

    def fetch(self, path: str, content_type: str) -> bytes:
        """Reads a path and returns the body of its answer, which has this `content_type`.

        Raises `ApiError`, `OSError`.
        """
        response, content = self._whole("GET", path, None)
        if response.status // 100 == _SUCCESS and response.headers["Content-Type"] == content_type:
            return content
        raise _error(response, _document(content))

    def _whole(
        self, method: str, path: str, body: bytes | None
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Sends a request and returns its answer, with the whole body."""
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._answer(method, self._prefix + path, body, headers)
            return response, response.read()
        except BaseException as error:
            # The rest of a broken answer must not be read as the beginning of the next answer.
            self._http.close()
            problem = _problem(error)
            if problem is None:
                raise
            message = f"{self._place}: {problem}"
            raise ConnectionError(message) from error

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


def _problem(error: BaseException) -> str | None:
    """Returns what is wrong between client and service, if the error itself does not say it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}): give authority=…"
    if isinstance(error, ssl.SSLError) and "WRONG_VERSION" in (error.reason or ""):
        return "it does not speak TLS: try http:// instead of https://"
    if isinstance(error, http.client.HTTPException) and not isinstance(error, OSError):
        return "the answer is cut off, or is not one of HTTP"
    return None


def _context(authority: bytes | Path | None) -> ssl.SSLContext:
    """Returns the settings of TLS. Without an `authority` the system's authorities are trusted."""
    if authority is None:
        return ssl.create_default_context()
    pem = authority if isinstance(authority, bytes) else authority.read_bytes()
    return ssl.create_default_context(cadata=pem.decode())


def _document(content: bytes) -> object:
    """Returns the JSON document of a body, or its text if it is not JSON."""
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")


def _error(response: http.client.HTTPResponse, document: object) -> ApiError:
    retry_after = response.headers.get("Retry-After", "")
    seconds = int(retry_after) if retry_after.isdecimal() else None
    outcome = response.headers.get("X-Write-Outcome")
    return ApiError(response.status, document, seconds, outcome)


def _has(document: Mapping[str, object], member: tuple[str, type] | None) -> bool:
    return member is None or type(document.get(member[0])) is member[1]
