"""The one pipeline: every request passes the stages of `docs/contract.md` in their order.

A stage refuses by raising; what it raises becomes an answer in `answers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleetcast.accounts import InvalidKey
from fleetcast.errors import Refused, refused
from fleetcast.http import body
from fleetcast.http.client_address import ClientAddress
from fleetcast.metrics import label
from fleetcast.surface.accounting import audit_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.accounts import Authenticator
    from fleetcast.http.client_limiter import ClientLimiter
    from fleetcast.http.request_state import RequestState
    from fleetcast.http.routes import Route
    from fleetcast.http.services import HttpServices
    from fleetcast.surface.stores import TenantStores


class Stage(Protocol):
    """One check. Sets what it found out on the state, or raises."""

    def __call__(self, state: RequestState) -> None:
        """Raises `Refused`."""


def stages(
    services: HttpServices, stores: TenantStores, routes: Mapping[str, Route]
) -> Sequence[Stage]:
    """The stages in the order that the contract gives: it decides which refusal wins."""
    return (
        CountRequest(services.limiter, ClientAddress(services.settings.http.trusted_proxies)),
        FindRoute(routes),
        AnswerOptions(),
        CheckLockout(services.limiter),
        CheckKey(services.authenticator, services.limiter),
        CheckShare(services),
        OpenStore(stores),
        CheckScope(),
        CheckEntitlement(),
        ReceiveBody(services.settings.limits.body_bytes_max),
    )


class CountRequest:
    """Counts each request for its client, whatever becomes of it."""

    def __init__(self, limiter: ClientLimiter, addresses: ClientAddress) -> None:
        self._limiter = limiter
        self._addresses = addresses

    def __call__(self, state: RequestState) -> None:
        """Raises `Refused` (`rate_limited`)."""
        request = state.request
        state.address = self._addresses.of(
            request.remote_addr, request.get_header("X-Forwarded-For")
        )
        if not request.env.get("fleetcast.admitted", False):  # else it was counted with its head
            self._limiter.admit(state.address)


class FindRoute:
    """Finds the route of a path, which must match exactly: no trailing slash, no double one."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self._routes = routes

    def __call__(self, state: RequestState) -> None:
        """Raises `Refused` (`not_found`, `method_not_allowed`)."""
        request = state.request
        route = self._routes.get(request.env.get("RAW_PATH", request.path))
        if route is None:
            raise refused("not_found")
        state.path = request.path
        state.route = route
        if request.method not in route.allowed:
            raise refused("method_not_allowed", allow=route.allow)


class AnswerOptions:
    """Answers OPTIONS without a key: a preflight cannot carry one."""

    def __call__(self, state: RequestState) -> None:
        """Ends the request with 204."""
        if state.request.method == "OPTIONS":
            state.response.status = 204
            state.response.set_header("Allow", state.route.allow)
            state.response.complete = True


class CheckLockout:
    """Refuses a client that is locked out, with a valid key as well."""

    def __init__(self, limiter: ClientLimiter) -> None:
        self._limiter = limiter

    def __call__(self, state: RequestState) -> None:
        """Raises `Refused` (`auth_lockout`)."""
        if state.route.authenticated:
            self._limiter.check_lockout(state.address)


class CheckKey:
    """Finds the tenant of a key; only a key that was sent and is no good counts as failure."""

    def __init__(self, authenticator: Authenticator, limiter: ClientLimiter) -> None:
        self._authenticator = authenticator
        self._limiter = limiter

    def __call__(self, state: RequestState) -> None:
        """Raises `Refused` (401; 403 and 404 for the tenant), `ControlStoreUnavailable`."""
        if not state.route.authenticated:
            return
        key = state.request.get_header("X-Api-Key")
        try:
            state.identity = self._authenticator.authenticate(key)
        except InvalidKey:
            self._limiter.record_failure(state.address)
            self._audit("authentication failed", key, state)
            try:
                self._limiter.check_lockout(state.address)
            except Refused:
                self._audit("client locked out", key, state)
            raise

    def _audit(self, event: str, key: str | None, state: RequestState) -> None:
        request_id, client = state.request_id, state.address
        audit_key(event, key, request_id=request_id, client=client, transport="http")


class CheckShare:
    """Refuses a request beyond its tenant's share; health is always answered."""

    def __init__(self, services: HttpServices) -> None:
        self._counters = services.counters
        self._refused = self._counters.counter(
            label("fleetcast_refused_over_share_total", surface="http")
        )
        self._backend = services.settings.store.backend

    def __call__(self, state: RequestState) -> None:
        """Raises `Refused` (`ingest_buffer_full` for a write, else `telemetry_unavailable`)."""
        if not state.route.authenticated or self._within_share(state):
            return
        self._counters.add(self._refused)
        if state.route.ingest:
            raise refused("ingest_buffer_full")
        raise refused("telemetry_unavailable", upstream=self._backend)

    def _within_share(self, state: RequestState) -> bool:
        variables = state.request.env
        if variables.get("fleetcast.over_share", False):
            return False
        claim = variables.get("fleetcast.claim")
        return claim is None or bool(claim(state.identity.account_id))


class OpenStore:
    """Opens the tenant's own store."""

    def __init__(self, stores: TenantStores) -> None:
        self._stores = stores

    def __call__(self, state: RequestState) -> None:
        """Raises `Refused` (`tenant_unavailable`)."""
        if state.route.authenticated:
            state.plane = self._stores.open(state.identity, state.request_id)


class CheckScope:
    """Refuses a key without the route's scope."""

    def __call__(self, state: RequestState) -> None:
        """Raises `Refused` (`insufficient_scope`)."""
        if state.route.scope is not None and state.route.scope not in state.identity.scopes:
            raise refused("insufficient_scope")


class CheckEntitlement:
    """Refuses an account that may not write."""

    def __call__(self, state: RequestState) -> None:
        """Raises `Refused` (`live_ingest_not_entitled`)."""
        if state.route.ingest and not state.identity.live_ingest:
            raise refused("live_ingest_not_entitled")


class ReceiveBody:
    """Checks the headers first, then receives the bytes."""

    def __init__(self, body_bytes_max: int) -> None:
        self._body_bytes_max = body_bytes_max

    def __call__(self, state: RequestState) -> None:
        """Raises `Refused` (411, 413, 415, 422, 400).

        Ends with 100 where all is well but the body, which has not been received yet.
        """
        if not state.route.ingest:
            return
        length = body.check_headers(state.request, self._body_bytes_max)
        if state.request.env.get("fleetcast.body_due", False):
            state.response.status = 100
            state.response.complete = True
        else:
            state.body = body.read_body(state.request, length)
