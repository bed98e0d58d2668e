//! Several segments into one, a block of each in memory at a time.

use super::rows::slice;
use super::{Leaders, Segment, SegmentWriter, sorted};
use crate::batch::{SeriesId, Table};
use crate::error::Result;
use crate::store::Store;

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
    leaders: &Leaders,
    segments: &[&Segment],
    writer: &mut SegmentWriter<'_>,
) -> Result<()> {
    let mut inputs: Vec<Input<'_>> =
        segments.iter().map(|segment| Input { segment, next: 0, current: None }).collect();
    let mut writing = None;
    loop {
        for input in &mut inputs {
            input.fill(store, leaders)?;
        }
        let ranks = inputs.iter().filter_map(|input| Some(input.current.as_ref()?.rank));
        let Some(rank) = ranks.min() else { return Ok(()) };
        if writing.replace(rank).is_some_and(|before| before != rank) {
            writer.end_measurement()?;
        }
        // What comes after the last row of a block is not known before its next block is here.
        let mut bound = None;
        for (order, input) in inputs.iter().enumerate() {
            if let Some(last) = input.last_before_more(rank, leaders)? {
                let last = (last.0, last.1, order);
                bound = Some(bound.map_or(last, |bound: (SeriesId, i64, usize)| bound.min(last)));
            }
        }
        let mut pieces = Vec::new();
        for (order, input) in inputs.iter_mut().enumerate() {
            pieces.extend(input.take(rank, order, bound, leaders)?);
        }
        writer.push(sorted(&pieces, leaders)?)?;
    }
}

impl Input<'_> {
    fn fill(&mut self, store: &dyn Store, leaders: &Leaders) -> Result<()> {
        if self.current.is_none() && self.next < self.segment.blocks().len() {
            let table = self.segment.block(store, self.next)?.tables.remove(0);
            self.next += 1;
            self.current = Some(Current { rank: leaders.rank(&table)?, table, start: 0 });
        }
        Ok(())
    }

    /// Leader and time of the last row of the block, if it is of this measurement and not the last.
    fn last_before_more(&self, rank: u32, leaders: &Leaders) -> Result<Option<(SeriesId, i64)>> {
        let has_more = self.next < self.segment.blocks().len();
        match &self.current {
            Some(current) if has_more && current.rank == rank => {
                let row = current.table.row_count() - 1;
                Ok(Some((leaders.leader(current.table.series[row])?, current.table.times_ns[row])))
            }
            _ => Ok(None),
        }
    }

    /// The rows of this measurement up to `bound`.
    fn take(
        &mut self,
        rank: u32,
        order: usize,
        bound: Option<(SeriesId, i64, usize)>,
        leaders: &Leaders,
    ) -> Result<Option<Table>> {
        let Some(current) = self.current.as_mut().filter(|current| current.rank == rank) else {
            return Ok(None);
        };
        let rows = current.table.row_count();
        let mut end = rows;
        if let Some(bound) = bound {
            end = current.start;
            while end < rows {
                let leader = leaders.leader(current.table.series[end])?;
                if (leader, current.table.times_ns[end], order) > bound {
                    break;
                }
                end += 1;
            }
        }
        let taken = slice(&current.table, current.start..end);
        current.start = end;
        if end == rows {
            self.current = None;
        }
        Ok((taken.row_count() > 0).then_some(taken))
    }
}
