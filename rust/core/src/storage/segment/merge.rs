//! Several segments into one, a block of each in memory at a time.

use super::reader::Segment;
use super::representatives::Representatives;
use super::span::Span;
use super::writer::SegmentWriter;
use crate::model::batch::Table;
use crate::model::error::Result;
use crate::model::names::SeriesId;
use crate::storage::store::Store;

/// One segment on its way into the merged one.
struct Input<'a> {
    segment: &'a Segment,
    /// The block to decode next.
    next: usize,
    current: Option<Current>,
}

struct Current {
    rank: u32,
    table: Table,
    /// Rows before this one are merged.
    start: usize,
}

/// Pushes the rows of `segments`, which are in write order, into `writer`.
///
/// # Errors
/// As [`Segment::open`].
pub fn merge(
    store: &dyn Store,
    representatives: &Representatives,
    segments: &[&Segment],
    writer: &mut SegmentWriter<'_>,
) -> Result<()> {
    let mut inputs: Vec<Input<'_>> =
        segments.iter().map(|segment| Input { segment, next: 0, current: None }).collect();
    let mut writing = None;
    loop {
        for input in &mut inputs {
            input.fill(store, representatives)?;
        }
        let ranks = inputs.iter().filter_map(|input| Some(input.current.as_ref()?.rank));
        let Some(rank) = ranks.min() else { return Ok(()) };
        if writing.replace(rank).is_some_and(|before| before != rank) {
            writer.end_measurement()?;
        }
        // The rows after the last one of a block are not known before the next block is here.
        let mut bound = None;
        for (order, input) in inputs.iter().enumerate() {
            if let Some(last) = input.last_before_more(rank, representatives)? {
                let last = (last.0, last.1, order);
                bound = Some(bound.map_or(last, |bound: (SeriesId, i64, usize)| bound.min(last)));
            }
        }
        let mut spans = Vec::new();
        let mut ends = Vec::new();
        for (order, input) in inputs.iter().enumerate() {
            let span = input.upto(rank, order, bound, representatives)?;
            ends.push(span.as_ref().map(|span| span.rows.end));
            spans.extend(span);
        }
        writer.push(&spans)?;
        for (input, end) in inputs.iter_mut().zip(ends) {
            input.forget_until(end);
        }
    }
}

impl Input<'_> {
    fn fill(&mut self, store: &dyn Store, representatives: &Representatives) -> Result<()> {
        if self.current.is_none() && self.next < self.segment.blocks().len() {
            let table = self.segment.block(store, self.next)?.tables.remove(0);
            self.next += 1;
            self.current = Some(Current { rank: representatives.rank(&table)?, table, start: 0 });
        }
        Ok(())
    }

    /// Representative series and time of the last row of the block, if that is of this measurement
    /// and not the last block.
    fn last_before_more(
        &self,
        rank: u32,
        representatives: &Representatives,
    ) -> Result<Option<(SeriesId, i64)>> {
        let has_more = self.next < self.segment.blocks().len();
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

    /// The rows of this measurement up to `bound`.
    fn upto(
        &self,
        rank: u32,
        order: usize,
        bound: Option<(SeriesId, i64, usize)>,
        representatives: &Representatives,
    ) -> Result<Option<Span<'_>>> {
        let Some(current) = self.current.as_ref().filter(|current| current.rank == rank) else {
            return Ok(None);
        };
        let table = &current.table;
        let mut rows = current.start..table.row_count();
        if let Some(bound) = bound {
            let mut found = rows.start;
            // The rows are sorted: halves are enough.
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
        Ok((!rows.is_empty()).then_some(Span { table, rows }))
    }

    /// Goes on after the row `end` of the current block.
    fn forget_until(&mut self, end: Option<usize>) {
        let Some((current, end)) = self.current.as_mut().zip(end) else { return };
        current.start = end;
        if end == current.table.row_count() {
            self.current = None;
        }
    }
}
