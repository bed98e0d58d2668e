"""Clients of the service: `GatewayWriter` sends over gRPC, `Client` writes and reads over HTTP.

`GatewayWriter` needs the gRPC package (extra `client`), which is loaded on the first use of the
class. `Client` needs no other package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fleetcast.client.connection import ApiError
from fleetcast.client.http import Client
from fleetcast.client.records import Record
from fleetcast.client.results import RefusedBatch, Tally
from fleetcast.client.spool import SpoolFull, SpoolInUse
from fleetcast.extras import naming_the_extra

if TYPE_CHECKING:
    from fleetcast.client.gateway import GatewayWriter, Options

__all__ = [
    "ApiError",
    "Client",
    "GatewayWriter",
    "Options",
    "Record",
    "RefusedBatch",
    "SpoolFull",
    "SpoolInUse",
    "Tally",
]


_OF_GATEWAY = {"GatewayWriter", "Options"}


def __getattr__(name: str) -> object:
    if name not in _OF_GATEWAY:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    with naming_the_extra():
        gateway = import_module("fleetcast.client.gateway")
    found: object = getattr(gateway, name)
    globals()[name] = found
    return found
