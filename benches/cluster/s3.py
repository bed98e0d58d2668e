"""Ranged GETs of an S3 server by nothing but a socket."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import time
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit

_EMPTY = hashlib.sha256(b"").hexdigest()
_SIGNED = "host;x-amz-content-sha256;x-amz-date"


class Bucket:
    """A bucket at an address as `store.objects` has it, with a connection of its own."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        options = dict(parse_qsl(address.query))
        self._host = urlsplit(options["endpoint"]).netloc
        self._base = f"/{address.netloc}{address.path.rstrip('/')}"
        self._access, self._secret = options["access_key"], options["secret_key"]
        self._wire = http.client.HTTPConnection(self._host, timeout=30)

    def get(self, key: str, start: int, length: int) -> tuple[float, int]:
        """Seconds and bytes of a range of an object, fewer where it ends before."""
        path = f"{self._base}/{key}"
        fields = {**self._signature(path), "Range": f"bytes={start}-{start + length - 1}"}
        began = time.perf_counter()
        self._wire.request("GET", path, headers=fields)
        answer = self._wire.getresponse()
        body = answer.read()
        assert answer.status in {200, 206}, (answer.status, body[:200])
        return time.perf_counter() - began, len(body)

    def _signature(self, path: str) -> dict[str, str]:
        at = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{at[:8]}/us-east-1/s3/aws4_request"
        fields = f"host:{self._host}\nx-amz-content-sha256:{_EMPTY}\nx-amz-date:{at}\n"
        canonical = f"GET\n{path}\n\n{fields}\n{_SIGNED}\n{_EMPTY}"
        key = f"AWS4{self._secret}".encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{digest}"
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        credential = f"Credential={self._access}/{scope}, SignedHeaders={_SIGNED}"
        return {
            "x-amz-date": at,
            "x-amz-content-sha256": _EMPTY,
            "Authorization": f"AWS4-HMAC-SHA256 {credential}, Signature={signature}",
        }
