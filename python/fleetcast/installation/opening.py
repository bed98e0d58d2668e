"""Opening of an installation for one command."""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetcast.accounts import ConsoleSessions, Keys, Operators, Tenants
from fleetcast.installation.backend import stores_of
from fleetcast.installation.read_only import readable
from fleetcast.security.master_key import load_master_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleetcast.accounts import ControlStore
    from fleetcast.config import Settings
    from fleetcast.engine import Engine
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.installation.stores import Stores


@dataclass(frozen=True)
class Installation:
    """An open data directory, for one command."""

    settings: Settings
    master_key: bytes = field(repr=False)
    stores: Stores
    tenants: Tenants
    keys: Keys
    operators: Operators
    sessions: ConsoleSessions

    @property
    def store(self) -> ControlStore:
        """Tenants and keys."""
        return self.stores.control

    @property
    def engine(self) -> Engine:
        """Telemetry of all tenants."""
        return self.stores.engine


@contextmanager
def opened(
    directory: DataDirectory,
    environ: Mapping[str, str],
    *,
    to_read: bool = False,
    to_scan: bool = False,
) -> Iterator[Installation]:
    """Opens a data directory while the service or other commands may use it.

    With `to_read` the data directory is not changed, and its file system may be read-only. Set
    `to_scan` as well if planes are to be scanned. Raises `OperatorError`,
    `ControlStoreUnavailable`, `OSError`.
    """
    settings = directory.settings(environ).settings
    master_key = load_master_key(directory.root, settings.security)
    with ExitStack() as stack:
        place = stack.enter_context(readable(directory, to_scan=to_scan)) if to_read else directory
        stores = stack.enter_context(closing(stores_of(place, settings, master_key)))
        stores.prepare()
        audit = stores.audit()
        tenants = Tenants(stores.control, stores.engine, audit=audit)
        keys = Keys(stores.control, audit=audit)
        operators = Operators(stores.control, audit=audit)
        sessions = ConsoleSessions(stores.control, audit=audit)
        yield Installation(settings, master_key, stores, tenants, keys, operators, sessions)
