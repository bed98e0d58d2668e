//! Segments that reads opened: their indexes, and the parts used last, unsealed.

use std::ops::Range;

use super::cache::Cache;
use crate::model::catalog::MeasurementIndex;
use crate::model::limits::{SEGMENT_INDEX_BYTES_MAX, SEGMENT_PARTS_BYTES_MAX};
use crate::storage::segment::{BlockEntry, Part, Segment};
use crate::storage::store::SegmentId;

pub(in crate::plane) struct OpenSegments {
    pub(in crate::plane) segments: Cache<SegmentId, OpenSegment>,
    pub(in crate::plane) parts: Cache<(SegmentId, Part), Vec<u8>>,
}

/// A segment, and the measurement of each of its blocks.
pub(in crate::plane) struct OpenSegment {
    pub(in crate::plane) id: SegmentId,
    pub(in crate::plane) segment: Segment,
    pub(in crate::plane) measurements: Vec<MeasurementIndex>,
}

impl Default for OpenSegments {
    fn default() -> Self {
        let segments = Cache::new(SEGMENT_INDEX_BYTES_MAX);
        Self { segments, parts: Cache::new(SEGMENT_PARTS_BYTES_MAX) }
    }
}

impl OpenSegments {
    /// Bytes of the indexes and parts.
    pub(super) fn bytes(&self) -> usize {
        self.segments.weight() + self.parts.weight()
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.segments.clear();
        self.parts.clear();
    }
}

impl OpenSegment {
    /// The blocks of a measurement, or of all, with a row in `times_ns`, and their indices.
    pub(in crate::plane) fn blocks(
        &self,
        measurement: Option<MeasurementIndex>,
        times_ns: &Range<i64>,
    ) -> impl DoubleEndedIterator<Item = (usize, &BlockEntry)> {
        let blocks = self.segment.blocks().iter().zip(&self.measurements).enumerate();
        let wanted = blocks.filter(move |(_, (block, of))| {
            block.overlaps(times_ns) && measurement.is_none_or(|measurement| measurement == **of)
        });
        wanted.map(|(index, (block, _))| (index, block))
    }
}
