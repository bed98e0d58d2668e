//! Writes a segment, block by block.

use super::block_size::{BLOCK_ROWS_MAX, BLOCK_VALUES_MAX, RowSizes};
use super::gather::{self, span_table};
use super::index::{self, BlockEntry};
use super::layout::{HEAD_LEN, INDEX_PART, SegmentPart, footer_checksum, head_of, index_len};
use super::representatives::Representatives;
use super::slices;
use super::sort::{sorted, sorted_pieces};
use super::span::RowSpan;
use super::statistics;
use crate::codec::{EFFORT_COUNT_MIN, Effort, TimeBounds, encode_block};
use crate::model::batch::{Block, Table};
use crate::model::error::Result;
use crate::model::names::SeriesId;
use crate::storage::seal::{Sealer, SegmentSealer, fill_random};
use crate::storage::store::{NewSegment, SegmentId, Store};

/// Once so many rows or values are pending, the blocks that they fill are written. The bound is two
/// blocks, because the size of each pending row is looked at again.
const PENDING_ROWS_MAX: usize = 2 * BLOCK_ROWS_MAX;
const PENDING_VALUES_MAX: usize = 2 * BLOCK_VALUES_MAX;

/// Pending tables with fewer rows are sorted together with the rows that follow, so that a block is
/// joined from few tables.
const TABLE_ROWS_MIN: usize = 1 << 10;

/// Id, size and bounds of a segment that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentSummary {
    /// Id of the segment.
    pub id: SegmentId,
    /// Bytes of the file.
    pub bytes: u64,
    /// Number of rows.
    pub rows: u64,
    /// Number of values.
    pub values: u64,
    /// Smallest and greatest time.
    pub times_ns: Option<(i64, i64)>,
    /// If true, more effort may make the segment shorter.
    pub is_provisional: bool,
}

/// Rows that are in no block yet, in their order.
#[derive(Default)]
struct UnwrittenRows {
    tables: Vec<Table>,
    rows: usize,
    /// Number of their values, [`Table::weight`].
    values: usize,
}

impl UnwrittenRows {
    fn push(&mut self, table: Table) {
        if table.row_count() > 0 {
            self.rows += table.row_count();
            self.values += table.weight();
            self.tables.push(table);
        }
    }

    /// Takes off the last tables if they are small and have no more rows than those that follow.
    fn take_small(&mut self, following: usize) -> Vec<Table> {
        let (mut start, mut rows) = (self.tables.len(), following);
        while let Some(table) = self.tables[..start].last()
            && table.row_count() < TABLE_ROWS_MIN
            && table.row_count() <= rows
        {
            start -= 1;
            rows += table.row_count();
            self.rows -= table.row_count();
            self.values -= table.weight();
        }
        self.tables.split_off(start)
    }
}

/// A segment that is being written. Memory holds a few blocks, however long the segment is.
pub struct SegmentWriter<'a> {
    file: Box<dyn NewSegment>,
    sealer: SegmentSealer,
    representatives: &'a Representatives,
    ingest_ns: i64,
    effort: Effort,
    blocks: Vec<BlockEntry>,
    written: SegmentSummary,
    pending: UnwrittenRows,
}

impl<'a> SegmentWriter<'a> {
    /// Begins a segment under a new id. `ingest_ns` is the greatest ingest instant of its rows.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Io`] or [`crate::model::error::Error::DiskFull`] if
    /// the file cannot be written.
    pub fn begin(
        store: &dyn Store,
        sealer: &Sealer,
        representatives: &'a Representatives,
        ingest_ns: i64,
        effort: Effort,
    ) -> Result<Self> {
        let create = |id: &SegmentId| store.create_segment(id);
        Self::new(create, sealer, representatives, ingest_ns, effort)
    }

    /// Begins a segment that only this handle reads and soon removes.
    ///
    /// # Errors
    /// Returns the errors of [`Self::begin`].
    pub fn begin_scratch(
        store: &dyn Store,
        sealer: &Sealer,
        representatives: &'a Representatives,
    ) -> Result<Self> {
        let create = |id: &SegmentId| store.create_scratch_segment(id);
        Self::new(create, sealer, representatives, 0, Effort::Low)
    }

