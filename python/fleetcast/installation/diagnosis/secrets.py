"""Checks of the master key's file and of the certificate of gRPC."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError
from fleetcast.installation.diagnosis.finding import Finding
from fleetcast.security.certificate import certificate_end, read_hosts
from fleetcast.security.master_key import exposure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory

_SOON = timedelta(days=30)
_CHECK = "gRPC certificate"


def check_secrets(directory: DataDirectory, settings: Settings) -> Iterator[Finding]:
    """File of the master key, certificate."""
    if not settings.security.master_key_command:
        yield _key_file(directory.root / settings.security.master_key_file)
    if settings.grpc.address != "off":
        yield _certificate(directory, settings)


def _key_file(path: Path) -> Finding:
    try:
        problem = exposure(path)
    except OSError as error:
        detail = f"{path}: {error.strerror}"
        advice = "put back the copy you kept: without it nothing that is stored can be read"
        return Finding.failure("master key file", detail, advice)
    if problem:
        detail, _, advice = problem.rpartition(": ")
        return Finding.failure("master key file", detail, advice)
    return Finding.good("master key file", f"{path} is its owner's alone")


def _certificate(directory: DataDirectory, settings: Settings) -> Finding:
    certificate = directory.root / settings.grpc.certificate
    own = directory.has_own_certificate(settings)
    advice = "fleetcast tls renew" if own else "renew it where it came from"
    try:
        directory.grpc_authority(settings)
        end = certificate_end(certificate)
        hosts = ", ".join(read_hosts(certificate)) or "no host"
    except (OSError, ValueError, OperatorError) as error:
        return Finding.failure(_CHECK, str(error), advice)
    try:
        pair = certificate, directory.root / settings.grpc.private_key
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*pair, password="")
    except OSError:
        return Finding.failure(_CHECK, "its private key is not its own, or is encrypted", advice)
    detail = f"for {hosts}, valid until {end:%Y-%m-%d}"
    now = datetime.now(UTC)
    if end <= now:
        return Finding.failure(_CHECK, f"expired on {end:%Y-%m-%d}", advice)
    if end <= now + _SOON:
        return Finding.warning(_CHECK, detail, advice)
    return Finding.good(_CHECK, detail)
