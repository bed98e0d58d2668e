"""The one pipeline: every request passes the stages of `docs/contract.md` in their order.

A stage refuses by raising; what it raises becomes an answer in `answers`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from fleetcast.accounts import InvalidKey
from fleetcast.errors import StoreError, refused
from fleetcast.http import body
from fleetcast.http.accounting import audit_failure
from fleetcast.http.client_address import ClientAddress
from fleetcast.metrics import label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.accounts import Authenticator
    from fleetcast.engine import Engine
    from fleetcast.http.call import Call, Route
    from fleetcast.http.client_limiter import ClientLimiter
    from fleetcast.http.services import HttpServices

logger = logging.getLogger(__name__)


class Stage(Protocol):
    """One check. Sets what it found out on the call, or raises."""

    def __call__(self, call: Call) -> None:
        """Raises `Refused`."""


def stages(services: HttpServices, routes: Mapping[str, Route]) -> Sequence[Stage]:
    """The order is the contract; most questions of precedence are answered by it."""
    return (
        RateLimit(services.limiter, ClientAddress(services.settings.http.trusted_proxies)),
        Routing(routes),
        Options(),
        Lockout(services.limiter),
        Key(services.authenticator, services.limiter),
        OverShare(services),
        Tenant(services.engine),
        Scope(),
        Entitlement(),
        Body(services.settings.limits.body_bytes_max),
    )


class RateLimit:
    """Every request counts, whatever becomes of it."""

    def __init__(self, limiter: ClientLimiter, addresses: ClientAddress) -> None:
        self._limiter = limiter
        self._addresses = addresses

    def __call__(self, call: Call) -> None:
        """Raises `Refused` (`rate_limited`)."""
        request = call.request
        call.address = self._addresses.of(
            request.remote_addr, request.get_header("X-Forwarded-For")
        )
        if not request.env.get("fleetcast.admitted", False):  # else it was counted with its head
            self._limiter.admit(call.address)


class Routing:
    """Paths match exactly: no trailing slash, no double one, no other spelling."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self._routes = routes

    def __call__(self, call: Call) -> None:
        """Raises `Refused` (`not_found`, `method_not_allowed`)."""
        request = call.request
        route = self._routes.get(request.env.get("RAW_PATH", request.path))
        if route is None:
            raise refused("not_found")
        call.path = request.path
        call.route = route
        if request.method not in route.allowed:
            raise refused("method_not_allowed", allow=route.allow)


class Options:
    """Answers OPTIONS without a key: a preflight cannot carry one."""

    def __call__(self, call: Call) -> None:
        """Ends the request with 204."""
        if call.request.method == "OPTIONS":
            call.response.status = 204
            call.response.set_header("Allow", call.route.allow)
            call.response.complete = True


class Lockout:
    """While it lasts, a valid key is refused as well."""

    def __init__(self, limiter: ClientLimiter) -> None:
        self._limiter = limiter

    def __call__(self, call: Call) -> None:
        """Raises `Refused` (`auth_lockout`)."""
        if call.route.authenticated:
            self._limiter.check_lockout(call.address)


class Key:
    """Key and tenant record; only a key that was sent and is no good counts as failure."""

    def __init__(self, authenticator: Authenticator, limiter: ClientLimiter) -> None:
        self._authenticator = authenticator
        self._limiter = limiter

    def __call__(self, call: Call) -> None:
        """Raises `Refused` (401; 403 and 404 for the tenant), `ControlStoreUnavailable`."""
        if not call.route.authenticated:
            return
        try:
            call.identity = self._authenticator.authenticate(call.request.get_header("X-Api-Key"))
        except InvalidKey:
            self._limiter.record_failure(call.address)
            audit_failure(call, self._limiter)
            raise


class OverShare:
    """What is too much for its tenant gets no further; health is always told."""

    def __init__(self, services: HttpServices) -> None:
        self._counters = services.counters
        self._refused = self._counters.counter(
            label("fleetcast_refused_over_share_total", surface="http")
        )
        self._backend = services.settings.store.backend

    def __call__(self, call: Call) -> None:
        """Raises `Refused` (`ingest_buffer_full` for a write, else `telemetry_unavailable`)."""
        if not call.route.authenticated or self._within_share(call):
            return
        self._counters.add(self._refused)
        if call.route.ingest:
            raise refused("ingest_buffer_full")
        raise refused("telemetry_unavailable", upstream=self._backend)

    def _within_share(self, call: Call) -> bool:
        variables = call.request.env
        if variables.get("fleetcast.over_share", False):
            return False
        claim = variables.get("fleetcast.claim")
        return claim is None or bool(claim(call.identity.account_id))


class Tenant:
    """Opens the tenant's own store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __call__(self, call: Call) -> None:
        """Raises `Refused` (`tenant_unavailable`)."""
        if not call.route.authenticated:
            return
        try:
            call.plane = self._engine.plane(call.identity.account_id, call.identity.tenant_key)
        except StoreError as error:
            # The log says what the client is not told.
            logger.error(  # noqa: TRY400 - the message says all
                "store cannot be opened: %s", error, extra={"request_id": call.request_id}
            )
            raise refused("tenant_unavailable") from error


class Scope:
    """The key must carry the route's scope."""

    def __call__(self, call: Call) -> None:
        """Raises `Refused` (`insufficient_scope`)."""
        if call.route.scope is not None and call.route.scope not in call.identity.scopes:
            raise refused("insufficient_scope")


class Entitlement:
    """The account must be allowed to write."""

    def __call__(self, call: Call) -> None:
        """Raises `Refused` (`live_ingest_not_entitled`)."""
        if call.route.ingest and not call.identity.live_ingest:
            raise refused("live_ingest_not_entitled")


class Body:
    """Header checks first, then the bytes."""

    def __init__(self, body_bytes_max: int) -> None:
        self._body_bytes_max = body_bytes_max

    def __call__(self, call: Call) -> None:
        """Raises `Refused` (411, 413, 415, 422, 400).

        Ends with 100 where all is well but the body, which has not been received yet.
        """
        if not call.route.ingest:
            return
        length = body.check_headers(call.request, self._body_bytes_max)
        if call.request.env.get("fleetcast.body_due", False):
            call.response.status = 100
            call.response.complete = True
        else:
            call.body = body.read_body(call.request, length)
