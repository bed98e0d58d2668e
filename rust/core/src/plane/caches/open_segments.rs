//! Segments that reads opened: their indexes, the unsealed parts used last, and decoded hours.

use std::ops::Range;

use super::cache::LruCache;
use crate::model::batch::Table;
use crate::model::catalog::MeasurementIndex;
use crate::model::limits::{
    SEGMENT_HOURS_BYTES_MAX, SEGMENT_INDEX_BYTES_MAX, SEGMENT_PARTS_BYTES_MAX,
};
use crate::query::SeriesIndex;
use crate::storage::segment::{BlockEntry, Segment, SegmentPart};
use crate::storage::store::SegmentId;

pub(in crate::plane) struct OpenSegments {
    pub(in crate::plane) segments: LruCache<SegmentId, OpenSegment>,
    pub(in crate::plane) parts: LruCache<(SegmentId, SegmentPart), Vec<u8>>,
    /// By segment, index of the block and start of the hour.
    pub(in crate::plane) hours: LruCache<(SegmentId, usize, i64), BlockHour>,
}

/// The rows of a block within one hour, with only the numeric columns.
pub(in crate::plane) struct BlockHour {
    pub(in crate::plane) table: Table,
    pub(in crate::plane) index: SeriesIndex,
}

/// A segment, and the measurement of each of its blocks.
pub(in crate::plane) struct OpenSegment {
    pub(in crate::plane) id: SegmentId,
    pub(in crate::plane) segment: Segment,
    pub(in crate::plane) measurements: Vec<MeasurementIndex>,
}

impl Default for OpenSegments {
    fn default() -> Self {
        let segments = LruCache::new(SEGMENT_INDEX_BYTES_MAX);
        let hours = LruCache::new(SEGMENT_HOURS_BYTES_MAX);
        Self { segments, parts: LruCache::new(SEGMENT_PARTS_BYTES_MAX), hours }
    }
}

impl OpenSegments {
    /// Returns the bytes of the indexes, parts and hours.
    pub(super) fn bytes(&self) -> usize {
        self.segments.weight() + self.parts.weight() + self.hours.weight()
    }

    /// Removes everything.
    pub(super) fn clear(&self) {
        self.segments.clear();
        self.parts.clear();
        self.hours.clear();
    }
}

impl OpenSegment {
    /// Returns the blocks that have a row in `times_ns`, with their indices. `None` asks for all
    /// measurements.
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
