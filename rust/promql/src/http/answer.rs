//! Answers a request: finds its path, evaluates it within its bounds, and writes the answer.

use std::time::Duration;

use fleetcast_core::model::clock::CallTime;
use fleetcast_core::model::error::Error;
use fleetcast_core::model::json::write_string;
use fleetcast_core::model::time::write_rfc3339;
use fleetcast_core::plane::{Failure, Plane};
use percent_encoding::percent_decode;

use super::names;
use super::parameters::ApiParameters;
use super::question::{query, query_range};
use super::remote_read::{self, ReadAnswer};
use crate::budget::SampleBudget;
use crate::language::QUESTION_BYTES_MAX;
use crate::refusal::{EvaluationResult, QuestionError, QuestionRefusal, bad_data};
use crate::source::PlaneSource;

/// Bytes of stack that each byte of a question may take: an expression has fewer levels than bytes.
const STACK_BYTES_PER_BYTE: usize = 1 << 10;

/// Bytes of stack that a question may take beside its levels.
const STACK_BYTES_MIN: usize = 1 << 18;

/// The version of Prometheus whose language this is (`docs/prometheus.md`).
const BUILD: &[u8] = br#"{"version":"2.42.0","revision":"fleetcast","branch":"","buildUser":"","buildDate":"","goVersion":""}"#;

/// A request for a path below `/api/v1/`.
#[derive(Clone, Copy, Debug)]
pub struct ApiRequest<'r> {
    /// The path.
    pub path: &'r str,
    /// The query string.
    pub query: &'r str,
    /// The form in the body, or an empty body.
    pub form: &'r [u8],
}

