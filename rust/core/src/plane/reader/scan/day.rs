//! One day of a stream.

use crate::model::batch::Table;
use crate::storage::manifest::SegmentEntry;

/// Wanted rows of one day, in write order.
#[derive(Default)]
pub(super) struct Day {
    /// Rows of a segment that it shares with other days, sorted.
    pub(super) shared: Vec<Table>,
    pub(super) segments: Vec<SegmentEntry>,
    /// Rows of the log, sorted, by rank of their measurement.
    pub(super) tables: Vec<Table>,
}
