"""Certificate of the listener, read anew when its files are others than before."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import grpc
import structlog

if TYPE_CHECKING:
    from pathlib import Path

    _Signature = list[tuple[int, int, int] | None]

logger = structlog.get_logger(__name__)


class CertificateFiles:
    """Files of a certificate and of its key, in PEM."""

    def __init__(self, certificate: Path, private_key: Path) -> None:
        self._certificate = certificate
        self._private_key = private_key
        self._seen: _Signature = []

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials that follow the files. Raises `OSError`."""
        self._seen = self._signature()
        return grpc.dynamic_ssl_server_credentials(
            self._read(),
            self._renewed,  # type: ignore[arg-type] # the stub forgot None
        )

    def _renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """Called by the library with each handshake; `None` goes on with what it has."""
        signature = self._signature()
        if signature == self._seen:
            return None
        self._seen = signature  # whatever comes of them: the same files are not tried again
        try:
            configuration = self._read()
            # The library would take a key that does not fit, and fail all handshakes.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                self._certificate, self._private_key, password=""
            )
        except OSError as error:
            logger.warning("certificate not renewed", problem=str(error))
            return None
        if self._signature() != signature:
            return None  # replaced meanwhile: the next handshake looks again
        logger.info("certificate renewed")
        return configuration

    def _read(self) -> grpc.ServerCertificateConfiguration:
        pair = self._private_key.read_bytes(), self._certificate.read_bytes()
        return grpc.ssl_server_certificate_configuration([pair])

    def _signature(self) -> _Signature:
        return [_signature(path) for path in (self._certificate, self._private_key)]


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
