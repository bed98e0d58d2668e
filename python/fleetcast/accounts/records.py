"""Records of the control store: tenants, keys, operator tokens, console sessions and usage.

Times are whole seconds since 1970 in UTC.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

SESSION_IDLE_SECONDS = 30 * 60
"""A console session ends this long after its last request."""
_USED_AHEAD_SECONDS_MAX = 60  # time services set a clock back by less


@dataclass(frozen=True, kw_only=True)
class _Record:
    def encode(self) -> bytes:
        """The bytes of the record, JSON."""
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True, kw_only=True)
class Tenant(_Record):
    """A customer: `name` is its slug and its `tenant_key`, `account_id` names its data plane."""

    name: str
    account_id: str
    plan: str
    live_ingest: bool
    retention_seconds: int | None
    disabled: bool
    created_at: int

    @property
    def status(self) -> str:
        """`active` or `disabled`."""
        return "disabled" if self.disabled else "active"

    @staticmethod
    def decode(data: bytes) -> Tenant:
        """Raises `ValueError` or `TypeError` where the bytes are no tenant."""
        return Tenant(**json.loads(data))


@dataclass(frozen=True, kw_only=True)
class ApiKey(_Record):
    """A key as it is stored: of its secret only a keyed hash, in hexadecimal.

    `replaced_by` is the id of the key that it was last rotated to. Times do not say which of two
    came later: both may be of one second, or a clock was set back in between.
    """

    key_id: str
    tenant: str
    name: str
    scopes: tuple[str, ...]
    environment: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    hash: str
    replaced_by: str | None = None

    def ended(self, now: float) -> str | None:
        """`revoked` or `expired` where the key is no longer good."""
        return _ended(self.revoked_at, self.expires_at, now)

    @staticmethod
    def decode(data: bytes) -> ApiKey:
        """Raises `ValueError`, `TypeError` or `KeyError` where the bytes are no key."""
        values = json.loads(data)
        return ApiKey(**(values | {"scopes": tuple(values["scopes"])}))


@dataclass(frozen=True, kw_only=True)
class OperatorToken(_Record):
    """A token that opens the console, as it is stored: of its secret only a keyed hash."""

    token_id: str
    name: str
    created_at: int
    expires_at: int
    revoked_at: int | None
    hash: str

    def ended(self, now: float) -> str | None:
        """`revoked` or `expired` where the token is no longer good."""
        return _ended(self.revoked_at, self.expires_at, now)

    @staticmethod
    def decode(data: bytes) -> OperatorToken:
        """Raises `ValueError` or `TypeError` where the bytes are no token."""
        return OperatorToken(**json.loads(data))


@dataclass(frozen=True, kw_only=True)
class ConsoleSession(_Record):
    """A session at the console, as it is stored: of its secret only a keyed hash."""

    session_id: str
    token_id: str
    address: str
    opened_at: int
    used_at: int
    expires_at: int
    hash: str

    def ended(self, now: float) -> bool:
        """Returns true if the session is over, or nobody used it for half an hour.

        A session that was used more than a minute from now was used under a wrong clock: nobody
        knows when, so it has ended.
        """
        idle_seconds = now - self.used_at
        is_in_use = -_USED_AHEAD_SECONDS_MAX <= idle_seconds < SESSION_IDLE_SECONDS
        return now >= self.expires_at or not is_in_use

    @staticmethod
    def decode(data: bytes) -> ConsoleSession:
        """Raises `ValueError` or `TypeError` where the bytes are no session."""
        return ConsoleSession(**json.loads(data))


@dataclass(frozen=True, kw_only=True)
class UsageRecord(_Record):
    """Requests of an account, `counted` of them in the run named `run`."""

    requests: int
    run: str
    counted: int

    @staticmethod
    def decode(data: bytes) -> UsageRecord:
        """Raises `ValueError` or `TypeError` where the bytes are no usage."""
        return UsageRecord(**json.loads(data))


def _ended(revoked_at: int | None, expires_at: int | None, now: float) -> str | None:
    if revoked_at is not None:
        return "revoked"
    return "expired" if expires_at is not None and expires_at <= now else None
