//! The stages, in the order that decides which refusal comes first.

use std::sync::Arc;

use fleetcast_core::model::error::Error;

use super::body;
use super::decision::{Cause, Decision, Grant};
use super::keys::KeyPlaces;
use super::request::ClientRequest;
use super::routes::Route;
use crate::accounts::{Authenticator, Identity, Rejection, SecretKind, SecretText, wall_seconds};
use crate::clients::{ClientAddresses, ClientLimits};
use crate::planes::OpenPlanes;
use crate::refusal::{ContextValue, Refusal};

/// A stage. It notes the facts that it finds, and ends the request by a grant or a cause.
type Stage = fn(&Admission, &mut dyn ClientRequest, &mut Decision) -> Result<Option<Grant>, Cause>;

/// Stages 1 to 8 of the contract.
const STAGES: [Stage; 10] = [
    Admission::count_request,
    Admission::find_route,
    Admission::answer_options,
    Admission::check_lockout,
    Admission::check_key,
    Admission::check_share,
    Admission::open_store,
    Admission::check_scope,
    Admission::check_entitlement,
    Admission::check_body,
];

/// Admission to one listener. Safe to share between threads.
pub struct Admission {
    /// The paths that are served.
    pub routes: &'static [Route],
    /// The fields that may carry a key.
    pub keys: KeyPlaces,
    /// Finds the address of a client.
    pub addresses: ClientAddresses,
    /// Limits of clients.
    pub limits: ClientLimits,
    /// Checks keys.
    pub authenticator: Arc<Authenticator>,
    /// Opens planes.
    pub planes: Arc<OpenPlanes>,
    /// Bound on the bytes of a write's body.
    pub body_bytes_max: u64,
    /// The name of the backend that stores time series.
    pub backend: String,
}

impl Admission {
    /// Decides about a request. If it is asked again after the body was received, it counts the
    /// request only once.
    pub fn decide(&self, request: &mut dyn ClientRequest) -> Decision {
        let mut decision = Decision {
            address: String::new(),
            route: None,
            identity: None,
            plane: None,
            events: Vec::new(),
            key_id: None,
            is_over_share: false,
            fault: None,
            outcome: Ok(Grant::Serve),
        };
        for stage in STAGES {
            match stage(self, request, &mut decision) {
                Ok(None) => {}
                Ok(Some(grant)) => {
                    decision.outcome = Ok(grant);
                    break;
                }
                Err(cause) => {
                    decision.outcome = Err(cause);
                    break;
                }
            }
        }
        decision
    }

    /// Counts the request for its client: `rate_limited`.
    fn count_request(
        &self,
        request: &mut dyn ClientRequest,
        decision: &mut Decision,
    ) -> Result<Option<Grant>, Cause> {
        let address = self.addresses.of(request.peer(), request.field("X_FORWARDED_FOR"));
        decision.address = address.into_owned();
        if !request.is_counted() {
            self.limits.admit(&decision.address)?;
            request.set_counted();
        }
        Ok(None)
    }

    /// Finds the route of a path. Paths match exactly: no trailing slash, no double slash, no other
    /// spelling, but a part of a path may be any name. `not_found`, `method_not_allowed`.
    fn find_route(
        &self,
        request: &mut dyn ClientRequest,
        decision: &mut Decision,
    ) -> Result<Option<Grant>, Cause> {
        let route = self.routes.iter().find(|route| route.matches(request.path()));
        let route = route.ok_or_else(|| Refusal::new("not_found"))?;
        decision.route = Some(route);
        if !route.allows(request.method()) {
            let allow = ContextValue::Text(route.allowed().join(", "));
            return Err(Refusal::new("method_not_allowed").with("allow", allow).into());
        }
        Ok(None)
    }

    /// A preflight cannot carry a key, so OPTIONS needs none.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "a stage")]
    fn answer_options(
        &self,
        request: &mut dyn ClientRequest,
        _decision: &mut Decision,
    ) -> Result<Option<Grant>, Cause> {
        Ok((request.method() == "OPTIONS").then_some(Grant::Options))
    }

    /// Refuses a client that is locked out, even if its key is valid: `auth_lockout`.
    fn check_lockout(
        &self,
        _request: &mut dyn ClientRequest,
        decision: &mut Decision,
    ) -> Result<Option<Grant>, Cause> {
        if is_authenticated(decision) {
            self.limits.check_lockout(&decision.address)?;
        }
        Ok(None)
    }

    /// Checks the key. Only an invalid key counts as a failure of the client: `auth_failed`,
    /// `tenant_unknown`, `tenant_disabled`.
    fn check_key(
        &self,
        request: &mut dyn ClientRequest,
        decision: &mut Decision,
    ) -> Result<Option<Grant>, Cause> {
        if !is_authenticated(decision) {
            return Ok(None);
        }
        let key = self.keys.find(|name| request.field(name));
        match self.authenticator.identify(key.as_deref(), wall_seconds()) {
            Ok(identity) => decision.identity = Some(identity),
            Err(rejection) => {
                if matches!(rejection, Rejection::InvalidKey) {
                    self.limits.record_failure(&decision.address);
                    decision.events.push("authentication failed");
                    let read = |key| SecretText::read(SecretKind::Key, key);
                    decision.key_id = key.as_deref().and_then(read).map(|text| text.id.to_owned());
                    if self.limits.check_lockout(&decision.address).is_err() {
                        decision.events.push("client locked out");
                    }
                }
                return Err(rejection.into());
            }
        }
        Ok(None)
    }

