//! The rules of one listener, as the settings in force have them.

use std::sync::Arc;

use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::Acknowledge;
use fleetcast_core::query::SeriesLimits;
use fleetcast_core::storage::store::Cursor;
use fleetcast_core::wire::Mapping;
use fleetcast_front::{Answer, Body, Request};

use super::fields::CommonFields;
use crate::admission::Admission;

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
    /// A field of its own, which the application would set before those of all answers.
    pub(super) own: Option<(&'static str, &'t str)>,
    pub(super) is_json: bool,
}

impl Service {
    /// An answer that is made here.
    pub(super) fn answer(&self, request: &mut Request, head: &Head<'_>, body: Body) -> Answer {
        let origin = request.head().and_then(|head| head.field("ORIGIN")).map(<[u8]>::to_vec);
        let fields = self.fields.of(head.request_id, origin.as_deref(), None);
        let content_type = head.is_json.then_some(("content-type", "application/json"));
        let fields = head.own.into_iter().chain(fields).chain(content_type);
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        // No origin of the settings breaks a line.
        request.compose(head.status.as_bytes(), fields, body).unwrap_or_default()
    }
}
