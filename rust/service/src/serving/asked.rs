//! A request that was admitted, on its way to its answer.

use std::sync::Arc;
use std::time::Instant;

use fleetcast_front::{Request, ServeOutcome};

use super::service::Service;
use crate::accounting::{self, Accounting, AnswerStatus, RequestEntry, RequestLabels};
use crate::accounts::Identity;
use crate::admission::Decision;
use crate::planes::OpenPlane;

/// A request that was admitted, to be answered here.
pub(super) struct AdmittedRequest {
    pub(super) service: Arc<Service>,
    pub(super) decision: Box<Decision>,
    pub(super) identity: Arc<Identity>,
    pub(super) plane: Arc<OpenPlane>,
    pub(super) request_id: String,
    pub(super) began: Instant,
    pub(super) accounting: Arc<Accounting>,
    pub(super) method: &'static str,
    pub(super) route: &'static str,
}

impl AdmittedRequest {
    /// Counts the request as under way. `error` is the code of an answer that is an error.
    pub(super) fn begin(&self, status: u16, error: Option<&'static str>) -> RequestEntry {
        let (tenant, key_id) = (&self.identity.tenant.name, &self.identity.key.key_id);
        self.accounting.begin(&RequestLabels {
            method: self.method,
            route: self.route,
            status: AnswerStatus::Http(status),
            code: error,
            account: Some(self.identity.account.clone()),
            refused_key: error.map(|_| (tenant.clone(), key_id.clone())),
            is_over_share: false,
        })
    }

    /// Counts and logs the request with the bytes of its body and of its answer.
    pub(super) fn end(
        &self,
        entry: RequestEntry,
        (status, error): (u16, Option<&'static str>),
        (bytes_in, bytes_out): (u64, u64),
    ) {
        entry.end(&accounting::ServedRequest {
            request_id: &self.request_id,
            method: self.method,
            route: self.route,
            status: AnswerStatus::Http(status),
            error,
            tenant: Some(&self.identity.tenant.name),
            key_id: Some(&self.identity.key.key_id),
            client: &self.decision.address,
            duration: self.began.elapsed(),
            bytes_in,
            bytes_out,
            process: self.accounting.process(),
        });
    }
}

/// Hands a request on to the application, with the decision about it.
pub(super) fn hand_on(mut request: Request, decision: Box<Decision>) -> ServeOutcome {
    request.decide(decision);
    ServeOutcome::HandOn(request)
}
