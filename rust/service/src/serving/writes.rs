//! Writes.

use std::sync::Arc;

use fleetcast_core::model::clock;
use fleetcast_core::model::error::catching;
use fleetcast_core::plane::{AdaptedBody, Failure, Pending, Plane, WriteError, Written};
use fleetcast_core::storage::write_id;
use fleetcast_core::wire::{Format, Protocol};
use fleetcast_front::{Body, Request, Served};

use super::asked::{Asked, hand_on};
use super::service::{BatchBounds, Service};
use crate::answers::write_answer;
use crate::books::Entry;

/// The language of a body.
#[derive(Clone, Copy)]
pub(super) enum Language {
    Json,
    Adapted(Protocol),
}

impl Language {
    /// The status of an answer, and true if it has a body.
    fn status(self) -> (u16, &'static str, bool) {
        match self {
            Self::Json => (202, "202 Accepted", true),
            Self::Adapted(_) => (204, "204 No Content", false),
        }
    }
}

/// Appends the body to the log of its plane, and leaves the request there to be answered.
pub(super) fn write(asked: Asked, language: Language, mut request: Request) -> Served {
    // A clock before 2020 is refused by the application, as all that is not stored.
    let Ok(now_ns) = clock::ingest_ns() else { return hand_on(request, asked.decision) };
    let Ok(write_id) = write_id::new(now_ns) else { return hand_on(request, asked.decision) };
    let Ok(plane) = asked.plane.for_a_call() else { return hand_on(request, asked.decision) };
    let entry = asked.begin("POST", language.status().0);
    let pending = match append(&asked.service, &plane, language, (request.body(), now_ns)) {
        Ok(pending) => pending,
        Err(outcome) => {
            if let Failure::Failed(error) = outcome {
                request.fail(Box::new(error));
            }
            return hand_on(request, asked.decision);
        }
    };
    let turn = request.end_turn();
    let open = Arc::clone(&asked.plane);
    open.acknowledge(pending, move |outcome| {
        // Its handle does not close it before.
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
    Served::Done(turn)
}

/// Answers a write that was stored.
fn end(
    asked: &Asked,
    language: Language,
    entry: Entry,
    mut request: Request,
    (written, write_id): (&Written, &str),
) {
    let (status, line, has_body) = language.status();
    let rejected = &written.rejected_indices;
    let body = if has_body {
        write_answer(write_id, written.accepted_count, rejected, 0)
    } else {
        Vec::new()
    };
    let key = &asked.identity.key;
    let by = (&*asked.identity.tenant.name, &*key.key_id);
    entry.books().wrote(&asked.identity.account, by, written);
    let bytes = (request.body().len() as u64, body.len() as u64);
    asked.end(entry, ("POST", status), bytes);
    let (service, status) = (&asked.service, (line, &*asked.request_id));
    let body = Body::Pieces(vec![Box::new(body)]);
    let answer = service.answer(&mut request, status, has_body, body);
    drop(request.answer(answer));
}

/// Appends a body. Nobody knows if an error that is no refusal has left it stored.
fn append(
    service: &Service,
    plane: &Plane,
    language: Language,
    (body, now_ns): (&[u8], i64),
) -> Result<Pending, WriteError> {
    let BatchBounds { batch, .. } = &service.bounds;
    let when = service.bounds.acknowledge(None);
    let (Language::Adapted(protocol), Some(mapping)) = (language, &service.mapping) else {
        return catching(|| Ok(plane.append(Format::Json, body, batch, now_ns, when)))?;
    };
    // A body with a faulty record is handed on as all that is refused, and nothing of it stored.
    let body = AdaptedBody { protocol, mapping, is_partial: false, bytes: body };
    catching(|| Ok(plane.append_adapted(body, batch, now_ns, when)))?
}
