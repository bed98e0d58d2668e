"""Clients of the service: `GatewayWriter` sends over gRPC, `Client` writes and reads over HTTP."""

from fleetcast.client.gateway import GatewayWriter, Options, RefusedBatch, Tally
from fleetcast.client.http import ApiError, Client
from fleetcast.client.records import Record
from fleetcast.client.spool import SpoolFull

__all__ = [
    "ApiError",
    "Client",
    "GatewayWriter",
    "Options",
    "Record",
    "RefusedBatch",
    "SpoolFull",
    "Tally",
]
