"""Clients of the service: `GatewayWriter` sends over gRPC, `Client` writes and reads over HTTP."""

from fleetcast.client.connection import ApiError
from fleetcast.client.gateway import GatewayWriter, Options
from fleetcast.client.http import Client
from fleetcast.client.records import Record
from fleetcast.client.results import RefusedBatch, Tally
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
