"""Calls, planes and keys that a test sets, around the handlers of gRPC."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import grpc.aio

from fleetcast.accounts import Identity, InvalidKey
from fleetcast.config import Settings
from fleetcast.errors import refused
from fleetcast.grpc.call import Call
from fleetcast.grpc.services import GrpcServices
from fleetcast.metrics import Totals

SILENCE = object()


def identity(**changes):
    values = {
        "account_id": "a1",
        "tenant_key": "acme",
        "key_id": "k1",
        "environment": "sandbox",
        "scopes": frozenset({"telemetry:write"}),
        "plan": "pro",
        "live_ingest": True,
        "status": "active",
    }
    return Identity(**{**values, **changes})


class Keys:
    """Keys in a dictionary, none of which is checked at once; an exception is raised."""

    def __init__(self, **known):
        self.known = {"good": identity(), **known}

    def writer(self, _key):
        return None

    def authenticate(self, key):
        if key is None:
            raise refused("auth_failed")
        found = self.known.get(key, InvalidKey("auth_failed", {}))
        if isinstance(found, Exception):
            raise found
        return found


@dataclass
class Context:
    """A call with a good key; remembers how it was ended."""

    metadata: tuple = (("x-api-key", "good"),)
    messages: tuple = ()
    ended: tuple = ()
    reading: asyncio.Event = field(default_factory=asyncio.Event)

    def invocation_metadata(self):
        return self.metadata

    def peer(self):
        return "ipv4:192.0.2.1:5"

    async def read(self):
        self.reading.set()
        first, *rest = (*self.messages, grpc.aio.EOF)
        self.messages = tuple(rest)
        return first if first != SILENCE else await asyncio.Event().wait()

    async def abort(self, status, details="", trailers=()):
        self.ended = (status.name, details, dict(trailers))
        raise grpc.aio.AbortError


@dataclass
class Plane:
    """Writes when it may go on; raises `error` where there is one."""

    error: Exception | None = None
    may_go_on: threading.Event = field(default_factory=threading.Event)
    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def write_protobuf(self, body, **_limits):
        self.entered.release()
        self.may_go_on.wait()
        if self.error is not None:
            raise self.error
        return SimpleNamespace(
            write_id="w",
            accepted_count=len(body),
            rejected_indices=[],
            clamped_count=0,
            no_entity_count=0,
            other_measurement_count=0,
            commit_seconds=0.0,
        )


class Planes:
    """None of them is open."""

    def __init__(self, plane):
        self.one = plane
        self.by_account = {}
        self.released = []

    def opened(self, _account_id):
        return None

    def plane(self, account_id, _tenant_key):
        return self.by_account.get(account_id, self.one)

    def release(self, account_id, plane=None):
        self.released.append((account_id, plane))


def services(plane, log=None, **keys):
    ingest = replace(Settings().ingest, buffer_bytes_max=1_048_576)
    settings = replace(Settings(), ingest=ingest)
    return GrpcServices(
        settings=lambda: settings,
        authenticator=Keys(**keys),
        engine=Planes(plane),
        access_log=[].append if log is None else log.append,
    )


def write(ingest, body):
    return ingest.write(None, Call(Context(messages=(body,)), "TelemetryIngest/Write"))


def accepted(parts):
    name = 'fleetcast_records_accepted_total{tenant="acme",transport="grpc"}'
    return Totals(parts.counters.shared).of(name)
