//! Refusals that are answered here, because clients may send many of them: too many requests, no
//! valid key, a share that is used up.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use fleetcast_core::model::json::write_string;
use fleetcast_front::{OutgoingBody, Request, ServeOutcome};

use super::error_rows::ErrorRow;
use super::service::{AnswerHead, Service};
use crate::accounting::{self, Accounting, AnswerStatus, RequestLabels, new_request_id};
use crate::admission::{Cause, Decision};
use crate::refusal::{ContextValue, Refusal};

/// The label of a request without a known route.
const OTHER: &str = "other";
const RETRY_SECONDS: &str = "retry_after_seconds";
/// Longest text of a `Content-Length` that is believed, for the log.
const LENGTH_DIGITS_MAX: usize = 18;

/// Answers a request that was refused. Returns the request if the application must answer it.
pub(super) fn refuse(
    service: &Arc<Service>,
    accounting: &Arc<Accounting>,
    decision: &Decision,
    mut request: Request,
    began: Instant,
) -> Result<ServeOutcome, Box<Request>> {
    let Some((method, refusal, row)) = answerable(service, decision, &request) else {
        return Err(Box::new(request));
    };
    let retry = row.retry_seconds.map(|seconds| retry_of(refusal).unwrap_or(seconds));
    let body = body(refusal, retry.filter(|_| row.status == 503));
    let request_id = new_request_id();
    let identity = decision.identity.as_ref();
    let (status, route) =
        (AnswerStatus::Http(row.status), decision.route.map_or(OTHER, |r| r.path));
    let entry = accounting.begin(&RequestLabels {
        method,
        route,
        status,
        code: Some(refusal.code),
        account: identity.map(|identity| identity.account.clone()),
        refused_key: identity
            .map(|identity| (identity.tenant.name.clone(), identity.key.key_id.clone())),
        is_over_share: decision.is_over_share,
    });
    entry.end(&accounting::ServedRequest {
        request_id: &request_id,
        method,
        route,
        status,
        error: Some(refusal.code),
        tenant: identity.map(|identity| &*identity.tenant.name),
        key_id: identity.map(|identity| &*identity.key.key_id),
        client: &decision.address,
        duration: began.elapsed(),
        bytes_in: length_of(&request),
        bytes_out: body.len() as u64,
        process: accounting.process(),
    });
    let retry = retry.map(|seconds| seconds.to_string());
    let own = row.fields.iter().map(|(name, value)| (&**name, &**value));
    let own: Vec<_> = own.chain(retry.as_deref().map(|seconds| ("retry-after", seconds))).collect();
    let head = AnswerHead { status: &row.line, request_id: &request_id, own: &own, is_json: true };
    let answer = service.answer(&mut request, &head, OutgoingBody::Pieces(vec![Box::new(body)]));
    Ok(ServeOutcome::Done(request.answer(answer)))
}

/// Returns the method, the refusal and its row, if the refusal can be answered here. Events and
/// faults are for the log of the application.
fn answerable<'d>(
    service: &'d Service,
    decision: &'d Decision,
    request: &Request,
) -> Option<(&'static str, &'d Refusal, &'d ErrorRow)> {
    let head = request.head()?;
    let method = ["GET", "POST"].into_iter().find(|method| *method == head.method())?;
    let Err(Cause::Refused(refusal)) = &decision.outcome else { return None };
    let row = service.errors.get(refusal.code)?;
    let is_plain = head.minor_version() == 1 && !head.closes() && !head.expects_continue();
    let is_quiet = decision.events.is_empty() && decision.fault.is_none();
    let is_simple = refusal.context.iter().all(|(_, value)| matches!(value, ContextValue::Text(_)))
        || retry_of(refusal).is_some() && refusal.context.len() == 1;
    (is_plain && is_quiet && is_simple).then_some((method, refusal, row))
}

/// Returns the delay that a refusal names.
fn retry_of(refusal: &Refusal) -> Option<u64> {
    refusal.context.iter().find_map(|(name, value)| match value {
        ContextValue::Whole(seconds) if *name == RETRY_SECONDS => Some(*seconds),
        _ => None,
    })
}

fn body(refusal: &Refusal, retry_seconds: Option<u64>) -> Vec<u8> {
    let mut body = br#"{"error":"#.to_vec();
    write_string(&mut body, refusal.code);
    for (name, value) in &refusal.context {
        if let ContextValue::Text(text) = value {
            let _ = write!(body, r#","{name}":"#); // writing to memory cannot fail
            write_string(&mut body, text);
        }
    }
    if let Some(seconds) = retry_seconds {
        let _ = write!(body, r#","{RETRY_SECONDS}":{seconds}"#);
    }
    body.push(b'}');
    body
}

/// Returns the length that the head says, or 0 if it says none that can be believed.
fn length_of(request: &Request) -> u64 {
    let text = request.head().and_then(|head| head.field("CONTENT_LENGTH"));
    let text = text.and_then(|text| std::str::from_utf8(text).ok());
    let is_short = |text: &&str| text.len() <= LENGTH_DIGITS_MAX && !text.starts_with('+');
    text.filter(is_short).and_then(|text| text.parse().ok()).unwrap_or(0)
}
