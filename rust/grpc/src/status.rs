//! Statuses of calls, and the trailers that carry them.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use fleetcast_service::answers::WriteOutcome;
use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};
use prost::Message;

const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
const WRITE_OUTCOME: &str = "x-write-outcome";
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
/// Characters of `grpc-message` that are escaped in addition to all non-ASCII characters.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');
/// Bound on the characters of a field. Trailers share one bounded block, and a name may have a
/// megabyte.
const FIELD_CHARACTERS_MAX: usize = 1_000;

/// A status of gRPC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GrpcStatus(usize);

impl GrpcStatus {
    pub(crate) const OK: Self = Self(0);
    pub(crate) const CANCELLED: Self = Self(1);
    pub(crate) const UNKNOWN: Self = Self(2);
    pub(crate) const UNIMPLEMENTED: Self = Self(12);
    pub(crate) const INTERNAL: Self = Self(13);
    pub(crate) const UNAVAILABLE: Self = Self(14);
    pub(crate) const UNAUTHENTICATED: Self = Self(16);

    /// Returns the status of that name, if there is such a status. Example: `UNAVAILABLE`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        NAMES.iter().position(|each| *each == name).map(Self)
    }

    /// The name of the status.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self.0]
    }

    /// Returns the status in trailers, or [`Self::UNKNOWN`] if they have no valid status.
    pub(crate) fn of_trailers(trailers: &HeaderMap) -> Self {
        let number =
            trailers.get("grpc-status").and_then(|value| value.to_str().ok()?.parse().ok());
        number.filter(|number| *number < NAMES.len()).map_or(Self::UNKNOWN, Self)
    }
}

/// The status of each error code, and the seconds until a call may be sent again, if it may.
#[derive(Debug)]
pub struct Statuses(HashMap<String, (GrpcStatus, Option<i64>)>);

impl Statuses {
    /// Makes the table of statuses by error code.
    #[must_use]
    pub fn new(by_code: HashMap<String, (GrpcStatus, Option<i64>)>) -> Self {
        Self(by_code)
    }

    /// Returns the status of a refusal, and its trailers.
    pub(crate) fn of(&self, refusal: &CallRefusal) -> (GrpcStatus, HeaderMap) {
        let known = self.0.get(refusal.code).copied();
        let (status, retry_seconds) = known.unwrap_or((GrpcStatus::INTERNAL, None));
        let mut trailers = trailers(status, &refusal.details(), retry_seconds);
        let is_of_service = retry_seconds.is_some() || status == GrpcStatus::INTERNAL;
        if let Some(outcome) = refusal.write_outcome.filter(|_| is_of_service) {
            trailers.insert(WRITE_OUTCOME, HeaderValue::from_static(outcome.word()));
        }
        (status, trailers)
    }

    /// Adds the time of the next attempt to trailers, if their details are a code with such a time.
    pub(crate) fn complete(&self, trailers: &mut HeaderMap) {
        let Some(details) = details(trailers) else { return };
        if let Some((status, Some(seconds))) = self.0.get(&details) {
            add_retry(trailers, *status, &details, *seconds);
        }
    }
}

/// A refusal of a call: its code, and the facts for the client and the log.
#[derive(Debug, Default)]
pub(crate) struct CallRefusal {
    pub(crate) code: &'static str,
    /// The field with the fault.
    pub(crate) field: Option<String>,
    /// The setting that the tenant's names would have exceeded.
    pub(crate) bound: Option<&'static str>,
    /// A fault of this machine, only for the log.
    pub(crate) fault: Option<String>,
    /// The outcome of the call, if it is a write.
    pub(crate) write_outcome: Option<WriteOutcome>,
    /// If true, the client waits before it receives the refusal.
    pub(crate) is_over_share: bool,
}

impl CallRefusal {
    pub(crate) fn new(code: &'static str) -> Self {
        Self { code, ..Self::default() }
    }

    pub(crate) fn of_field(code: &'static str, field: Option<&str>) -> Self {
        let field = field.map(|field| field.chars().take(FIELD_CHARACTERS_MAX).collect());
        Self { field, ..Self::new(code) }
    }

    /// Refuses a body that is not one message.
    pub(crate) fn faulty() -> Self {
        Self::of_field("invalid_input", Some("payload"))
    }

    /// The client has ended the call and receives no answer.
    pub(crate) fn cancelled() -> Self {
        Self::default()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.code.is_empty()
    }

    pub(crate) fn over_share() -> Self {
        Self { is_over_share: true, ..Self::new("ingest_buffer_full") }
    }

    pub(crate) fn fault(code: &'static str, fault: String) -> Self {
        Self { fault: Some(fault), ..Self::new(code) }
    }

    /// Returns the refusal of a write. A write that did not reach a store left nothing behind.
    pub(crate) fn of_write(mut self) -> Self {
        self.write_outcome.get_or_insert_default();
        self
    }

    fn details(&self) -> Cow<'static, str> {
        match &self.field {
            None => self.code.into(),
            Some(field) => format!("{}:{field}", self.code).into(),
        }
    }
}

/// Returns the decoded text of a status.
pub(crate) fn details(trailers: &HeaderMap) -> Option<String> {
    let message = trailers.get("grpc-message")?;
    Some(percent_decode(message.as_bytes()).decode_utf8_lossy().into_owned())
}

/// Returns the trailers of a status.
pub(crate) fn trailers(status: GrpcStatus, details: &str, retry_seconds: Option<i64>) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(3);
    trailers.insert("grpc-status", HeaderValue::from(status.0));
    if !details.is_empty() {
        let message = percent_encode(details.as_bytes(), ESCAPED).to_string();
        if let Ok(message) = HeaderValue::from_str(&message) {
            trailers.insert("grpc-message", message);
        }
    }
    if let Some(seconds) = retry_seconds {
        add_retry(&mut trailers, status, details, seconds);
    }
    trailers
}

fn add_retry(trailers: &mut HeaderMap, status: GrpcStatus, details: &str, seconds: i64) {
    let retry = RetryInfo { retry_delay: Some(Delay { seconds }) };
    let detail = AnyDetail { type_url: RETRY_INFO.into(), value: retry.encode_to_vec() };
    let code = i32::try_from(status.0).unwrap_or_default();
    let status = RpcStatus { code, message: details.to_owned(), details: vec![detail] };
    let text = STANDARD_NO_PAD.encode(status.encode_to_vec());
    if let Ok(text) = HeaderValue::from_str(&text) {
        trailers.insert("grpc-status-details-bin", text);
    }
}

/// `google.rpc.Status`.
#[derive(Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<AnyDetail>,
}

/// `google.protobuf.Any`.
#[derive(Message)]
struct AnyDetail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes, tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Message)]
struct RetryInfo {
    #[prost(message, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration` of whole seconds.
#[derive(Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
}
