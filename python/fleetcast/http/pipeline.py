"""The one pipeline: every request passes the stages of `docs/contract.md` in their order.

A stage sets on the state what it found out, ends the request, or refuses by raising; what it raises
becomes an answer in `answers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.accounts import InvalidKey
from fleetcast.errors import Refused, refused
from fleetcast.http import body
from fleetcast.http.client_address import ClientAddress
from fleetcast.http.routes import ROUTES
from fleetcast.metrics import label
from fleetcast.surface.accounting import audit_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    import falcon

    from fleetcast.http.request_state import RequestState
    from fleetcast.http.routes import Route
    from fleetcast.http.services import HttpServices
    from fleetcast.surface.stores import TenantStores

KEY_FIELDS = ("X-Api-Key",)
"""Header fields that a key may stand in."""
DECIDING_FIELDS = (
    *KEY_FIELDS,
    "X-Forwarded-For",
    "Content-Type",
    "Content-Encoding",
    "Origin",
)
"""Header fields that decide about a write, and about the fields of its answer, beside its method,
its target, the address it comes from and its length."""


class Pipeline:
    """`stages` are in the order that the contract gives: it decides which refusal wins."""

    routes: Mapping[str, Route] = ROUTES
    """Paths that are served; all others are 404."""

    def __init__(self, services: HttpServices, stores: TenantStores) -> None:
        self.settings = services.settings
        self._addresses = ClientAddress(services.settings.http.trusted_proxies)
        self._limiter = services.limiter
        self._authenticator = services.authenticator
        self._stores = stores
        self._counters = services.counters
        self._over_share = services.counters.counter(
            label("fleetcast_refused_over_share_total", surface="http")
        )
        self.stages = (
            self.count_request,
            self.find_route,
            self.answer_options,
            self.check_lockout,
            self.check_key,
            self.check_share,
            self.open_store,
            self.check_scope,
            self.check_entitlement,
            self.receive_body,
        )

    def count_request(self, state: RequestState) -> None:
        """Counts the request for its client. Raises `Refused` (`rate_limited`)."""
        request = state.request
        state.address = self._addresses.of(
            request.remote_addr, request.get_header("X-Forwarded-For")
        )
        if not request.env.get("fleetcast.admitted", False):  # else it was counted with its head
            self._limiter.admit(state.address)

    def find_route(self, state: RequestState) -> None:
        """Paths match exactly: no trailing slash, no double one, no other spelling.

        Raises `Refused` (`not_found`, `method_not_allowed`).
        """
        request = state.request
        route = self.routes.get(request.env.get("RAW_PATH", request.path))
        if route is None:
            raise refused("not_found")
        state.path = request.path
        state.route = route
        if request.method not in route.allowed:
            raise refused("method_not_allowed", allow=route.allow)

    def answer_options(self, state: RequestState) -> None:
        """Ends OPTIONS with 204, without a key: a preflight cannot carry one."""
        if state.request.method == "OPTIONS":
            state.response.status = 204
            state.response.set_header("Allow", state.route.allow)
            state.response.complete = True

    def check_lockout(self, state: RequestState) -> None:
        """Refuses a locked out client, with a valid key too. Raises `Refused` (`auth_lockout`)."""
        if state.route.authenticated:
            self._limiter.check_lockout(state.address)

    def check_key(self, state: RequestState) -> None:
        """Only a key that was sent and is no good counts as a failure of the client.

        Raises `Refused` (401; 403 and 404 for the tenant), `ControlStoreUnavailable`.
        """
        if not state.route.authenticated:
            return
        key = self.key(state.request)
        try:
            state.identity = self._authenticator.authenticate(key)
        except InvalidKey:
            self._limiter.record_failure(state.address)
            _audit("authentication failed", key, state)
            try:
                self._limiter.check_lockout(state.address)
            except Refused:
                _audit("client locked out", key, state)
            raise

    def key(self, request: falcon.Request) -> str | None:
        """The text of the key that came with a request, `None` where there is none."""
        return request.get_header("X-Api-Key")

    def check_share(self, state: RequestState) -> None:
        """Refuses a request beyond its tenant's share; health is always answered.

        Raises `Refused` (`ingest_buffer_full` for a write, else `telemetry_unavailable`).
        """
        if not state.route.authenticated or _within_share(state):
            return
        self._counters.add(self._over_share)
        if state.route.ingest:
            raise refused("ingest_buffer_full")
        raise refused("telemetry_unavailable", upstream=self.settings.store.backend)

    def open_store(self, state: RequestState) -> None:
        """Opens the tenant's own store. Raises `Refused` (`tenant_unavailable`)."""
        if state.route.authenticated:
            state.plane = self._stores.open(state.identity, state.request_id)

    def check_scope(self, state: RequestState) -> None:
        """The key must carry the route's scope. Raises `Refused` (`insufficient_scope`)."""
        if state.route.scope is not None and state.route.scope not in state.identity.scopes:
            raise refused("insufficient_scope")

    def check_entitlement(self, state: RequestState) -> None:
        """The account must be allowed to write. Raises `Refused` (`live_ingest_not_entitled`)."""
        if state.route.ingest and not state.identity.live_ingest:
            raise refused("live_ingest_not_entitled")

    def receive_body(self, state: RequestState) -> None:
        """Checks the headers, then takes the body. Raises `Refused` (411, 413, 415, 422, 400).

        Ends with 100 where all is well but the body, which has not been received yet.
        """
        if not state.route.ingest:
            return
        length = body.check_headers(state.request, self.settings.limits.body_bytes_max)
        if state.request.env.get("fleetcast.body_due", False):
            state.response.status = 100
            state.response.complete = True
        else:
            state.body = body.read_body(state.request, length)


def _within_share(state: RequestState) -> bool:
    variables = state.request.env
    if variables.get("fleetcast.over_share", False):
        return False
    claim = variables.get("fleetcast.claim")
    return claim is None or bool(claim(state.identity.account_id))


def _audit(event: str, key: str | None, state: RequestState) -> None:
    request_id, client = state.request_id, state.address
    audit_key(event, key, request_id=request_id, client=client, transport="http")
