//! Merges sorted rows of several sources. Memory holds one table of each source at a time.

use super::reader::Segment;
use super::representatives::Representatives;
use super::span::RowSpan;
use super::writer::SegmentWriter;
use crate::model::batch::Table;
use crate::model::error::Result;
use crate::model::names::SeriesId;
use crate::storage::store::Store;

/// Sorted rows in pieces. Each piece is a table of one measurement.
pub trait SortedTables {
    /// Returns the next piece, which is never empty, or `None` at the end.
    ///
    /// # Errors
    /// Returns the errors of [`Segment::open`].
    fn next_table(&mut self) -> Result<Option<Table>>;

    /// Returns true if there may be another piece.
    fn has_more(&self) -> bool;
}

/// The blocks of a whole segment.
struct SegmentBlocks<'a, V> {
    store: &'a dyn Store,
    segment: &'a Segment,
    /// Position of the block to decode next.
    next: usize,
    /// Leaves out rows that are deleted.
    visible: V,
}

impl<V: Fn(Table) -> Table> SortedTables for SegmentBlocks<'_, V> {
    fn next_table(&mut self) -> Result<Option<Table>> {
        while self.has_more() {
            let mut block = self.segment.block(self.store, self.next)?;
            self.next += 1;
            let table = block.tables.pop().map(&self.visible);
            if table.as_ref().is_some_and(|table| table.row_count() > 0) {
                return Ok(table);
            }
        }
        Ok(None)
    }

    fn has_more(&self) -> bool {
        self.next < self.segment.blocks().len()
    }
}

/// A source, and the table that is being merged.
struct MergeInput<S> {
    source: S,
    current: Option<CurrentTable>,
}

struct CurrentTable {
    rank: u32,
    table: Table,
    /// Rows before this row are merged.
    start: usize,
}

/// Sources in write order, merged by measurement, entity and time.
pub struct Merge<S> {
    inputs: Vec<MergeInput<S>>,
}

/// Merges `segments`, which are in write order, into `writer`. `visible` gets each table with the
/// position of its segment, and returns the rows to keep.
///
/// # Errors
/// Returns the errors of [`Segment::open`].
pub fn merge(
    store: &dyn Store,
    representatives: &Representatives,
    segments: &[&Segment],
    visible: impl Fn(usize, Table) -> Table,
    writer: &mut SegmentWriter<'_>,
) -> Result<()> {
    let visible = &visible;
    let blocks = segments.iter().enumerate().map(|(order, segment)| {
        let visible = move |table| visible(order, table);
        SegmentBlocks { store, segment, next: 0, visible }
    });
    let mut merge = Merge::new(blocks);
    let mut writing = None;
    let mut push = |rank: u32, spans: &[RowSpan<'_>]| {
        if writing.replace(rank).is_some_and(|before| before != rank) {
            writer.end_measurement()?;
        }
        writer.push(spans)
    };
    while merge.step(representatives, &mut push)?.is_some() {}
    Ok(())
}

impl<S: SortedTables> Merge<S> {
    /// Prepares to merge `sources`, which are in write order.
    pub fn new(sources: impl Iterator<Item = S>) -> Self {
        Self { inputs: sources.map(|source| MergeInput { source, current: None }).collect() }
    }

    /// Hands the next rows to `take`: spans of one measurement in write order, and the rank of the
    /// measurement. These rows come before all later rows. Returns `None` if no rows are left.
    ///
    /// # Errors
    /// Returns the errors of [`Segment::open`] and of `take`.
    pub fn step<R>(
        &mut self,
        representatives: &Representatives,
        take: impl FnOnce(u32, &[RowSpan<'_>]) -> Result<R>,
    ) -> Result<Option<R>> {
        for input in &mut self.inputs {
            input.fill(representatives)?;
        }
        let ranks = self.inputs.iter().filter_map(|input| Some(input.current.as_ref()?.rank));
        let Some(rank) = ranks.min() else { return Ok(None) };
        // Rows after the last row of a table are unknown until the next table of its source is
        // read. So the step ends at the smallest last row.
        let mut bound = None;
        for (order, input) in self.inputs.iter().enumerate() {
            if let Some(last) = input.last_before_more(rank, representatives)? {
                let last = (last.0, last.1, order);
                bound = Some(bound.map_or(last, |bound: (SeriesId, i64, usize)| bound.min(last)));
            }
        }
        let mut spans = Vec::new();
        let mut ends = Vec::new();
        for (order, input) in self.inputs.iter().enumerate() {
            let span = input.upto(rank, order, bound, representatives)?;
            ends.push(span.as_ref().map(|span| span.rows.end));
            spans.extend(span);
        }
        let taken = take(rank, &spans)?;
        for (input, end) in self.inputs.iter_mut().zip(ends) {
            input.forget_until(end);
        }
        Ok(Some(taken))
    }
}

impl<S: SortedTables> MergeInput<S> {
    fn fill(&mut self, representatives: &Representatives) -> Result<()> {
        if self.current.is_none()
            && let Some(table) = self.source.next_table()?
        {
            self.current =
                Some(CurrentTable { rank: representatives.rank(&table)?, table, start: 0 });
        }
        Ok(())
    }

    /// Returns representative series and time of the last row of the table. Returns `None` if the
    /// table is of another measurement or is the last table.
    fn last_before_more(
        &self,
        rank: u32,
        representatives: &Representatives,
    ) -> Result<Option<(SeriesId, i64)>> {
        let has_more = self.source.has_more();
        match &self.current {
            Some(current) if has_more && current.rank == rank => {
                let row = current.table.row_count() - 1;
                Ok(Some((
                    representatives.representative(current.table.series[row])?,
                    current.table.times_ns[row],
                )))
            }
            _ => Ok(None),
        }
    }

    /// Returns the rows of this measurement up to `bound`.
    fn upto(
        &self,
        rank: u32,
        order: usize,
        bound: Option<(SeriesId, i64, usize)>,
        representatives: &Representatives,
    ) -> Result<Option<RowSpan<'_>>> {
        let Some(current) = self.current.as_ref().filter(|current| current.rank == rank) else {
            return Ok(None);
        };
        let table = &current.table;
        let mut rows = current.start..table.row_count();
        if let Some(bound) = bound {
            let mut found = rows.start;
            // The rows are sorted, so a binary search finds the end.
            while found < rows.end {
                let middle = found.midpoint(rows.end);
                let representative = representatives.representative(table.series[middle])?;
                if (representative, table.times_ns[middle], order) > bound {
                    rows.end = middle;
                } else {
                    found = middle + 1;
                }
            }
        }
        Ok((!rows.is_empty()).then_some(RowSpan { table, rows }))
    }

    /// Continues after the rows before `end` of the current table.
    fn forget_until(&mut self, end: Option<usize>) {
        let Some((current, end)) = self.current.as_mut().zip(end) else { return };
        current.start = end;
        if end == current.table.row_count() {
            self.current = None;
        }
    }
}
