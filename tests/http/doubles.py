"""Small stand-ins for what the HTTP surface consumes, and an app on top of them."""

import json
from dataclasses import dataclass, field
from types import SimpleNamespace

from falcon.testing import TestClient

from fleetcast.accounts import ControlStoreUnavailable, Identity, InvalidKey
from fleetcast.config import Settings
from fleetcast.errors import refused
from fleetcast.http.app import create_app
from fleetcast.http.services import HttpServices

ALL_SCOPES = frozenset({"telemetry:write", "topology:read", "predictions:read"})


def identity(**changes):
    values = {
        "account_id": "a1",
        "tenant_key": "acme",
        "key_id": "k1",
        "environment": "sandbox",
        "scopes": ALL_SCOPES,
        "plan": "pro",
        "live_ingest": True,
        "status": "active",
    }
    return Identity(**{**values, **changes})


class Keys:
    """Keys in a dictionary; a value that is an exception is raised."""

    def __init__(self, **known):
        self.known = {"good": identity(), **known}

    def authenticate(self, key_text):
        if key_text is None:
            raise refused("auth_failed")
        found = self.known.get(key_text, InvalidKey())
        if isinstance(found, Exception):
            raise found
        return found


@dataclass
class Plane:
    """Remembers what it was asked; raises `error` where there is one."""

    error: Exception | None = None
    asked: dict = field(default_factory=dict)

    def write_json(self, body, **limits):
        self._ask(body=body, **limits)
        answer = {"write_id": "w1", "accepted_count": 2, "rejected_count": 1}
        return SimpleNamespace(
            answer=lambda: json.dumps({**answer, "rejected_indices": [1]}).encode(),
            accepted_count=2,
            rejected_indices=[1],
            clamped_count=1,
            no_entity_count=0,
            other_measurement_count=0,
            commit_seconds=0.002,
        )

    def latest_answer(self, **asked):
        self._ask(**asked)
        return [b'{"entities":', b"[]}"]

    def series_answer(self, **asked):
        self._ask(**asked)
        return [b'{"series":', b"[]}"]

    def stats(self):
        self._ask()
        return SimpleNamespace(
            rows=5, values=9, batches=2, rejected=1, series=3, log_bytes=7, stored_bytes=8
        )

    def _ask(self, **asked):
        self.asked = asked
        if self.error is not None:
            raise self.error


class Planes:
    def __init__(self, plane, error=None):
        self._plane, self._error, self.released = plane, error, []

    def plane(self, account_id, tenant_key):
        assert (account_id, tenant_key) == ("a1", "acme")
        if self._error is not None:
            raise self._error
        return self._plane

    def release(self, account_id, plane):
        self.released.append((account_id, plane))


class Open:
    """A limiter that lets everything pass."""

    def admit(self, address):
        pass

    check_lockout = record_failure = admit


class Counter:
    """A limiter that counts, and refuses what it is told to."""

    def __init__(self, refuse=None):
        self.refuse, self.admitted, self.failures = refuse, 0, 0

    def admit(self, address):
        assert address == "127.0.0.1"
        self.admitted += 1
        if self.refuse == "rate_limited":
            raise refused("rate_limited", retry_after_seconds=7)

    def check_lockout(self, address):
        assert address == "127.0.0.1"
        if self.refuse == "auth_lockout":
            raise refused("auth_lockout", retry_after_seconds=9)

    def record_failure(self, address):
        assert address == "127.0.0.1"
        self.failures += 1


def client(
    *, plane=None, plane_error=None, planes=None, keys=None, settings=None, limiter=None, **services
):
    parts = HttpServices(
        settings=settings or Settings(),
        authenticator=keys or Keys(down=ControlStoreUnavailable("gone")),
        engine=planes or Planes(plane or Plane(), plane_error),
        limiter=limiter or Open(),
        clock=lambda: 0,
        **services,
    )
    return TestClient(create_app(parts), headers={"x-api-key": "good"})
