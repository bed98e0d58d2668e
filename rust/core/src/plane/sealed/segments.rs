//! Segments as reads see them: each is opened once, and the parts used last stay in memory.

use std::ops::Range;
use std::sync::Arc;

use super::SealedStore;
use crate::codec::{BlockReader, decode_block};
use crate::model::batch::{FieldType, Table};
use crate::model::catalog::Catalog;
use crate::model::error::{Error, Result};
use crate::model::names::FieldId;
use crate::plane::caches::open_segments::{BlockHour, OpenSegment};
use crate::plane::caches::table_bytes::table_bytes;
use crate::query::{Collector, Selection, SeriesIndex};
use crate::storage::manifest::SegmentEntry;
use crate::storage::segment::{BlockEntry, HOUR_NS, SegmentPart, filtered, hour_of};
use crate::storage::tombstone::Origin;

/// Span of a read that takes the hours of blocks from the cache. A longer read decodes only the
/// wanted columns: its hours would drive out each other.
const HOURS_SPAN_MAX_NS: i64 = 4 * HOUR_NS;

/// Columns of a block whose hours are cached. A read of a wider block decodes only the wanted
/// columns.
const BLOCK_COLUMNS_MAX: usize = 32;

#[expect(clippy::cast_possible_truncation, reason = "an hour of nanoseconds has 42 bits")]
const HOUR_STEP: usize = HOUR_NS.cast_unsigned() as usize;

impl SealedStore {
    /// Returns the segment of an entry of the manifest. The caller lends `catalog`: a caller that
    /// holds the names must not ask for them again, because a writer that waits in between would
    /// block both.
    ///
    /// # Errors
    /// Returns [`Error::Stale`] if the segment is gone, [`Error::Corrupt`], [`Error::Closed`] or
    /// [`Error::Io`]. The other functions return the same errors.
    pub(in crate::plane) fn segment(
        &self,
        entry: &SegmentEntry,
        catalog: &Catalog,
    ) -> Result<Arc<OpenSegment>> {
        let cache = &self.caches.open_segments.segments;
        if let Some(open) = cache.get(&entry.id) {
            return Ok(open);
        }
        let segment = self.open_segment(entry)?;
        let measurement = |block: &BlockEntry| {
            let series = catalog.series(block.first.0);
            Ok(series.ok_or(Error::Corrupt { what: "a series without a name" })?.measurement)
        };
        let measurements = segment.blocks().iter().map(measurement).collect::<Result<_>>()?;
        let weight = size_of::<OpenSegment>() + size_of_val(segment.blocks());
        Ok(cache.put(entry.id, OpenSegment { id: entry.id, segment, measurements }, weight))
    }