    /// Refuses a request beyond its tenant's share; health is always answered. `ingest_buffer_full`
    /// for a write, else `telemetry_unavailable`.
    fn check_share(
        &self,
        request: &mut dyn ClientRequest,
        decision: &mut Decision,
    ) -> Result<Option<Grant>, Cause> {
        let (Some(route), Some(identity)) = (decision.route, &decision.identity) else {
            return Ok(None);
        };
        if request.claim(&identity.account) {
            return Ok(None);
        }
        decision.is_over_share = true;
        Err(if route.is_ingest() {
            Refusal::new("ingest_buffer_full").into()
        } else {
            let upstream = ContextValue::Text(self.backend.clone());
            Refusal::new("telemetry_unavailable").with("upstream", upstream).into()
        })
    }

    /// Opens the tenant's own store: `tenant_unavailable`.
    fn open_store(
        &self,
        _request: &mut dyn ClientRequest,
        decision: &mut Decision,
    ) -> Result<Option<Grant>, Cause> {
        let Some(identity) = &decision.identity else { return Ok(None) };
        match self.planes.open(&identity.account, &identity.tenant.name) {
            Ok(plane) => decision.plane = Some(plane),
            Err(error @ (Error::Unavailable { .. } | Error::Unknown { .. })) => {
                return Err(Cause::StoreFailed(error));
            }
            Err(error) => {
                // The error is for the log; the client does not see it.
                decision.fault = Some(error);
                return Err(Refusal::new("tenant_unavailable").into());
            }
        }
        Ok(None)
    }

    #[expect(clippy::unused_self, reason = "a stage")]
    fn check_scope(
        &self,
        _request: &mut dyn ClientRequest,
        decision: &mut Decision,
    ) -> Result<Option<Grant>, Cause> {
        if let (Some(route), Some(identity)) = (decision.route, &decision.identity) {
            check_scope(route, identity)?;
        }
        Ok(None)
    }

    #[expect(clippy::unused_self, reason = "a stage")]
    fn check_entitlement(
        &self,
        _request: &mut dyn ClientRequest,
        decision: &mut Decision,
    ) -> Result<Option<Grant>, Cause> {
        if let (Some(route), Some(identity)) = (decision.route, &decision.identity) {
            check_entitlement(route, identity)?;
        }
        Ok(None)
    }

    /// Checks the head of a request with a body, and the length of its body if that has arrived:
    /// 411, 413, 415, 422, 400.
    fn check_body(
        &self,
        request: &mut dyn ClientRequest,
        decision: &mut Decision,
    ) -> Result<Option<Grant>, Cause> {
        let language = decision.route.and_then(|route| route.body_language(request.method()));
        let Some(language) = language else { return Ok(None) };
        let is_there = body::check(request, language, self.body_bytes_max)?;
        Ok((!is_there).then_some(Grant::AwaitBody))
    }
}

/// Returns the identity behind a key that is known here, if it has the rights that `route` needs.
///
/// An event loop may call it: like [`Authenticator::identify_known`], it asks no other machine.
#[must_use]
pub fn admit_known(
    authenticator: &Authenticator,
    key: &str,
    route: &Route,
) -> Option<Arc<Identity>> {
    let identity = authenticator.identify_known(key, wall_seconds())?;
    check_rights(route, &identity).is_ok().then_some(identity)
}

/// Checks that an identity has the rights that `route` needs.
///
/// # Errors
/// Returns `insufficient_scope` or `live_ingest_not_entitled`.
pub fn check_rights(route: &Route, identity: &Identity) -> Result<(), Refusal> {
    check_scope(route, identity)?;
    check_entitlement(route, identity)
}

fn is_authenticated(decision: &Decision) -> bool {
    decision.route.is_some_and(|route| route.is_authenticated)
}

/// Checks that the key carries the scope of the route: `insufficient_scope`.
fn check_scope(route: &Route, identity: &Identity) -> Result<(), Refusal> {
    if route.scope.is_none_or(|scope| identity.has_scope(scope)) {
        return Ok(());
    }
    Err(Refusal::new("insufficient_scope"))
}

/// Checks that the account may write: `live_ingest_not_entitled`.
fn check_entitlement(route: &Route, identity: &Identity) -> Result<(), Refusal> {
    if !route.is_ingest() || identity.tenant.live_ingest {
        return Ok(());
    }
    Err(Refusal::new("live_ingest_not_entitled"))
}

impl From<Rejection> for Cause {
    fn from(rejection: Rejection) -> Self {
        let code = match rejection {
            Rejection::Unavailable(error) => return Self::AccountsUnavailable(error),
            Rejection::NoKey | Rejection::InvalidKey => "auth_failed",
            Rejection::TenantUnknown => "tenant_unknown",
            Rejection::TenantDisabled => "tenant_disabled",
        };
        Refusal::new(code).into()
    }
}
