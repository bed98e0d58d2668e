"""Issue, change and end of API keys."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.accounts.key_text import KeyText, new_key_text
from fleetcast.accounts.records import ApiKey
from fleetcast.accounts.secret_hash import SecretHasher
from fleetcast.accounts.tenants import known_tenant, unaudited
from fleetcast.config.checks import environment as environment_problem
from fleetcast.errors import OperatorError
from fleetcast.security.master_key import derive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleetcast.accounts.store import ControlStore
    from fleetcast.accounts.tables import Tables
    from fleetcast.accounts.tenants import Audit

SCOPES = ("telemetry:write", "topology:read", "predictions:read")
_PEPPER_LABEL = "fleetcast api key pepper 1"


class IssuedKey(NamedTuple):
    """A new key: its record, and its text, which exists nowhere else."""

    record: ApiKey
    text: KeyText


class Keys:
    """The keys of one data directory. `clock` gives seconds since 1970."""

    def __init__(
        self,
        store: ControlStore,
        pepper: bytes,
        clock: Callable[[], float] = time.time,
        audit: Audit = unaudited,
    ) -> None:
        self._audit = audit
        self._store = store
        self._hasher = SecretHasher(pepper)
        self._clock = clock

    def now(self) -> float:
        """Seconds since 1970, by the clock that ends keys."""
        return self._clock()

    def create(
        self,
        tenant: str,
        *,
        scopes: Sequence[str],
        environment: str,
        name: str = "",
        lifetime_seconds: int | None = None,
    ) -> IssuedKey:
        """Issues a key for `environment`. Raises `OperatorError`, `ControlStoreUnavailable`."""
        issued = self.prepare(
            tenant,
            scopes=scopes,
            environment=environment,
            name=name,
            lifetime_seconds=lifetime_seconds,
        )
        self.add(issued)
        return issued

    def prepare(
        self,
        tenant: str,
        *,
        scopes: Sequence[str],
        environment: str,
        name: str = "",
        lifetime_seconds: int | None = None,
    ) -> IssuedKey:
        """A key that is good once it is added. Raises `OperatorError`."""
        problem = environment_problem(environment)
        if problem:
            message = f"environment {environment!r} {problem}"
            raise OperatorError(message)
        text = new_key_text(environment)
        now = int(self._clock())
        record = ApiKey(
            key_id=text.key_id,
            tenant=tenant,
            name=name,
            scopes=checked_scopes(scopes),
            environment=environment,
            created_at=now,
            expires_at=None if lifetime_seconds is None else now + lifetime_seconds,
            revoked_at=None,
            hash=self._hasher.hash(text.secret),
        )
        return IssuedKey(record, text)

    def add(self, issued: IssuedKey) -> None:
        """Stores a prepared key. Raises `OperatorError`, `ControlStoreUnavailable`."""
        with self._store.write() as tables:
            known_tenant(tables, issued.record.tenant)
            tables.put_key(issued.record)
        self._note("key created", issued.record)

    def all(self, tenant: str) -> list[ApiKey]:
        """A tenant's keys, oldest first. Raises `OperatorError`, `ControlStoreUnavailable`."""
        with self._store.read() as tables:
            known_tenant(tables, tenant)
            return tables.keys_of(tenant)

    def revoke(self, key_id: str) -> ApiKey:
        """Ends a key at once. Raises `OperatorError`, `ControlStoreUnavailable`."""
        with self._store.write() as tables:
            key = _known_key(tables, key_id)
            if key.revoked_at is None:
                key = replace(key, revoked_at=int(self._clock()))
                tables.put_key(key)
        self._note("key revoked", key)
        return key

    def rotate(self, key_id: str, *, overlap_seconds: int) -> IssuedKey:
        """Issues a successor of equal rights and lifetime; the old key ends after the overlap.

        Raises `OperatorError`, `ControlStoreUnavailable`.
        """
        now = int(self._clock())
        with self._store.write() as tables:
            old = _known_key(tables, key_id)
            ended = old.ended(now)
            if ended:
                message = f"key {key_id} is {ended}: create a new one"
                raise OperatorError(message)
            lifetime = None if old.expires_at is None else old.expires_at - old.created_at
            issued = self.prepare(
                old.tenant,
                scopes=old.scopes,
                environment=old.environment,
                name=old.name,
                lifetime_seconds=lifetime,
            )
            tables.put_key(issued.record)
            end = now + overlap_seconds
            end = end if old.expires_at is None else min(end, old.expires_at)
            successor = issued.record.key_id
            tables.put_key(replace(old, expires_at=end, replaced_by=successor))
        self._note("key rotated", issued.record, old_key_id=key_id, old_expires_at=end)
        return issued

    def change(self, key_id: str, *, scopes: Sequence[str], lifetime_seconds: int | None) -> ApiKey:
        """Replaces a key's scopes, and its lifetime as counted from its creation.

        Raises `OperatorError`, `ControlStoreUnavailable`.
        """
        with self._store.write() as tables:
            key = _known_key(tables, key_id)
            end = None if lifetime_seconds is None else key.created_at + lifetime_seconds
            key = replace(key, scopes=checked_scopes(scopes), expires_at=end)
            tables.put_key(key)
        self._note("key changed", key)
        return key

    def _note(self, event: str, key: ApiKey, **details: object) -> None:
        self._audit(
            event,
            tenant=key.tenant,
            key_id=key.key_id,
            scopes=key.scopes,
            environment=key.environment,
            expires_at=key.expires_at,
            **details,
        )


def key_pepper(master_key: bytes) -> bytes:
    """Key of the hashes of secrets."""
    return derive(master_key, _PEPPER_LABEL)


def checked_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    """The scopes once each, in the contract's order. Raises `OperatorError`."""
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        problem = f"scope {unknown[0]!r} is unknown" if unknown else "a key needs a scope"
        message = f"{problem}: choose out of {', '.join(SCOPES)}"
        raise OperatorError(message)
    return tuple(scope for scope in SCOPES if scope in scopes)


def _known_key(tables: Tables, key_id: str) -> ApiKey:
    key = tables.key(key_id) if key_id.isascii() and key_id else None
    if key is None:
        message = f"there is no key {key_id}"
        raise OperatorError(message)
    return key
