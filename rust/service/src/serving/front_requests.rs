//! Requests of a front: decided here, and answered here if they belong to the data path.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fleetcast_front::fair::Owner;
use fleetcast_front::{self as front, FastPath, Request, ServeOutcome};

use super::asked::{AdmittedRequest, hand_on};
use super::questions::question;
use super::reads::{Read, read};
use super::refusals::refuse;
use super::service::Service;
use super::writes::write;
use crate::accounting::{Accounting, new_request_id};
use crate::admission::{Decision, Grant, Language, Route};
use crate::renewed::RenewedValue;

/// Serves the requests of one worker.
pub struct RequestServer {
    rules: RenewedValue<Service>,
    accounting: Arc<Accounting>,
}

impl RequestServer {
    /// Makes a server that follows the settings in force and counts in `accounting`.
    #[must_use]
    pub fn new(rules: RenewedValue<Service>, accounting: Arc<Accounting>) -> Self {
        Self { rules, accounting }
    }

    fn decided(
        &self,
        service: Arc<Service>,
        decision: Decision,
        request: Request,
        began: Instant,
    ) -> ServeOutcome {
        let decision = Box::new(decision);
        if decision.outcome.is_err() {
            return refuse(&service, &self.accounting, &decision, request, began)
                .unwrap_or_else(|request| hand_on(*request, decision));
        }
        let (Ok(Grant::Serve), Some(route)) = (&decision.outcome, decision.route) else {
            return hand_on(request, decision);
        };
        let (Some(identity), Some(plane)) = (&decision.identity, &decision.plane) else {
            return hand_on(request, decision);
        };
        let way = Way::of(route, &request).filter(|_| is_plain(&request));
        let Some((method, way)) = way else { return hand_on(request, decision) };
        let asked = AdmittedRequest {
            identity: Arc::clone(identity),
            plane: Arc::clone(plane),
            request_id: new_request_id(),
            accounting: Arc::clone(&self.accounting),
            began,
            method,
            route: route.path,
            service,
            decision,
        };
        match way {
            Way::Read(what) => read(asked, what, request),
            Way::Write(language) => write(asked, language, request),
            Way::Question => question(asked, request),
        }
    }
}

impl FastPath for RequestServer {
    fn helped(&self) -> Duration {
        fleetcast_core::plane::take_helpers_time()
    }

    fn note_used(&self, owner: &Owner, used: Duration) {
        self.accounting.note_used(owner, used);
    }

    fn serve(&self, mut request: Request) -> ServeOutcome {
        if request.head().is_none() {
            return ServeOutcome::HandOn(request); // the head is malformed
        }
        let began = Instant::now();
        let Some(service) = self.rules.get(request.settings_version()) else {
            return ServeOutcome::HandOn(request);
        };
        let decision = service.admission.decide(&mut request);
        if let Some(identity) = &decision.identity {
            self.accounting.learn(&identity.account, &identity.tenant.name);
        }
        if !matches!(decision.outcome, Ok(Grant::AwaitBody)) {
            return self.decided(service, decision, request, began);
        }
        match request.await_body() {
            Ok(turn) => ServeOutcome::Done(turn),
            Err(mut request) => {
                // The request exceeds its account's share, so this decision refuses it.
                let decision = service.admission.decide(&mut *request);
                self.decided(service, decision, *request, began)
            }
        }
    }
}

/// A way to answer a request here.
enum Way {
    Read(Read),
    Write(Language),
    Question,
}

impl Way {
    /// Returns the method of a request and the way to answer it, or `None` if the application must.
    fn of(route: &Route, request: &Request) -> Option<(&'static str, Self)> {
        let read = match route.path {
            "/topology" => Some(Read::Latest),
            "/topology/series" => Some(Read::Series),
            "/predictions" => Some(Read::Forecasts),
            _ => None,
        };
        let is_question = route.language == Some(Language::Form);
        let read = read.map(Self::Read).or(is_question.then_some(Self::Question));
        match request.head()?.method() {
            "GET" => Some(("GET", read?)),
            "HEAD" => Some(("HEAD", read?)),
            "POST" if route.is_ingest() => Some(("POST", Self::Write(route.language?))),
            "POST" if is_question => Some(("POST", Self::Question)),
            _ => None,
        }
    }
}

/// Returns true for a head of HTTP/1.1 whose connection goes on, if no part of the body is missing.
fn is_plain(request: &Request) -> bool {
    let front::ParsedRequest::Whole { head, framing } = request.asked() else { return false };
    head.minor_version() == 1
        && !head.closes()
        && !head.expects_continue()
        && framing.is_buffered == (head.method() == "POST")
        && (framing.is_buffered || framing.body_bytes == 0 && !head.is_chunked())
}