    fn new(
        create: impl FnOnce(&SegmentId) -> Result<Box<dyn NewSegment>>,
        sealer: &Sealer,
        representatives: &'a Representatives,
        ingest_ns: i64,
        effort: Effort,
    ) -> Result<Self> {
        let mut id = SegmentId::default();
        fill_random(&mut id)?;
        let mut file = create(&id)?;
        let sealer = sealer.segment(&id);
        file.append(&head_of(&id, sealer.slot()))?;
        Ok(Self {
            file,
            sealer,
            representatives,
            ingest_ns,
            effort,
            blocks: Vec::new(),
            written: SegmentSummary { id, bytes: HEAD_LEN as u64, ..SegmentSummary::default() },
            pending: UnwrittenRows::default(),
        })
    }

    /// Adds rows of one measurement: sorted spans in write order. No row may belong before a row
    /// that was added earlier. The measurement may change only after [`Self::end_measurement`].
    ///
    /// # Errors
    /// Returns the errors of [`Self::begin`].
    pub fn push(&mut self, spans: &[RowSpan<'_>]) -> Result<()> {
        let rows = spans.iter().map(|span| span.rows.len()).sum();
        let small = self.pending.take_small(rows);
        let small: Vec<_> = small.iter().map(RowSpan::whole).collect();
        let table = self.sorted(&[small.as_slice(), spans].concat())?;
        self.push_sorted(table)
    }

    /// Adds sorted rows as [`Self::push`] does. All rows that were added earlier come before them.
    fn push_sorted(&mut self, table: Table) -> Result<()> {
        self.pending.push(table);
        if self.pending.rows >= PENDING_ROWS_MAX || self.pending.values >= PENDING_VALUES_MAX {
            self.write_full_blocks()?;
        }
        Ok(())
    }

    fn sorted(&self, spans: &[RowSpan<'_>]) -> Result<Table> {
        match spans {
            [span] => Ok(span_table(span)),
            spans => sorted(spans, self.representatives),
        }
    }

    /// Writes all rows of a measurement: spans in write order, sorted or not. `see` gets the sorted
    /// rows piece by piece.
    ///
    /// # Errors
    /// Returns the errors of [`Self::begin`] and of `see`.
    pub fn write_measurement(
        &mut self,
        spans: &[RowSpan<'_>],
        mut see: impl FnMut(&Table) -> Result<()>,
    ) -> Result<()> {
        sorted_pieces(spans, self.representatives, |rows| {
            see(&rows)?;
            self.push_sorted(rows)
        })?;
        self.end_measurement()
    }

    /// Writes the rows that have not filled a block.
    ///
    /// # Errors
    /// Returns the errors of [`Self::begin`].
    pub fn end_measurement(&mut self) -> Result<()> {
        self.write_full_blocks()?;
        let left = std::mem::take(&mut self.pending).tables;
        if left.is_empty() { Ok(()) } else { self.write_block(gather::concatenated(left)) }
    }

    /// Ends the segment. Its content is then durable; its name becomes durable with the manifest
    /// that lists it.
    ///
    /// # Errors
    /// Returns the errors of [`Self::begin`].
    pub fn finish(mut self) -> Result<SegmentSummary> {
        self.end_measurement()?;
        let index = self.sealer.seal(INDEX_PART, index::encode(&self.blocks));
        let checksum = footer_checksum(&head_of(&self.written.id, self.sealer.slot()), &index);
        let footer = [index.as_slice(), &index_len(&index), &checksum].concat();
        self.append(&footer)?;
        self.file.finish()?;
        Ok(self.written)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.written.bytes += bytes.len() as u64;
        self.file.append(bytes)
    }

    /// Writes the blocks that the pending rows are certain to fill.
    fn write_full_blocks(&mut self) -> Result<()> {
        let tables = std::mem::take(&mut self.pending).tables;
        let mut ends = self.block_ends(&tables)?.into_iter().peekable();
        let (mut start, mut of_block) = (0, Vec::new());
        for table in tables {
            let row_count = table.row_count();
            let is_within = |end: &usize| *end <= start + row_count;
            let within = std::iter::from_fn(|| ends.next_if(is_within));
            let mut cuts: Vec<usize> = within.map(|end| end - start).collect();
            let mut full_left = cuts.len();
            if cuts.last() != Some(&row_count) {
                cuts.push(row_count);
            }
            slices::cut(table, &cuts, |slice| {
                of_block.push(slice);
                if full_left > 0 {
                    full_left -= 1;
                    self.write_block(gather::concatenated(std::mem::take(&mut of_block)))?;
                }
                Ok(())
            })?;
            start += row_count;
        }
        for table in of_block {
            self.pending.push(table);
        }
        Ok(())
    }

    /// Returns the end of each block that is certain to be full: the row after it, counted in all
    /// tables.
    fn block_ends(&self, tables: &[Table]) -> Result<Vec<usize>> {
        let sizes = RowSizes::of(tables, self.effort);
        let series = tables.iter().map(|table| &*table.series).collect::<Vec<_>>().concat();
        let (mut ends, mut start) = (Vec::new(), 0);
        while let Some(end) = self.block_end(&series, start, &sizes)? {
            ends.push(end);
            start = end;
        }
        Ok(ends)
    }

    /// Returns the end of the block that begins at row `start`, or `None` if later rows may still
    /// join the block. The end lies between two entities if the block is then at least a quarter
    /// full, otherwise at the row that fills the block. `series` are those of sorted rows.
    fn block_end(
        &self,
        series: &[SeriesId],
        start: usize,
        sizes: &RowSizes,
    ) -> Result<Option<usize>> {
        let full = sizes.rows_in_block(start);
        if start + full >= series.len() {
            return Ok(None);
        }
        let representative = |row: usize| self.representatives.representative(series[row]);
        let behind = representative(start + full)?;
        // The rows are sorted, so a binary search finds the first row of the entity behind.
        let earliest = start + full / 4;
        let (mut first, mut end) = (earliest, start + full);
        while first < end {
            let middle = first.midpoint(end);
            if representative(middle)? < behind {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        Ok(Some(if first > earliest { first } else { start + full }))
    }

    fn write_block(&mut self, table: Table) -> Result<()> {
        let row = |row: usize| {
            Ok((self.representatives.representative(table.series[row])?, table.times_ns[row]))
        };
        let Some(TimeBounds { min_ns, max_ns }) = TimeBounds::of(&table.times_ns) else {
            return Ok(());
        };
        let mut entry = BlockEntry {
            offset: self.written.bytes,
            sealed_len: 0,
            statistics_len: 0,
            rows: table.row_count(),
            first: row(0)?,
            last: row(table.row_count() - 1)?,
            min_ns,
            max_ns,
        };
        let (first_ns, last_ns) = self.written.times_ns.unwrap_or((min_ns, max_ns));
        self.written.times_ns = Some((first_ns.min(min_ns), last_ns.max(max_ns)));
        self.written.rows += table.row_count() as u64;
        self.written.values += values_of(&table);
        self.written.is_provisional |=
            self.effort == Effort::Low && table.row_count() >= EFFORT_COUNT_MIN;
        let statistics = statistics::of(&table, self.representatives)?;
        let at = self.blocks.len();
        entry.sealed_len = self.write_part(SegmentPart::Block(at), vec![table])?;
        if let Some(statistics) = statistics {
            entry.statistics_len = self.write_part(SegmentPart::Statistics(at), statistics)?;
        }
        self.blocks.push(entry);
        Ok(())
    }

    fn write_part(&mut self, part: SegmentPart, tables: Vec<Table>) -> Result<usize> {
        let block = Block { ingest_ns: self.ingest_ns, tables };
        let sealed = self.sealer.seal(part.number(), encode_block(&block, self.effort)?);
        self.append(&sealed)?;
        Ok(sealed.len())
    }
}

pub(super) fn values_of(table: &Table) -> u64 {
    table.columns.iter().map(|column| column.values.len() as u64).sum()
}
