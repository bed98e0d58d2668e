//! The rules of one listener, by the settings in force.

use std::sync::Arc;

use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::Acknowledgement;
use fleetcast_core::query::SeriesLimits;
use fleetcast_core::storage::store::Cursor;
use fleetcast_core::wire::NameRules;
use fleetcast_front::{Answer, OutgoingBody, Request};
use fleetcast_promql::QuestionBounds;

use super::error_rows::ErrorRows;
use super::fields::CommonFields;
use crate::admission::Admission;
use crate::answers::ForecastRules;

/// Bounds of one batch, and of the batches that wait with it.
#[derive(Clone, Copy, Debug)]
pub struct BatchBounds {
    /// Bounds of the batch.
    pub batch: WriteLimits,
    /// Bytes that may wait in asynchronous mode; `None` if batches are durable when acknowledged.
    pub buffer_bytes_max: Option<usize>,
}

impl BatchBounds {
    /// Returns when a batch is acknowledged. `cursor` is the batch's position in a file.
    #[must_use]
    pub fn acknowledge(&self, cursor: Option<Cursor>) -> Acknowledgement {
        match (cursor, self.buffer_bytes_max) {
            (Some(cursor), _) => Acknowledgement::At(cursor),
            (None, Some(bytes_max)) => Acknowledgement::Buffered { bytes_max },
            (None, None) => Acknowledgement::Durable,
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
    /// Rules of forecasts.
    pub forecasts: ForecastRules,
    /// Bounds of a question in the language of Prometheus.
    pub questions: QuestionBounds,
    /// Error codes whose refusals are answered here.
    pub errors: ErrorRows,
    /// If true, the application simulates entities for a tenant without a fleet.
    pub simulates: bool,
    /// Names of other protocols, if the listener accepts these protocols.
    pub mapping: Option<Arc<NameRules>>,
}

/// The head of an answer that is made here.
pub(super) struct AnswerHead<'t> {
    pub(super) status: &'t str,
    pub(super) request_id: &'t str,
    /// Fields of this answer alone. The application would set them before the fields of all answers.
    pub(super) own: &'t [(&'t str, &'t str)],
    pub(super) is_json: bool,
}

impl Service {
    /// Composes an answer that is made here.
    pub(super) fn answer(
        &self,
        request: &mut Request,
        head: &AnswerHead<'_>,
        body: OutgoingBody,
    ) -> Answer {
        let origin = request.head().and_then(|head| head.field("ORIGIN")).map(<[u8]>::to_vec);
        let fields = self.fields.of(head.request_id, origin.as_deref(), None);
        let content_type = head.is_json.then_some(("content-type", "application/json"));
        let fields = head.own.iter().copied().chain(fields).chain(content_type);
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        // The settings contain no origin with a line break.
        request.compose(head.status.as_bytes(), fields, body).unwrap_or_default()
    }
}
