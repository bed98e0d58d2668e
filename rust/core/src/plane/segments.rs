//! Segments as a plane reads them: indexes and the parts used last are kept in memory.

use std::ops::Range;
use std::sync::Arc;

use super::Plane;
use super::caches::cache::Cache;
use crate::codec::{BlockReader, decode_block};
use crate::model::batch::Table;
use crate::model::catalog::{Catalog, MeasurementIndex};
use crate::model::error::{Error, Result};
use crate::model::limits::{SEGMENT_INDEX_BYTES_MAX, SEGMENT_PARTS_BYTES_MAX};
use crate::query::latest::Latest;
use crate::query::{Collector, Selection};
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::{BlockEntry, HOUR_NS, Part, Segment, hour_of};
use crate::storage::store::SegmentId;

/// What is kept of segments.
pub(super) struct SegmentCache {
    open: Cache<SegmentId, OpenSegment>,
    parts: Cache<(SegmentId, Part), Vec<u8>>,
}

/// A segment, and the measurement of each of its blocks.
pub(super) struct OpenSegment {
    pub(super) segment: Segment,
    measurements: Vec<MeasurementIndex>,
}

impl Default for SegmentCache {
    fn default() -> Self {
        let open = Cache::new(SEGMENT_INDEX_BYTES_MAX);
        Self { open, parts: Cache::new(SEGMENT_PARTS_BYTES_MAX) }
    }
}

impl SegmentCache {
    /// Bytes of what is kept.
    pub(super) fn bytes(&self) -> usize {
        self.open.weight() + self.parts.weight()
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.open.clear();
        self.parts.clear();
    }
}

impl OpenSegment {
    /// The blocks of a measurement, or of all, with a row in `times_ns`, and their places.
    pub(super) fn blocks(
        &self,
        measurement: Option<MeasurementIndex>,
        times_ns: &Range<i64>,
    ) -> impl DoubleEndedIterator<Item = (usize, &BlockEntry)> {
        let blocks = self.segment.blocks().iter().zip(&self.measurements).enumerate();
        let wanted = blocks.filter(move |(_, (block, of))| {
            block.overlaps(times_ns) && measurement.is_none_or(|measurement| measurement == **of)
        });
        wanted.map(|(at, (block, _))| (at, block))
    }
}

impl Plane {
    /// The segment of an entry of the manifest. `catalog` is lent, because whoever holds the names
    /// must not ask for them again: a writer that waits in between would stop both.
    ///
    /// # Errors
    /// [`Error::Stale`] where it is gone, [`Error::Corrupt`], [`Error::Io`].
    pub(super) fn open_segment(
        &self,
        entry: &SegmentEntry,
        catalog: &Catalog,
    ) -> Result<Arc<OpenSegment>> {
        if let Some(open) = self.caches.segments.open.get(&entry.id) {
            return Ok(open);
        }
        let segment = Segment::open(&*self.store, &self.sealer, &entry.id, entry.bytes)?;
        let measurement = |block: &BlockEntry| {
            let series = catalog.series(block.first.0);
            Ok(series.ok_or(Error::Corrupt { what: "a series without a name" })?.measurement)
        };
        let measurements = segment.blocks().iter().map(measurement).collect::<Result<_>>()?;
        let weight = size_of::<OpenSegment>() + size_of_val(segment.blocks());
        Ok(self.caches.segments.open.put(entry.id, OpenSegment { segment, measurements }, weight))
    }

    fn part(&self, id: &SegmentId, segment: &Segment, part: Part) -> Result<Arc<Vec<u8>>> {
        self.store.check_open()?;
        if let Some(plain) = self.caches.segments.parts.get(&(*id, part)) {
            return Ok(plain);
        }
        let plain = segment.read(&*self.store, part)?;
        let weight = plain.len();
        Ok(self.caches.segments.parts.put((*id, part), plain, weight))
    }

    /// The rows of a block.
    ///
    /// # Errors
    /// As [`Self::open_segment`].
    pub(super) fn block_table(
        &self,
        id: &SegmentId,
        segment: &Segment,
        at: usize,
    ) -> Result<Option<Table>> {
        Ok(decode_block(&self.part(id, segment, Part::Block(at))?)?.tables.pop())
    }

    /// Hands what a selection wants of a segment to `collector`, in write order within each
    /// entity and instant.
    ///
    /// # Errors
    /// As [`Self::open_segment`].
    pub(super) fn collect_segment(
        &self,
        entry: &SegmentEntry,
        selection: &Selection,
        collector: &mut impl Collector,
    ) -> Result<()> {
        let open = self.open_segment(entry, &self.names().catalog)?;
        let times_ns = selection.times_ns();
        let hours_ns = whole_hours(times_ns);
        for (at, block) in open.blocks(selection.measurement(), times_ns) {
            if !selection.wants_representative_in(block.first.0..=block.last.0) {
                continue;
            }
            if collector.is_full() {
                return Ok(());
            }
            let plain = |part| self.part(&entry.id, &open.segment, part);
            let mut decoded = vec![(times_ns.clone(), None)];
            let left_out;
            if let Some(aggregation) = collector.hourly_aggregation()
                && block.has_statistics()
                && block.overlaps(&hours_ns)
            {
                let statistics = plain(Part::Statistics(at))?;
                let statistics = BlockReader::open(&statistics)?;
                left_out =
                    selection.collect_statistics(&statistics, &hours_ns, aggregation, collector)?;
                let ends = [times_ns.start..hours_ns.start, hours_ns.end..times_ns.end];
                decoded = ends.map(|end| (end, None)).to_vec();
                if !left_out.is_empty() {
                    decoded.push((hours_ns.clone(), Some(left_out.as_slice())));
                }
            }
            for (times_ns, fields) in decoded {
                if !times_ns.is_empty() && block.overlaps(&times_ns) {
                    let rows = plain(Part::Block(at))?;
                    selection.collect(&BlockReader::open(&rows)?, &times_ns, fields, collector)?;
                }
            }
        }
        Ok(())
    }

    /// The newest samples as of the position that `manifest` reaches to.
    ///
    /// # Errors
    /// As [`Self::open_segment`].
    pub(super) fn load_checkpoint(&self, manifest: &Manifest) -> Result<Latest> {
        let mut latest = Latest::default();
        let entry = &manifest.checkpoint;
        if entry.bytes == 0 {
            return Ok(latest);
        }
        let segment = Segment::open(&*self.store, &self.sealer, &entry.id, entry.bytes)?;
        for at in 0..segment.blocks().len() {
            let block = segment.block(&*self.store, at)?;
            let names = self.names();
            for table in &block.tables {
                latest.apply(table, &super::ALWAYS_NS, &names.catalog);
            }
        }
        Ok(latest)
    }
}

/// The hours that lie in `times_ns` from end to end; empty where there is none.
fn whole_hours(times_ns: &Range<i64>) -> Range<i64> {
    let first = hour_of(times_ns.start);
    let start = if first == times_ns.start { first } else { first.saturating_add(HOUR_NS) };
    let end = hour_of(times_ns.end);
    if start < end { start..end } else { 0..0 }
}
