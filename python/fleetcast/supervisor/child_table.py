"""Table of the children that a service has, with the sockets that outlive them."""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from fleetcast.config.name_mapping import read_names
from fleetcast.supervisor.inherited_sockets import refuse_unused
from fleetcast.supervisor.listening import bound_address, listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from fleetcast.config import Settings
    from fleetcast.config.address import Address
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.supervisor.listening import InheritedSocket

_OFF = "off"

logger = logging.getLogger(__name__)

# While much is written, compaction takes tens of megabytes for a moment, again and again. The
# engine's allocator returns memory that was free for a second, which is just too soon. Clearing the
# pages again took a seventh of the CPU of a compaction.
_MAINTENANCE_ENVIRONMENT = {"MIMALLOC_PURGE_DELAY": "10000"}
# Without this, the engine's allocator begins with two or three huge pages in each process. Only
# compaction is faster by them.
_SERVING_ENVIRONMENT = {"MIMALLOC_ARENA_EAGER_COMMIT": "0"}
_GRPC_ENVIRONMENT = _SERVING_ENVIRONMENT | {
    # The library's core writes lines in a format other than JSON to stderr.
    "GRPC_VERBOSITY": "NONE",
    # Before 2.40, glibc copies 2 KiB and more by `rep movsb`. On AMD's processors that is slow if
    # the target is not aligned. Frames of HTTP/2 are never aligned: a quarter of the CPU of a
    # message.
    "GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1073741824",
}


@dataclass(frozen=True)
class ChildSpec:
    """A row of the table: the module to run, and how many of its processes become ready."""

    name: str
    listener: socket.socket | None = None
    processes: int = 1
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Variables that the child gets unless the environment of the service has them."""

    @property
    def module(self) -> str:
        """Name of the module that is the child's program."""
        return f"fleetcast.supervisor.{self.name}_child"


@dataclass(frozen=True)
class ChildTable:
    """Children in the order in which they are stopped, and the ready line of their addresses."""

    children: list[ChildSpec]
    ready: dict[str, str | None]


def child_table(
    directory: DataDirectory,
    settings: Settings,
    inherited: dict[Address, InheritedSocket],
    *,
    after_crash: bool,
) -> ChildTable:
    """Opens the sockets, except those that are inherited.

    Raises `OperatorError` for a port in use, an inherited socket that no listener has, a lost
    certificate or a faulty `adapters.toml`.
    """
    listening = partial(listen, inherited=inherited, after_crash=after_crash)
    http = listening(settings.http.address)
    grpc, authority = None, None
    if settings.grpc.address != _OFF:
        authority = directory.grpc_authority(settings)
        grpc = listening(settings.grpc.address)
    admin = None
    if settings.admin.address != _OFF:
        admin = listening(settings.admin.address)
        _warn_if_open(bound_address(admin))

    adapters = None
    if settings.adapters.address != _OFF:
        read_names(directory.adapters)
        adapters = listening(settings.adapters.address)
    refuse_unused(inherited)

    serving = partial(ChildSpec, environment=_SERVING_ENVIRONMENT)
    children = [serving("http", http, settings.http.workers)]
    if grpc is not None:
        children += [
            ChildSpec("grpc", grpc, environment=_GRPC_ENVIRONMENT)
        ] * settings.grpc.processes
    if adapters is not None:
        children.append(serving("adapters", adapters, settings.adapters.workers))
    children.append(ChildSpec("maintenance", environment=_MAINTENANCE_ENVIRONMENT))
    if admin is not None:
        children.append(serving("admin", admin))
    ready = {
        "event": "ready",
        "http": _url(http),
        "grpc": None if grpc is None else str(bound_address(grpc)),
        "grpc_ca": None if authority is None else str(authority),
        "admin": None if admin is None else _url(admin),
    }
    if adapters is not None:
        ready["adapters"] = _url(adapters)
    return ChildTable(children, ready)


def _warn_if_open(admin: Address) -> None:
    """Warns if other machines can reach the private listener, which asks for no key."""
    if not ipaddress.ip_address(admin.host).is_loopback:
        logger.warning("whoever reaches admin.address may read it", extra={"address": str(admin)})


def _url(listener: socket.socket) -> str:
    return f"http://{bound_address(listener)}"
