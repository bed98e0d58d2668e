//! A day of a stream.

use crate::model::batch::Table;
use crate::storage::manifest::SegmentEntry;

/// Wanted rows of one day, in write order.
#[derive(Default)]
pub(super) struct Day {
    /// Sorted rows of a segment that this day shares with other days.
    pub(super) shared: Vec<Table>,
    pub(super) segments: Vec<SegmentEntry>,
    /// Sorted rows of the log, by the rank of their measurement.
    pub(super) tables: Vec<Table>,
}
