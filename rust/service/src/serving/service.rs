//! The rules of one listener, as the settings in force have them.

use std::sync::Arc;

use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::Acknowledge;
use fleetcast_core::query::SeriesLimits;
use fleetcast_core::storage::store::Cursor;
use fleetcast_core::wire::Mapping;
use fleetcast_front::{Answer, BodyLength, answer_head};

use super::fields::CommonFields;
use crate::admission::Admission;

/// Bytes below which a body is copied behind its head: that costs less than keeping it.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// Bounds of one batch, and of the batches that wait with it.
#[derive(Clone, Copy, Debug)]
pub struct BatchBounds {
    /// Bounds of the batch.
    pub batch: WriteLimits,
    /// Bytes that may wait in asynchronous mode; `None` if a batch is durable once acknowledged.
    pub buffer_bytes_max: Option<usize>,
}

impl BatchBounds {
    /// The moment at which a batch is acknowledged, whose position in a file is `cursor`.
    #[must_use]
    pub fn acknowledge(&self, cursor: Option<Cursor>) -> Acknowledge {
        match (cursor, self.buffer_bytes_max) {
            (Some(cursor), _) => Acknowledge::At(cursor),
            (None, Some(bytes_max)) => Acknowledge::Buffered { bytes_max },
            (None, None) => Acknowledge::Durable,
        }
    }
}

/// The rules of one listener.
pub struct Service {
    /// Decides about requests.
    pub admission: Admission,
    /// Fields of all answers.
    pub fields: CommonFields,
    /// Bounds of a write.
    pub bounds: BatchBounds,
    /// Bounds of a read of series.
    pub series: SeriesLimits,
    /// Entities are simulated for a tenant without a fleet, by the application.
    pub simulates: bool,
    /// Names of other protocols, if the listener takes these.
    pub mapping: Option<Arc<Mapping>>,
}

/// The head of an answer that is made here.
pub(super) struct Head<'t> {
    pub(super) status: &'static str,
    pub(super) request_id: &'t str,
    pub(super) origin: Option<&'t [u8]>,
    /// A field of its own, which the application would set before those of all answers.
    pub(super) own: Option<(&'static str, &'t str)>,
    pub(super) is_json: bool,
    pub(super) length: BodyLength,
    pub(super) keep: bool,
}

impl Service {
    /// An answer without its body.
    pub(super) fn head(&self, head: &Head<'_>) -> Answer {
        let fields = self.fields.of(head.request_id, head.origin, None);
        let content_type = head.is_json.then_some(("content-type", "application/json"));
        let own = head.own.into_iter();
        let fields = own.chain(fields).chain(content_type);
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        // No origin of the settings breaks a line.
        let bytes = answer_head(head.status.as_bytes(), head.keep, fields, head.length);
        Answer { head: bytes.unwrap_or_default(), ..Answer::default() }
    }
}

/// Appends a piece of the body of an answer.
pub(super) fn add_piece(answer: &mut Answer, piece: Vec<u8>) {
    if answer.pieces.is_empty() && piece.len() < COPIED_BYTES_MAX {
        answer.head.extend_from_slice(&piece);
    } else {
        answer.pieces.push(crate::long::piece(piece));
    }
}
