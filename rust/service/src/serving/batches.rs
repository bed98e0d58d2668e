//! From the body of a write to a batch: the same for the front and for the application.

use std::borrow::Cow;

use fleetcast_core::model::fault;
use fleetcast_core::plane::{AdaptedBody, PendingBatch, Plane, WriteError};
use fleetcast_core::wire::{Format, Protocol};

use super::service::Service;
use super::unpacking::unpacked;
use crate::admission::{Language, coding};
use crate::answers::lines_parameters;
use crate::refusal::Refusal;

/// Treatment of faulty records of another protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPolicy {
    /// Faulty records are left out, unless the request says otherwise.
    LeftOut,
    /// A faulty record refuses the batch.
    Refused,
}

impl Service {
    /// Returns the content of a body whose head has this `Content-Encoding`.
    ///
    /// # Errors
    /// Returns `request_too_large` if the content is longer than a body may be, or for gzip of more
    /// than 1,024 members. Returns `invalid_input` if the body is malformed in its coding.
    pub fn content<'b>(
        &self,
        body: &'b [u8],
        content_encoding: Option<&[u8]>,
    ) -> Result<Cow<'b, [u8]>, Refusal> {
        let bytes_max = usize::try_from(self.admission.body_bytes_max).unwrap_or(usize::MAX);
        unpacked(coding(content_encoding), body, bytes_max)
    }

    /// Appends the content of a body to the log of its plane.
    ///
    /// # Errors
    /// Returns the errors of [`Plane::append`], and `invalid_input` for unknown parameters of
    /// lines. After an error that is not a refusal, the batch may or may not be stored.
    pub fn append(
        &self,
        plane: &Plane,
        (language, query): (Language, &str),
        content: &[u8],
        now_ns: i64,
        faulty: FaultPolicy,
    ) -> Result<PendingBatch, WriteError> {
        let (limits, when) = (&self.bounds.batch, self.bounds.acknowledge(None));
        // A listener without a mapping has no other language than JSON.
        let (Some((protocol, is_partial)), Some(mapping)) =
            (protocol(language, query)?, &self.mapping)
        else {
            return plane.append(Format::Json, content, limits, now_ns, when);
        };
        let is_partial = is_partial && faulty == FaultPolicy::LeftOut;
        let body = AdaptedBody { protocol, mapping, is_partial, bytes: content };
        plane.append_adapted(body, limits, now_ns, when)
    }
}

/// Returns the protocol of a body, or `None` for JSON. Also returns true if sound records may be
/// stored even if others are faulty.
fn protocol(
    language: Language,
    query: &str,
) -> Result<Option<(Protocol, bool)>, fault::BatchRefusal> {
    Ok(Some(match language {
        Language::Json | Language::Form | Language::RemoteRead => return Ok(None),
        Language::Lines(version) => lines_parameters(version, query)?,
        Language::RemoteWrite => (Protocol::RemoteWrite, true),
        Language::Otlp => (Protocol::Otlp, true),
    }))
}
