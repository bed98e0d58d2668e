//! Writes: from the body of a request to its acknowledgement.

use std::sync::Arc;

use fleetcast_core::model::clock;
use fleetcast_core::model::error::{Error, catching};
use fleetcast_core::plane::{Failure, PendingBatch, Plane, WriteReport};
use fleetcast_core::storage::write_id;
use fleetcast_front::head::RequestHead;
use fleetcast_front::{OutgoingBody, Request, ServeOutcome};

use super::asked::{AdmittedRequest, hand_on};
use super::batches::FaultPolicy;
use super::service::AnswerHead;
use crate::accounting::RequestEntry;
use crate::admission::Language;
use crate::answers::write_answer;

/// Returns the status of the answer to a write that was stored whole.
const fn status(language: Language) -> (u16, &'static str) {
    match language {
        Language::Json => (202, "202 Accepted"),
        Language::Lines(_) | Language::RemoteWrite => (204, "204 No Content"),
        Language::Otlp | Language::Form | Language::RemoteRead => (200, "200 OK"),
    }
}

/// Appends the body to the log of its plane, and leaves the request there to be answered.
pub(super) fn write(
    asked: AdmittedRequest,
    language: Language,
    mut request: Request,
) -> ServeOutcome {
    // The application refuses a clock before 2020, and every other request that is not stored.
    let Ok(now_ns) = clock::ingest_ns() else { return hand_on(request, asked.decision) };
    let Ok(write_id) = write_id::new(now_ns) else { return hand_on(request, asked.decision) };
    let Ok(plane) = asked.plane.for_a_call() else { return hand_on(request, asked.decision) };
    let entry = asked.begin(status(language).0, None);
    let pending = match append(&asked, &plane, language, &request, now_ns) {
        Ok(pending) => pending,
        Err(outcome) => {
            if let Some(error) = outcome {
                request.fail(Box::new(error));
            }
            return hand_on(request, asked.decision);
        }
    };
    let turn = request.end_turn();
    let open = Arc::clone(&asked.plane);
    open.acknowledge(pending, move |outcome| {
        // The handle keeps the plane from being closed before.
        let _plane = plane;
        match outcome {
            Ok(written) => end(&asked, language, entry, request, (&written, &write_id)),
            Err(error) => {
                drop(entry);
                request.fail(Box::new(error));
                request.decide(asked.decision);
                request.put_back();
            }
        }
    });
    ServeOutcome::Done(turn)
}

/// Answers a write that was stored.
fn end(
    asked: &AdmittedRequest,
    language: Language,
    entry: RequestEntry,
    mut request: Request,
    (written, write_id): (&WriteReport, &str),
) {
    let (status, line) = status(language);
    let is_json = language == Language::Json;
    let body = if is_json {
        write_answer(write_id, written.accepted_count, &written.rejected_indices, 0)
    } else {
        Vec::new()
    };
    let key = &asked.identity.key;
    let by = (&*asked.identity.tenant.name, &*key.key_id);
    entry.accounting().wrote(&asked.identity.account, by, written);
    let bytes_in = request.head().map_or(0, RequestHead::body_bytes);
    asked.end(entry, (status, None), (bytes_in, body.len() as u64));
    let own: &[_] = match language {
        Language::Otlp => &[("content-type", "application/x-protobuf")],
        _ => &[],
    };
    let head = AnswerHead { status: line, request_id: &asked.request_id, own, is_json };
    let answer =
        asked.service.answer(&mut request, &head, OutgoingBody::Pieces(vec![Box::new(body)]));
    drop(request.answer(answer));
}

/// Appends a body. The error is `None` if the body is refused. After another error, the body may or
/// may not be stored.
fn append(
    asked: &AdmittedRequest,
    plane: &Plane,
    language: Language,
    request: &Request,
    now_ns: i64,
) -> Result<PendingBatch, Option<Error>> {
    let head = request.head().ok_or(None)?;
    let (service, coding) = (&asked.service, head.field("CONTENT_ENCODING"));
    let asked = (language, head.query());
    let appended = catching(|| {
        let Ok(content) = service.content(request.body(), coding) else { return Ok(None) };
        // A faulty record refuses the whole body, which the application then answers.
        Ok(Some(service.append(plane, asked, &content, now_ns, FaultPolicy::Refused)))
    });
    match appended {
        Ok(Some(Ok(pending))) => Ok(pending),
        Ok(None | Some(Err(Failure::Refused(_)))) => Err(None),
        Ok(Some(Err(Failure::Failed(error)))) | Err(error) => Err(Some(error)),
    }
}
