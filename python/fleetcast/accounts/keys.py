"""API keys: how they are issued, changed and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NotRequired, TypedDict, Unpack

from fleetcast.accounts.audited import AuditedRecords
from fleetcast.accounts.store import KEY_PEPPER
from fleetcast.accounts.tenants import known_tenant
from fleetcast.config.checks import environment as environment_problem
from fleetcast.engine import ApiKey, SecretText, routes
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetcast.engine import RecordsTransaction

SCOPES = tuple(dict.fromkeys(scope for *_, scope, _, _ in routes(is_adapters=False) if scope))
"""Rights that routes ask for, in the order of the contract. Example: `telemetry:write`."""


class IssuedKey(NamedTuple):
    """A new key: its record and its text. Only the hash of the text is stored."""

    record: ApiKey
    text: SecretText


class KeyRequest(TypedDict):
    """Rights and lifetime of a new key."""

    scopes: Sequence[str]
    environment: str
    name: NotRequired[str]
    lifetime_seconds: NotRequired[int | None]


class Keys(AuditedRecords):
    """The API keys of one data directory."""

    PEPPER = KEY_PEPPER

    def create(self, tenant: str, **request: Unpack[KeyRequest]) -> IssuedKey:
        """Issues a key for an environment. Raises `OperatorError`, `ControlStoreUnavailable`."""
        issued = self.prepare(tenant, **request)
        self.add(issued)
        return issued

    def prepare(self, tenant: str, **request: Unpack[KeyRequest]) -> IssuedKey:
        """Makes a key that is valid once `add` has stored it.

        Raises `OperatorError`, `ControlStoreUnavailable`.
        """
        environment, lifetime_seconds = request["environment"], request.get("lifetime_seconds")
        problem = environment_problem(environment)
        if problem:
            message = f"environment {environment!r} {problem}"
            raise OperatorError(message)
        text = SecretText("key", environment)
        now = self.now()
        record = ApiKey(
            key_id=text.id,
            tenant=tenant,
            name=request.get("name", ""),
            scopes=checked_scopes(request["scopes"]),
            environment=environment,
            created_at=now,
            expires_at=None if lifetime_seconds is None else now + lifetime_seconds,
            revoked_at=None,
            hash=text.hash(self._pepper),
        )
        return IssuedKey(record, text)

    def add(self, issued: IssuedKey) -> None:
        """Stores a prepared key. Raises `OperatorError`, `ControlStoreUnavailable`."""
        with self._store.write() as view:
            known_tenant(view, issued.record.tenant)
            issued.record.put(view)
        self._note("key created", issued.record)

    def all(self, tenant: str) -> list[ApiKey]:
        """Returns a tenant's keys, oldest first.

        Raises `OperatorError`, `ControlStoreUnavailable`.
        """
        with self._store.read() as view:
            known_tenant(view, tenant)
            return keys_by_tenant(view).get(tenant, [])

    def revoke(self, key_id: str) -> ApiKey:
        """Ends a key at once. Raises `OperatorError`, `ControlStoreUnavailable`."""
        with self._store.write() as view:
            key = _known_key(view, key_id)
            if key.revoked_at is None:
                key = key.replace(revoked_at=self.now())
                key.put(view)
        self._note("key revoked", key)
        return key

    def rotate(self, key_id: str, *, overlap_seconds: int) -> IssuedKey:
        """Issues a key with the same rights and lifetime; the old key ends after the overlap.

        Raises `OperatorError`, `ControlStoreUnavailable`.

        Example: with an overlap of 3600, clients have an hour to change to the new key.
        """
        now = self.now()
        with self._store.write() as view:
            old = _known_key(view, key_id)
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
            issued.record.put(view)
            end = now + overlap_seconds
            end = end if old.expires_at is None else min(end, old.expires_at)
            old.replace(expires_at=end, replaced_by=issued.record.key_id).put(view)
        self._note("key rotated", issued.record, old_key_id=key_id, old_expires_at=end)
        return issued

    def change(self, key_id: str, *, scopes: Sequence[str], lifetime_seconds: int | None) -> ApiKey:
        """Replaces a key's scopes, and its lifetime in seconds from its creation.

        Raises `OperatorError`, `ControlStoreUnavailable`.
        """
        with self._store.write() as view:
            key = _known_key(view, key_id)
            end = None if lifetime_seconds is None else key.created_at + lifetime_seconds
            key = key.replace(scopes=checked_scopes(scopes), expires_at=end)
            key.put(view)
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


def keys_by_tenant(view: RecordsTransaction) -> dict[str, list[ApiKey]]:
    """Returns the keys of each tenant that has keys, oldest first."""
    found: dict[str, list[ApiKey]] = {}
    for key in sorted(ApiKey.all(view).values(), key=lambda key: (key.created_at, key.key_id)):
        found.setdefault(key.tenant, []).append(key)
    return found


def checked_scopes(scopes: Sequence[str]) -> list[str]:
    """Returns each scope once, in the contract's order. Raises `OperatorError`."""
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        problem = f"scope {unknown[0]!r} is unknown" if unknown else "a key needs a scope"
        message = f"{problem}: choose out of {', '.join(SCOPES)}"
        raise OperatorError(message)
    return [scope for scope in SCOPES if scope in scopes]


def _known_key(view: RecordsTransaction, key_id: str) -> ApiKey:
    key = ApiKey.get(view, key_id)
    if key is None:
        message = f"there is no key {key_id}"
        raise OperatorError(message)
    return key
