//! One call, from its head to its status.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fleetcast_front::fair::Owner;
use fleetcast_service::accounting::{self, InFlightGuard, RequestLabels, new_request_id};
use fleetcast_service::accounts::Identity;
use h2::Reason;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Response, header};

use crate::connections::{ConnectionGuard, ConnectionSeat, client};
use crate::event::EndedCall;
use crate::message::HEAD_BYTES;
use crate::server::{OVER_SHARE_PAUSE, Server};
use crate::status::{CallRefusal, GrpcStatus, details, trailers};

/// The name of writes in logs and metrics.
pub(crate) const WRITE_ROUTE: &str = "TelemetryIngest/Write";

/// The media type of calls, which may have a suffix. Example: `application/grpc+proto`.
pub(crate) const MEDIA_TYPE: &str = "application/grpc";
/// Age of a call before which a reset by the client counts as an immediate reset.
const RESET_AGE: Duration = Duration::from_secs(1);

/// The facts about a connection that its calls need.
#[derive(Clone)]
pub struct CallOrigin {
    pub(crate) server: Arc<Server>,
    pub(crate) seat: Arc<ConnectionSeat>,
    pub(crate) client: Arc<str>,
    pub(crate) address: Owner,
}

impl CallOrigin {
    /// Makes the facts about a connection of `peer`, which is counted already.
    #[must_use]
    pub fn new(server: &Arc<Server>, peer: SocketAddr, connected: &ConnectionGuard) -> Self {
        Self {
            server: Arc::clone(server),
            seat: Arc::clone(&connected.seat),
            client: client(peer).into(),
            address: connected.address.clone(),
        }
    }
}

/// A call under way.
pub(crate) struct Call {
    pub(crate) of: CallOrigin,
    pub(crate) request_id: String,
    pub(crate) identity: Option<Arc<Identity>>,
    pub(crate) bad_key: Option<String>,
    pub(crate) bytes_in: u64,
    route: Arc<str>,
    began: Instant,
    _under_way: InFlightGuard,
}

/// The stream that carries the answer to a call.
pub(crate) type AnswerStream = SendResponse<Bytes>;

impl Call {
    /// Begins a call. `route` is its name in logs and metrics.
    pub(crate) fn begin(of: CallOrigin, route: Arc<str>) -> Self {
        let parts = &of.server.parts;
        let under_way = InFlightGuard::begin(&parts.accounting, parts.in_flight);
        let request_id = new_request_id();
        let (identity, bad_key, bytes_in) = (None, None, 0);
        let began = Instant::now();
        Self { of, request_id, identity, bad_key, bytes_in, route, began, _under_way: under_way }
    }

    /// Notes the identity behind the call's key.
    pub(crate) fn identify(&mut self, identity: &Arc<Identity>, key: &str) {
        self.of.seat.note_accepted();
        self.of.server.owners.learn(key.as_bytes(), &identity.account);
        self.of.server.parts.accounting.learn(&identity.account, &identity.tenant.name);
        self.identity = Some(Arc::clone(identity));
    }

    /// Counts, logs and answers a write that was stored.
    pub(crate) fn end_stored(self, answer: &mut AnswerStream, response: Bytes) {
        let Some(identity) = &self.identity else { return };
        let accounting = &self.of.server.parts.accounting;
        let status = accounting::AnswerStatus::Grpc(GrpcStatus::OK.name());
        let entry = accounting.begin(&RequestLabels {
            method: "grpc",
            route: WRITE_ROUTE,
            status,
            code: None,
            account: Some(identity.account.clone()),
            refused_key: None,
            is_over_share: false,
        });
        entry.end(&accounting::ServedRequest {
            request_id: &self.request_id,
            method: "grpc",
            route: WRITE_ROUTE,
            status,
            error: None,
            tenant: Some(&identity.tenant.name),
            key_id: Some(&identity.key.key_id),
            client: &self.of.client,
            duration: self.began.elapsed(),
            bytes_in: self.bytes_in,
            bytes_out: (response.len() - HEAD_BYTES) as u64,
            process: accounting.process(),
        });
        let Ok(mut stream) = answer.send_response(head(), false) else { return };
        if stream.send_data(response, false).is_ok() {
            drop(stream.send_trailers(trailers(GrpcStatus::OK, "", None)));
        }
    }

    /// Counts, logs and answers a call that is refused.
    pub(crate) async fn refuse(self, answer: &mut AnswerStream, refusal: CallRefusal) {
        if refusal.is_cancelled() {
            return self.end_cancelled().await;
        }
        if refusal.is_over_share {
            // Clients should wait for a second. A client that does not could keep the loop busy.
            tokio::time::sleep(OVER_SHARE_PAUSE).await;
        }
        let (status, trailers) = self.of.server.parts.statuses.of(&refusal);
        let seat = Arc::clone(&self.of.seat);
        self.end(status, Some(refusal.code.to_owned()), 0, Some(refusal)).await;
        send_trailers_only(answer, trailers);
        if status == GrpcStatus::UNAUTHENTICATED {
            seat.note_refused();
        }
    }

    /// Counts and logs a call that its client has cancelled.
    pub(crate) async fn end_cancelled(self) {
        if self.began.elapsed() < RESET_AGE {
            self.of.seat.note_reset();
        }
        self.end(GrpcStatus::CANCELLED, None, 0, None).await;
    }

    /// Counts and logs a call that was handed on; `trailers` tell its status.
    pub(crate) async fn end_handed_on(self, trailers: &HeaderMap, bytes_out: u64) {
        let status = GrpcStatus::of_trailers(trailers);
        let error = (status != GrpcStatus::OK).then(|| details(trailers)).flatten();
        let code = error.map(|text| text.split(':').next().unwrap_or_default().to_owned());
        self.end(status, code, bytes_out, None).await;
    }

    async fn end(
        self,
        status: GrpcStatus,
        error: Option<String>,
        bytes_out: u64,
        refusal: Option<CallRefusal>,
    ) {
        let refusal = refusal.unwrap_or_default();
        let identity = self.identity.as_ref().map(|identity| {
            let (tenant, key) = (&identity.tenant.name, &identity.key.key_id);
            (identity.account.to_string(), tenant.clone(), key.clone())
        });
        let ended = EndedCall {
            request_id: self.request_id,
            route: self.route,
            status: status.name(),
            error,
            identity,
            client: self.of.client.to_string(),
            duration: self.began.elapsed(),
            bytes_in: self.bytes_in,
            bytes_out,
            bad_key: self.bad_key,
            fault: refusal.fault,
            bound: refusal.bound,
            is_over_share: refusal.is_over_share,
        };
        self.of.server.events.note(ended).await;
    }
}

/// The head of an answer.
pub(crate) fn head() -> Response<()> {
    let mut head = Response::new(());
    head.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    head
}

/// Answers with a status alone.
pub(crate) fn send_trailers_only(answer: &mut AnswerStream, trailers: HeaderMap) {
    let mut response = head();
    response.headers_mut().extend(trailers);
    if answer.send_response(response, true).is_err() {
        answer.send_reset(Reason::CANCEL); // the client is gone
    }
}