    /// Tells the store which of these segments will be opened soon.
    pub(in crate::plane) fn prefetch<'e>(
        &self,
        entries: &mut (dyn Iterator<Item = &'e SegmentEntry> + '_),
    ) {
        let cache = &self.caches.open_segments.segments;
        let mut unknown = entries.filter(|entry| cache.get(&entry.id).is_none());
        self.store.prefetch(&mut unknown.by_ref().map(|entry| (entry.id, entry.bytes)));
    }

    /// Returns a part without its seal.
    pub(in crate::plane) fn part(
        &self,
        open: &OpenSegment,
        part: SegmentPart,
    ) -> Result<Arc<Vec<u8>>> {
        self.store.check_open()?;
        let cache = &self.caches.open_segments.parts;
        if let Some(plain) = cache.get(&(open.id, part)) {
            return Ok(plain);
        }
        let plain = open.segment.read(&*self.store, part)?;
        let weight = plain.len();
        Ok(cache.put((open.id, part), plain, weight))
    }

    /// Returns the rows of a block.
    pub(in crate::plane) fn block_table(
        &self,
        open: &OpenSegment,
        index: usize,
    ) -> Result<Option<Table>> {
        Ok(decode_block(&self.part(open, SegmentPart::Block(index))?)?.tables.pop())
    }

    /// Hands the rows of a segment that `selection` wants to `collector`, in write order within
    /// each entity and instant.
    pub(in crate::plane) fn collect(
        &self,
        open: &OpenSegment,
        selection: &Selection,
        collector: &mut impl Collector,
    ) -> Result<()> {
        let times_ns = selection.times_ns();
        let hours_ns = whole_hours(times_ns);
        let origin = Origin::Segment(open.id);
        for (index, block) in open.blocks(selection.measurement(), times_ns) {
            if !selection.wants_representative_in(block.first.0..=block.last.0) {
                continue;
            }
            if collector.is_full() {
                return Ok(());
            }
            let mut decoded = vec![(times_ns.clone(), None)];
            let left_out;
            if let Some(wanted) = collector.hourly_statistics()
                && block.has_statistics()
                && block.overlaps(&hours_ns)
                && !selection.hides_in(&origin, &(block.min_ns..block.max_ns.saturating_add(1)))
            {
                let statistics = self.part(open, SegmentPart::Statistics(index))?;
                let statistics = BlockReader::open(&statistics)?;
                left_out =
                    selection.collect_statistics(&statistics, &hours_ns, wanted, collector)?;
                let ends = [times_ns.start..hours_ns.start, hours_ns.end..times_ns.end];
                decoded = ends.map(|end| (end, None)).to_vec();
                if !left_out.is_empty() {
                    decoded.push((hours_ns.clone(), Some(left_out.as_slice())));
                }
            }
            for (times_ns, fields) in decoded {
                if !times_ns.is_empty() && block.overlaps(&times_ns) {
                    let rows = (&times_ns, fields);
                    self.collect_rows((open, index), rows, selection, collector)?;
                }
            }
        }
        Ok(())
    }

    /// Hands the hours of a segment of kept hours that `selection` wants to `collector`. An hour that
    /// lies only partly in the wanted times is left out.
    pub(in crate::plane) fn collect_kept_hours(
        &self,
        open: &OpenSegment,
        selection: &Selection,
        collector: &mut impl Collector,
    ) -> Result<()> {
        let Some(wanted) = collector.hourly_statistics() else { return Ok(()) };
        let hours_ns = whole_hours(selection.times_ns());
        let origin = Origin::Segment(open.id);
        for (index, block) in open.blocks(selection.measurement(), &hours_ns) {
            if selection.wants_representative_in(block.first.0..=block.last.0)
                && !collector.is_full()
            {
                let hours = self.part(open, SegmentPart::Block(index))?;
                let hours = (&origin, &BlockReader::open(&hours)?);
                selection.collect_kept_hours(hours, &hours_ns, wanted, collector)?;
            }
        }
        Ok(())
    }

    /// Hands over the rows of a block in `times_ns`, which the block overlaps. `fields` restricts
    /// the fields.
    fn collect_rows(
        &self,
        (open, index): (&OpenSegment, usize),
        (times_ns, fields): (&Range<i64>, Option<&[FieldId]>),
        selection: &Selection,
        collector: &mut impl Collector,
    ) -> Result<()> {
        let origin = Origin::Segment(open.id);
        let block = &open.segment.blocks()[index];
        let wanted_ns =
            times_ns.start.max(block.min_ns)..times_ns.end.min(block.max_ns.saturating_add(1));
        let span_ns = times_ns.end.saturating_sub(times_ns.start);
        if span_ns <= HOURS_SPAN_MAX_NS
            && fields.is_none()
            && !selection.hides_in(&origin, &wanted_ns)
        {
            let hours = self.hours(open, index, &wanted_ns)?;
            for hour in &hours {
                let rows = (&hour.table, Some(&hour.index));
                selection.collect_decoded(rows, times_ns, collector);
            }
            if !hours.is_empty() {
                return Ok(());
            }
        }
        let rows = self.part(open, SegmentPart::Block(index))?;
        let block = BlockReader::open(&rows)?;
        selection.collect((&origin, &block), times_ns, fields, collector)
    }

    /// Returns the hours of a block that overlap `times_ns`, a range within the block. Returns no
    /// hour if there are too many columns to decode for one read.
    fn hours(
        &self,
        open: &OpenSegment,
        index: usize,
        times_ns: &Range<i64>,
    ) -> Result<Vec<Arc<BlockHour>>> {
        let (first, last) = (hour_of(times_ns.start), hour_of(times_ns.end.saturating_sub(1)));
        let cache = &self.caches.open_segments.hours;
        let starts = (first..=last).step_by(HOUR_STEP);
        let known: Option<Vec<_>> =
            starts.clone().map(|start| cache.get(&(open.id, index, start))).collect();
        if let Some(known) = known {
            return Ok(known);
        }
        let plain = self.part(open, SegmentPart::Block(index))?;
        let block = BlockReader::open(&plain)?;
        if block.tables().iter().any(|table| table.columns.len() > BLOCK_COLUMNS_MAX) {
            return Ok(Vec::new());
        }
        let Some(table) = numbers(&block)? else { return Ok(Vec::new()) };
        let of_hour = |start: i64| {
            let key = (open.id, index, start);
            cache.get(&key).unwrap_or_else(|| {
                let times_ns = start..start.saturating_add(HOUR_NS);
                let is_within = |row: usize| times_ns.contains(&table.times_ns[row]);
                let table = filtered(&table, is_within).into_owned();
                let index = SeriesIndex::new(&table);
                let weight = table_bytes(&table) + index.bytes();
                cache.put(key, BlockHour { table, index }, weight)
            })
        };
        Ok(starts.map(of_hour).collect())
    }
}

/// Returns the table of a block with its columns of numbers and booleans. Returns `None` if the
/// block does not have exactly one table.
fn numbers(block: &BlockReader<'_>) -> Result<Option<Table>> {
    if block.tables().len() != 1 {
        return Ok(None);
    }
    let table = block.table(0)?;
    let heads = table.head().columns.iter().enumerate();
    let numeric = heads.filter(|(_, head)| head.field_type != FieldType::Text);
    let columns = numeric.map(|(at, _)| table.column(at)).collect::<Result<_>>()?;
    Ok(Some(Table { series: table.series(), times_ns: table.times_ns()?, columns }))
}

/// Returns the range of hours that lie entirely in `times_ns`. Empty if there is none. Example:
/// 10:30 to 13:10 contains the hours from 11:00 to 13:00.
fn whole_hours(times_ns: &Range<i64>) -> Range<i64> {
    let first = hour_of(times_ns.start);
    let start = if first == times_ns.start { first } else { first.saturating_add(HOUR_NS) };
    let end = hour_of(times_ns.end);
    if start < end { start..end } else { 0..0 }
}
