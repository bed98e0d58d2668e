//! Rows of an entity that are not in the order of their times: rows where two sources meet, and
//! rows that came late.

use std::ops::Range;

use super::gather;
use super::span::{RowSpan, SpanRun};

/// Times of some runs, and the rows among them that are out of order.
pub(super) struct Seams {
    /// Times of the rows, in the order of the runs.
    pub(super) times_ns: Vec<i64>,
    /// Groups of rows, ascending. Sorting an entity by time moves rows within a group only.
    pub(super) rows: Vec<Range<usize>>,
}

impl Seams {
    /// Finds the seams of runs that are ordered by entity.
    pub(super) fn of(spans: &[RowSpan<'_>], runs: &[SpanRun]) -> Self {
        let times_ns = gather::times_ns(spans, runs);
        let (mut rows, mut search) = (Vec::new(), Search::default());
        let mut start = 0;
        for of_entity in runs.chunk_by(|a, b| a.representative == b.representative) {
            let end = start + of_entity.iter().map(SpanRun::len).sum::<usize>();
            search.each(&times_ns[start..end], |seam| {
                rows.push(start + seam.start..start + seam.end);
            });
            start = end;
        }
        Self { times_ns, rows }
    }

    /// Returns the most runs that rows at seams can become. Rows of one source with equal times
    /// stay in one run.
    pub(super) fn run_count(&self) -> usize {
        let instants = |seam: &Range<usize>| self.times_ns[seam.clone()].chunk_by(|a, b| a == b);
        self.rows.iter().map(|seam| instants(seam).count()).sum()
    }

    /// Returns the number of rows at seams.
    pub(super) fn row_count(&self) -> usize {
        self.rows.iter().map(Range::len).sum()
    }
}

/// Search for seams. Keeps its memory from one entity to the next.
#[derive(Default)]
pub(super) struct Search {
    /// By row, the smallest time of this row and the rows after it.
    min_from: Vec<i64>,
}

impl Search {
    /// Hands the rows of one entity that are out of order to `put`, in groups as small as possible.
    /// Rows before a group are not later than any row of the group, and rows behind it are not
    /// earlier. Example: the times 1, 3, 2, 4 have one group, the rows 1..3.
    pub(super) fn each(&mut self, times_ns: &[i64], mut put: impl FnMut(Range<usize>)) {
        // Rows before the first step back in time keep their places, unless a row behind the step
        // is earlier than they are.
        let Some(first) = times_ns.windows(2).position(|pair| pair[1] < pair[0]) else { return };
        let min_ns = times_ns[first + 1..].iter().copied().fold(i64::MAX, i64::min);
        let mut start = times_ns[..=first].partition_point(|time_ns| *time_ns <= min_ns);
        self.min_from.clear();
        self.min_from.resize(times_ns.len() - start, 0);
        let mut min_ns = i64::MAX;
        for (min_from, time_ns) in self.min_from.iter_mut().zip(&times_ns[start..]).rev() {
            min_ns = min_ns.min(*time_ns);
            *min_from = min_ns;
        }
        let offset = start;
        let mut max_ns = i64::MIN;
        for (row, time_ns) in times_ns.iter().enumerate().skip(start) {
            if max_ns <= self.min_from[row - offset] {
                if row - start > 1 {
                    put(start..row);
                }
                start = row;
            }
            max_ns = max_ns.max(*time_ns);
        }
        if times_ns.len() - start > 1 {
            put(start..times_ns.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The seams of some times, found from their definition: no row crosses the ends of a seam, and
    /// each row within a seam can move.
    fn expected(times_ns: &[i64]) -> Vec<Range<usize>> {
        let is_cut = |at: &usize| {
            let before = times_ns[..*at].iter().max();
            before.is_none_or(|before| times_ns[*at..].iter().all(|time_ns| before <= time_ns))
        };
        let cuts: Vec<usize> = (0..=times_ns.len()).filter(is_cut).collect();
        let groups = cuts.windows(2).map(|ends| ends[0]..ends[1]);
        groups.filter(|group| group.len() > 1).collect()
    }

    proptest! {
        #[test]
        fn rows_out_of_order_are_found_in_groups_as_small_as_can_be(
            parts in proptest::collection::vec((-20_i64..20, proptest::collection::vec(0_i64..9, 0..9)), 0..6),
        ) {
            let times_ns: Vec<i64> =
                parts.iter().flat_map(|(start, of)| of.iter().map(move |at| start + at)).collect();
            let mut found = Vec::new();
            let mut search = Search::default();
            // Memory of an earlier search does not change the result.
            search.each(&[3, 1, 2, 9, 8], |_| ());
            search.each(&times_ns, |seam| found.push(seam));
            prop_assert_eq!(found, expected(&times_ns));
        }
    }
}
