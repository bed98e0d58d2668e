//! Questions in the language of Prometheus. A question that is refused is answered here, too: the
//! application would evaluate it once more.

use fleetcast_core::model::clock::CallTime;
use fleetcast_core::model::error::{Result, catching};
use fleetcast_core::plane::{Plane, reading_on_one};
use fleetcast_front::head::RequestHead;
use fleetcast_front::{OutgoingBody, Request, ServeOutcome};
use fleetcast_promql::{self as promql, ApiAnswer, ApiRequest};

use super::asked::{AdmittedRequest, hand_on};
use super::service::{AnswerHead, Service};

impl Service {
    /// Answers a path of Prometheus' HTTP API, as of now.
    ///
    /// # Errors
    /// Returns the errors of the store. A request that is refused has an answer.
    pub fn ask(&self, plane: &Plane, request: ApiRequest<'_>) -> Result<ApiAnswer> {
        promql::answer(plane, request, self.questions, CallTime::by_wall_clock())
    }

    /// Answers remote read, as of now.
    ///
    /// # Errors
    /// Returns the errors of the store. A message that is refused has an answer.
    pub fn read_samples(&self, plane: &Plane, message: &[u8]) -> Result<ApiAnswer> {
        promql::answer_read(plane, message, self.questions, CallTime::by_wall_clock())
    }
}

/// Answers a question, or hands it to the application if the store fails.
pub(super) fn question(asked: AdmittedRequest, mut request: Request) -> ServeOutcome {
    let Ok(plane) = asked.plane.for_a_call() else { return hand_on(request, asked.decision) };
    let mut entry = asked.begin(200, None);
    let made = reading_on_one(request.is_heavy(), || catching(|| ask(&asked, &plane, &request)));
    drop(plane);
    let answer = match made {
        Ok(answer) => answer,
        Err(error) => {
            request.fail(Box::new(error));
            return hand_on(request, asked.decision);
        }
    };
    if answer.error.is_some() {
        entry = asked.begin(answer.status, answer.error);
    }
    let is_head = asked.method == "HEAD";
    let bytes = answer.body.len();
    let bytes_in = request.head().map_or(0, RequestHead::body_bytes);
    let bytes_out = if is_head { 0 } else { bytes as u64 };
    asked.end(entry, (answer.status, answer.error), (bytes_in, bytes_out));
    let bytes_text = bytes.to_string();
    let own: &[_] = if is_head { &[("content-length", &*bytes_text)] } else { &[] };
    let head = AnswerHead {
        status: answer.status_line,
        request_id: &asked.request_id,
        own,
        is_json: true,
    };
    let body = OutgoingBody::Pieces(vec![Box::new(answer.body)]);
    let answer = asked.service.answer(&mut request, &head, body);
    ServeOutcome::Done(request.answer(answer))
}

fn ask(asked: &AdmittedRequest, plane: &Plane, request: &Request) -> Result<ApiAnswer> {
    let (path, query) = request.head().map_or(("", ""), |head| (head.path(), head.query()));
    asked.service.ask(plane, ApiRequest { path, query, form: request.body() })
}
