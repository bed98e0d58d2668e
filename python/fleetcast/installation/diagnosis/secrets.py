"""Checks of files with secrets, and of the certificate of gRPC."""

from __future__ import annotations

import ssl
import stat
import tomllib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from fleetcast.config import SETTINGS_FILE
from fleetcast.config.sections import POSTGRESQL
from fleetcast.errors import OperatorError, reason
from fleetcast.installation.diagnosis.finding import Finding
from fleetcast.installation.diagnosis.turns import check_turn
from fleetcast.security.certificate import certificate_end, read_hosts
from fleetcast.security.master_key import exposure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory

_OTHERS_MAY = 0o077
_SOON = timedelta(days=30)
_CHECK = "gRPC certificate"


def check_secrets(directory: DataDirectory, settings: Settings) -> Iterator[Finding]:
    """Checks the files of the master key and the database's password, and the certificate."""
    yield from check_turn(directory, settings)
    if not settings.security.master_key_command:
        yield _key_file(directory.root / settings.security.master_key_file)
    if settings.store.backend == POSTGRESQL:
        yield _settings_file(directory.root / SETTINGS_FILE)
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


def _settings_file(path: Path) -> Finding:
    """Checks the settings file, which may hold the database's password in a URL."""
    check = "settings file"
    mode = stat.S_IMODE(path.stat().st_mode)
    names_database = "database" in tomllib.loads(path.read_text()).get("store", {})
    if names_database and mode & _OTHERS_MAY:
        detail = f"{path} has mode {mode:04o}, so others can read the password of the database"
        return Finding.failure(check, detail, f"chmod 600 {path}, and give it another password")
    return Finding.good(check, f"{path} has mode {mode:04o}")


def _certificate(directory: DataDirectory, settings: Settings) -> Finding:
    certificate = directory.root / settings.grpc.certificate
    own = directory.has_own_certificate(settings)
    advice = "fleetcast tls renew" if own else "renew it where it came from"
    try:
        directory.grpc_authority(settings)
        end = certificate_end(certificate)
        hosts = ", ".join(read_hosts(certificate)) or "no host"
    except ValueError:
        return Finding.failure(_CHECK, f"{certificate}: holds no certificate in PEM", advice)
    except (OSError, OperatorError) as error:
        return Finding.failure(_CHECK, reason(error), advice)
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
