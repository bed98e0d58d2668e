//! Reads: newest samples, series, and forecasts that were computed earlier.

use std::sync::Arc;

use fleetcast_core::model::chunks::AnswerBody;
use fleetcast_core::model::error::catching;
use fleetcast_core::plane::{Failure, Plane, reading_on_one};
use fleetcast_front::{self as front, Request, ServeOutcome};

use super::asked::{AdmittedRequest, hand_on};
use super::service::AnswerHead;
use crate::answers::{ReadFailure, latest, series};
use crate::long::{self, LongAnswer};

const STATUS: (u16, &str) = (200, "200 OK");
/// The end of an answer without entities.
const NOTHING: &[u8] = b"\"entities\":[]}";

/// A read.
#[derive(Clone, Copy)]
pub(super) enum Read {
    Latest,
    Series,
    Forecasts,
}

/// Answers a read, or hands it to the application if it does not succeed.
pub(super) fn read(asked: AdmittedRequest, read: Read, mut request: Request) -> ServeOutcome {
    let Ok(plane) = asked.plane.for_a_call() else { return hand_on(request, asked.decision) };
    let entry = asked.begin(STATUS.0, None);
    let query = request.head().map_or("", |head| head.query());
    let made = reading_on_one(request.is_heavy(), || body(&asked, &plane, read, query));
    let body = match made {
        Ok(Some(body)) => body,
        Ok(None) => return hand_on(request, asked.decision),
        Err(failure) => {
            if let Failure::Failed(error) = failure {
                request.fail(Box::new(error));
            }
            return hand_on(request, asked.decision);
        }
    };
    drop(plane);
    let (service, request_id) = (Arc::clone(&asked.service), asked.request_id.clone());
    let mut bytes_text = None;
    let body = match body {
        body if asked.method == "HEAD" => {
            if let AnswerBody::Whole(pieces) = body {
                let bytes: usize = pieces.iter().map(Vec::len).sum();
                bytes_text = Some(bytes.to_string());
            }
            asked.end(entry, (STATUS.0, None), (0, 0));
            front::OutgoingBody::Pieces(Vec::new())
        }
        AnswerBody::Whole(pieces) => {
            let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
            asked.end(entry, (STATUS.0, None), (0, bytes));
            front::OutgoingBody::Pieces(pieces.into_iter().map(long::piece).collect())
        }
        AnswerBody::Long(pieces) => {
            let mut long = LongAnswer::new(pieces);
            long.when_over(Box::new(move |bytes| asked.end(entry, (STATUS.0, None), (0, bytes))));
            front::OutgoingBody::Rest(Box::new(long))
        }
    };
    let own: Vec<_> = bytes_text.iter().map(|text| ("content-length", &**text)).collect();
    let head = AnswerHead { status: STATUS.1, request_id: &request_id, own: &own, is_json: true };
    let answer = service.answer(&mut request, &head, body);
    ServeOutcome::Done(request.answer(answer))
}

/// Returns the body of an answer, or `None` if the application must answer instead.
fn body(
    asked: &AdmittedRequest,
    plane: &Plane,
    read: Read,
    query: &str,
) -> Result<Option<AnswerBody>, ReadFailure> {
    let service = &asked.service;
    let made = || match read {
        Read::Latest => latest(plane, query).map(Some),
        Read::Series => series(plane, query, &service.series).map(Some),
        Read::Forecasts => service.forecasts.answer(plane, &asked.identity.account, query),
    };
    let Some(body) = catching(|| Ok(made()))?? else { return Ok(None) };
    let is_simulated = service.simulates
        && matches!(read, Read::Latest)
        && matches!(&body, AnswerBody::Whole(pieces) if pieces.iter().all(|p| p.ends_with(NOTHING)));
    Ok((!is_simulated).then_some(body))
}
