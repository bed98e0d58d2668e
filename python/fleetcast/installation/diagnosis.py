"""Diagnosis of an installation: its directory, settings, keys, certificate and stores."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.accounts import ControlStore, ControlStoreUnavailable, Tenant
from fleetcast.engine import Engine
from fleetcast.errors import OperatorError, SettingsError, StoreError
from fleetcast.security.certificate import certificate_end
from fleetcast.security.master_key import load_master_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fleetcast.config import Settings
    from fleetcast.installation.directory import DataDirectory

_OTHERS_MAY = 0o077


class Finding(NamedTuple):
    """Outcome of one check."""

    check: str
    ok: bool
    detail: str


def diagnose(directory: DataDirectory, environ: Mapping[str, str]) -> list[Finding]:
    """Checks an installation; leaves out checks that rest on one that failed."""
    findings: list[Finding] = []
    try:
        settings = directory.settings(environ).settings
    except SettingsError as error:
        return [Finding("settings", ok=False, detail="; ".join(error.problems))]
    except OperatorError as error:
        return [Finding("data directory", ok=False, detail=str(error))]
    findings.append(
        Finding("settings", ok=True, detail=f"environment {settings.service.environment}")
    )
    findings.append(_private("data directory", directory.root))
    if not settings.security.master_key_command:
        findings.append(
            _private("master key file", directory.root / settings.security.master_key_file)
        )
    if settings.grpc.address != "off":
        findings.append(_attempt("gRPC certificate", lambda: _certificate(directory, settings)))
    store = ControlStore(directory.control)
    try:
        return findings + _stores(directory, settings, store)
    finally:
        store.close()


def _stores(directory: DataDirectory, settings: Settings, store: ControlStore) -> list[Finding]:
    try:
        master_key = load_master_key(directory.root, settings.security)
        store.verify_master_key(master_key)
        with store.read() as tables:
            tenants = tables.tenants()
    except (OperatorError, ControlStoreUnavailable) as error:
        return [Finding("control store", ok=False, detail=str(error))]
    engine = Engine(directory.planes, master_key)
    findings = [Finding("control store", ok=True, detail=f"{len(tenants)} tenants")]
    findings += [
        _attempt(f"tenant {tenant.name}", partial(_plane, engine, tenant)) for tenant in tenants
    ]
    known = {tenant.account_id for tenant in tenants}
    unused = [path.name for path in directory.planes.iterdir() if path.name not in known]
    if unused:
        detail = f"no tenant has {', '.join(sorted(unused))}: left by an interrupted command"
        findings.append(Finding("unused planes", ok=True, detail=detail))
    return findings


def _attempt(check: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(check, ok=True, detail=look())
    except (OSError, ValueError, OperatorError, StoreError) as error:
        return Finding(check, ok=False, detail=str(error))


def _private(check: str, path: Path) -> Finding:
    try:
        mode = path.stat().st_mode & 0o777
    except OSError as error:
        return Finding(check, ok=False, detail=f"{path}: {error.strerror}")
    ok = not mode & _OTHERS_MAY
    return Finding(
        check, ok=ok, detail=f"{path} has mode {mode:04o}" + ("" if ok else ", too open")
    )


def _certificate(directory: DataDirectory, settings: Settings) -> str:
    (directory.root / settings.grpc.private_key).read_bytes()
    end = certificate_end(directory.root / settings.grpc.certificate)
    if end <= datetime.now(UTC):
        message = f"expired on {end:%Y-%m-%d}"
        raise OperatorError(message)
    return f"valid until {end:%Y-%m-%d}"


def _plane(engine: Engine, tenant: Tenant) -> str:
    plane = engine.plane(tenant.account_id, tenant.name)
    plane.ping()
    detail = f"{plane.stats().rows} rows"
    engine.release(tenant.account_id)
    return detail
