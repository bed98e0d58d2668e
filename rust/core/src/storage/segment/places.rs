//! The place of each row of several spans in their sorted table.

use super::representatives::Representatives;
use super::seams::Search;
use super::span::{RowSpan, row_number};
use crate::model::error::Result;
use crate::model::names::SeriesId;

/// Rows are counted by entity if the representative series span at most so many ids for each row.
/// Bounds the memory of the counts.
const RANGE_PER_ROW_MAX: usize = 8;

/// The place of each row in the sorted table.
pub(super) struct RowPlaces {
    /// Place by row. The rows of a span follow the rows of the span before it.
    pub(super) of_rows: Vec<u32>,
    /// Number of rows before each span, and before the end.
    pub(super) starts: Vec<usize>,
    pub(super) times_ns: Vec<i64>,
}

impl RowPlaces {
    pub(super) fn of(
        spans: &[RowSpan<'_>],
        representatives: &Representatives,
    ) -> Result<Option<Self>> {
        let mut starts = vec![0];
        let mut of_rows: Vec<SeriesId> = Vec::with_capacity(rows_of(spans));
        for span in spans {
            for series in &span.table.series[span.rows.clone()] {
                of_rows.push(representatives.representative(*series)?);
            }
            starts.push(of_rows.len());
        }
        let (first, last) = of_rows
            .iter()
            .fold((SeriesId::MAX, 0), |(first, last), of| (first.min(*of), last.max(*of)));
        let range = (last as usize + 1).saturating_sub(first as usize);
        if range > RANGE_PER_ROW_MAX * of_rows.len() {
            return Ok(None);
        }
        // First the number of rows of each entity, then the place of its next row, and finally the
        // end of its rows.
        let mut next = vec![0_u32; range];
        for of in &of_rows {
            next[(of - first) as usize] += 1;
        }
        let mut start = 0;
        for count in &mut next {
            (*count, start) = (start, start + *count);
        }
        for of in &mut of_rows {
            let next = &mut next[(*of - first) as usize];
            (*of, *next) = (*next, *next + 1);
        }
        let mut targets = Self { of_rows, starts, times_ns: Vec::new() };
        targets.times_ns = vec![0; targets.of_rows.len()];
        let times_ns = spans.iter().flat_map(|span| &span.table.times_ns[span.rows.clone()]);
        for (time_ns, target) in times_ns.zip(&targets.of_rows) {
            targets.times_ns[*target as usize] = *time_ns;
        }
        targets.order_by_time(&next);
        Ok(Some(targets))
    }

    /// Sorts the rows of each entity by time. `ends` has the end of the rows of each entity.
    fn order_by_time(&mut self, ends: &[u32]) {
        let mut moved: Vec<u32> = Vec::new();
        let mut rows: Vec<(i64, u32)> = Vec::new();
        let (mut seams, mut search) = (Vec::new(), Search::default());
        let mut start = 0;
        for end in ends.iter().map(|end| *end as usize) {
            seams.clear();
            search.each(&self.times_ns[start..end], |seam| seams.push(seam));
            if !seams.is_empty() && moved.is_empty() {
                moved = (0..row_number(self.of_rows.len())).collect();
            }
            for seam in seams.iter().map(|seam| start + seam.start..start + seam.end) {
                let times_ns = &mut self.times_ns[seam.clone()];
                rows.clear();
                rows.extend(times_ns.iter().copied().zip(row_number(seam.start)..));
                rows.sort_by_key(|(time_ns, _)| *time_ns);
                for ((time_ns, target), (sorted_ns, row)) in
                    times_ns.iter_mut().zip(row_number(seam.start)..).zip(&rows)
                {
                    *time_ns = *sorted_ns;
                    moved[*row as usize] = target;
                }
            }
            start = end;
        }
        if !moved.is_empty() {
            for target in &mut self.of_rows {
                *target = moved[*target as usize];
            }
        }
    }

    /// Returns the rows grouped by the piece that they go to, ascending in each group.
    pub(super) fn rows_by_piece(&self, piece_bits: u32) -> Vec<u32> {
        let row_count = self.of_rows.len();
        // Each place has one row, so all pieces before the last one are full.
        let mut next: Vec<usize> = (0..row_count).step_by(1 << piece_bits).collect();
        let mut rows = vec![0; row_count];
        for (row, target) in (0..).zip(&self.of_rows) {
            let next = &mut next[(target >> piece_bits) as usize];
            rows[*next] = row;
            *next += 1;
        }
        rows
    }
}

fn rows_of(spans: &[RowSpan<'_>]) -> usize {
    spans.iter().map(|span| span.rows.len()).sum()
}