/// Bounds of one question.
#[derive(Clone, Copy, Debug)]
pub struct QuestionBounds {
    /// Samples and values at steps that a question may use. Each takes up to 16 bytes.
    pub samples_max: usize,
    /// Time that a question may take.
    pub time_max: Duration,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAnswer {
    /// HTTP status.
    pub status: u16,
    /// The status with its phrase. Example: `200 OK`.
    pub status_line: &'static str,
    /// Word of the error, if the answer is an error.
    pub error: Option<&'static str>,
    /// Type of the body. A body of the type `application/x-protobuf` is in snappy.
    pub content_type: &'static str,
    /// JSON, or the samples of a remote read.
    pub body: Vec<u8>,
}

const JSON_TYPE: &str = "application/json";

const SAMPLES_TYPE: &str = "application/x-protobuf";

const FRAMES_TYPE: &str = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";

/// Answers a request from the samples of a plane.
///
/// # Errors
/// Returns the errors of the store. A request that is refused has an answer.
pub fn answer(
    plane: &Plane,
    request: ApiRequest<'_>,
    bounds: QuestionBounds,
    now: CallTime,
) -> std::result::Result<ApiAnswer, Error> {
    let stack_bytes = STACK_BYTES_MIN + STACK_BYTES_PER_BYTE * request.question_bytes_max();
    // A long question gets a larger stack on the same thread, whose CPU time counts for the tenant.
    let made = stacker::maybe_grow(stack_bytes, stack_bytes, || made(plane, request, bounds, now));
    answered(made.map(|(mut body, rows_from_ns)| {
        body.splice(..0, *br#"{"status":"success","data":"#);
        if let Some(rows_from_ns) = rows_from_ns {
            put_warning(&mut body, rows_from_ns);
        }
        body.push(b'}');
        (JSON_TYPE, body)
    }))
}

/// Answers a remote read from the samples of a plane. The body of the answer is a message in
/// snappy or frames of chunks, unless the request is refused.
///
/// # Errors
/// Returns the errors of the store. A request that is refused has an answer.
pub fn answer_read(
    plane: &Plane,
    message: &[u8],
    bounds: QuestionBounds,
    now: CallTime,
) -> std::result::Result<ApiAnswer, Error> {
    let budget = SampleBudget::new(bounds.samples_max, bounds.time_max);
    let read = remote_read::read(message, &PlaneSource::new(plane, now), &budget);
    answered(read.map(|read| match read {
        ReadAnswer::Samples(body) => (SAMPLES_TYPE, body),
        ReadAnswer::Frames(body) => (FRAMES_TYPE, body),
    }))
}

impl ApiRequest<'_> {
    /// Returns the bytes that the longest parameter can have without its escapes.
    fn question_bytes_max(&self) -> usize {
        let bytes = [self.form, self.query.as_bytes()].into_iter().flat_map(percent_decode);
        bytes.take(QUESTION_BYTES_MAX).count()
    }
}

fn answered(
    made: EvaluationResult<(&'static str, Vec<u8>)>,
) -> std::result::Result<ApiAnswer, Error> {
    match made {
        Ok((content_type, body)) => {
            Ok(ApiAnswer { status: 200, status_line: "200 OK", error: None, content_type, body })
        }
        Err(Failure::Refused(QuestionRefusal { kind, message })) => {
            let (status, status_line, word) = kind.status();
            let body = error_body(word, &message);
            let (error, content_type) = (Some(word), JSON_TYPE);
            Ok(ApiAnswer { status, status_line, error, content_type, body })
        }
        Err(Failure::Failed(error)) => Err(error),
    }
}

/// Returns the body of an error.
#[must_use]
pub fn error_body(kind: &str, message: &str) -> Vec<u8> {
    let mut body = br#"{"status":"error","errorType":"#.to_vec();
    write_string(&mut body, kind);
    body.extend_from_slice(br#","error":"#);
    write_string(&mut body, message);
    body.push(b'}');
    body
}

/// Returns the data of an answer, and the instant at which samples begin if the question asks for
/// samples before it of which there are hours.
fn made(
    plane: &Plane,
    request: ApiRequest<'_>,
    bounds: QuestionBounds,
    now: CallTime,
) -> EvaluationResult<(Vec<u8>, Option<i64>)> {
    let given = ApiParameters { query: request.query, form: request.form };
    let time_max = match given.duration_ms("timeout")? {
        Some(time_ms) => bounds.time_max.min(Duration::from_millis(time_ms.max(0).unsigned_abs())),
        None => bounds.time_max,
    };
    let budget = SampleBudget::new(bounds.samples_max, time_max);
    let source = PlaneSource::new(plane, now);
    let name = request.path.strip_prefix("/api/v1/").unwrap_or_default();
    let body = match name {
        "query" => query(&given, now.ns.div_euclid(1_000_000), (&source, &budget)),
        "query_range" => query_range(&given, (&source, &budget)),
        "series" => names::series(&given, &source, &budget),
        "labels" => names::labels(&given, &source, &budget),
        "metadata" => names::metadata(&given, &source),
        "status/buildinfo" => Ok(BUILD.to_vec()),
        other => {
            let label = other.strip_prefix("label/").and_then(|rest| rest.strip_suffix("/values"));
            let label = label.ok_or_else(|| no_path(request.path))?;
            names::label_values(label, &given, &source, &budget)
        }
    }?;
    Ok((body, source.rows_from_ns()))
}

/// Appends the warning that there are only hours before an instant. An hour is no sample, so an
/// answer has none of them.
fn put_warning(body: &mut Vec<u8>, rows_from_ns: i64) {
    let mut instant = Vec::new();
    write_rfc3339(&mut instant, rows_from_ns);
    let warning = format!(
        "samples are kept from {} on; before, there are hourly values, which only the series \
         endpoint answers (interval=1h)",
        String::from_utf8_lossy(&instant),
    );
    body.extend_from_slice(br#","warnings":["#);
    write_string(body, &warning);
    body.push(b']');
}

fn no_path(path: &str) -> QuestionError {
    bad_data(format!("no such path: {path}"))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

    use super::*;

    /// Half of the smallest stack of a caller.
    const CALLER_BYTES: usize = 1 << 20;

    /// Returns expressions of up to that many bytes, which go as deep as they can.
    fn deep(bytes: usize) -> Vec<String> {
        let nested = |open: &str, inner: &str, close: &str| {
            let levels = (bytes - inner.len()) / (open.len() + close.len());
            format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
        };
        vec![
            nested("-", "1", ""),
            nested("-", "x", ""),
            nested("(", "1", ")"),
            nested("-(", "1", ")"),
            nested("ln(", "x", ")"),
            nested("max(", "x", ")"),
            nested("rate(", "x", "[1m:])"),
            nested("label_join(", "x", ",\"a\",\"\")"),
            nested("", "1", "+1"),
            nested("", "1", "%1"),
            nested("x^", "x", ""),
            nested("x or(", "x", ")"),
            nested("((", "", ""),
            nested("", "x", "[1m:]"),
        ]
    }

    fn statuses(requests: &[(String, String)]) -> Vec<u16> {
        let plane = Plane::in_memory("acme").unwrap();
        let bounds = QuestionBounds { samples_max: 1_000_000, time_max: Duration::from_hours(1) };
        let ask = |(query, form): &(String, String)| {
            let request = ApiRequest { path: "/api/v1/query", query, form: form.as_bytes() };
            answer(&plane, request, bounds, CallTime::by_wall_clock()).unwrap().status
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().stack_size(CALLER_BYTES);
            let work = || requests.iter().map(ask).collect();
            thread.spawn_scoped(scope, work).unwrap().join().unwrap()
        })
    }

    #[test]
    fn expressions_of_every_depth_have_an_answer_on_the_stack_of_a_caller() {
        let name = "query=";
        for bytes in [600, 1 << 10, 1 << 12] {
            let mut requests = Vec::new();
            for question in deep(bytes) {
                let coded = utf8_percent_encode(&question, NON_ALPHANUMERIC).to_string();
                requests.push((format!("{name}{coded}"), String::new()));
                // Signs of which no escape begins stand for themselves.
                requests.push((String::new(), format!("{name}{}", question.replace('+', "%2B"))));
            }
            let statuses = statuses(&requests);
            let (answered, refused) = statuses.split_at(statuses.len() - 4);
            assert!(answered.iter().all(|status| *status == 200), "{bytes}: {statuses:?}");
            assert_eq!(refused, [400; 4]);
        }
    }

    #[test]
    fn a_question_has_the_bytes_that_its_escapes_stand_for() {
        let bytes = |query: &str, form: &str| {
            ApiRequest { path: "", query, form: form.as_bytes() }.question_bytes_max()
        };
        assert_eq!(bytes(&"%2B".repeat(500), "1%"), 502);
        assert_eq!(bytes("", &"%2B".repeat(1 << 15)), QUESTION_BYTES_MAX);
    }
}
