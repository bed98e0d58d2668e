//! Reads: newest samples and series.

use fleetcast_core::model::chunks::LongPieces;
use fleetcast_core::model::error::catching;
use fleetcast_core::plane::{Failure, LatestAnswer, Plane, ReadError};
use fleetcast_core::query::SeriesJson;
use fleetcast_front::{Answer, BodyLength, Request, Served};

use super::asked::{Asked, hand_on};
use super::service::{Head, Service, add_piece};
use crate::answers::{ReadFailure, latest, series};
use crate::long::LongAnswer;

const STATUS: (u16, &str) = (200, "200 OK");
/// The end of an answer about no entity.
const NOTHING: &[u8] = b"\"entities\":[]}";

/// A read.
#[derive(Clone, Copy)]
pub(super) enum Read {
    Latest,
    Series,
}

/// The body of an answer.
enum Body {
    Whole(Vec<Vec<u8>>),
    Long(Box<dyn LongPieces>),
}

/// Answers a read, or hands it on if it comes to nothing.
pub(super) fn read(asked: Asked, read: Read, mut request: Request) -> Served {
    let Ok(plane) = asked.plane.for_a_call() else { return hand_on(request, asked.decision) };
    let entry = asked.begin(STATUS.0);
    let query = request.head().map_or("", |head| head.query());
    let body = match body(&asked.service, &plane, read, query) {
        Ok(Some(body)) => body,
        Ok(None) => return hand_on(request, asked.decision),
        Err(failure) => {
            if let ReadFailure::Plane(Failure::Failed(error)) = failure {
                request.fail(Box::new(error));
            }
            return hand_on(request, asked.decision);
        }
    };
    drop(plane);
    let keep = request.keeps();
    let origin = request.head().and_then(|head| head.field("ORIGIN"));
    let bytes = match &body {
        Body::Whole(pieces) => Some(pieces.iter().map(Vec::len).sum()),
        Body::Long(_) => None,
    };
    let is_head = asked.method == "HEAD";
    let length = match bytes {
        _ if is_head => BodyLength::Unsaid,
        Some(bytes) => BodyLength::Bytes(bytes),
        None => BodyLength::Chunked,
    };
    let bytes_text = bytes.filter(|_| is_head).map(|bytes: usize| bytes.to_string());
    let own = bytes_text.as_deref().map(|text| ("content-length", text));
    let request_id = &asked.request_id;
    let head = Head { status: STATUS.1, request_id, origin, own, is_json: true, length, keep };
    let mut answer = asked.service.head(&head);
    match body {
        _ if is_head => asked.end(entry, STATUS.0, (0, 0)),
        Body::Whole(pieces) => {
            for piece in pieces {
                add_piece(&mut answer, piece);
            }
            asked.end(entry, STATUS.0, (0, bytes.unwrap_or_default() as u64));
        }
        Body::Long(pieces) => {
            let mut long = LongAnswer::new(pieces);
            long.when_over(Box::new(move |bytes| asked.end(entry, STATUS.0, (0, bytes))));
            answer = Answer { rest: Some(Box::new(long)), ..answer };
        }
    }
    Served::Done(request.answer(answer))
}

/// The body of an answer; `None` if the application has something to say instead.
fn body(
    service: &Service,
    plane: &Plane,
    read: Read,
    query: &str,
) -> Result<Option<Body>, ReadFailure> {
    let made = || {
        Ok(match read {
            Read::Latest => latest(plane, query).map(|answer| match answer {
                LatestAnswer::Whole(body) => Body::Whole(vec![body]),
                LatestAnswer::Long(pieces) => Body::Long(Box::new(pieces)),
            }),
            Read::Series => series(plane, query, &service.series).map(|answer| match answer {
                SeriesJson::Whole(pieces) => Body::Whole(pieces),
                SeriesJson::Long(pieces) => Body::Long(pieces),
            }),
        })
    };
    let body = catching(made).map_err(ReadError::from)??;
    let is_simulated = service.simulates
        && matches!(read, Read::Latest)
        && matches!(&body, Body::Whole(pieces) if pieces.iter().all(|p| p.ends_with(NOTHING)));
    Ok((!is_simulated).then_some(body))
}
