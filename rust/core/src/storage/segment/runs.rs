//! Runs of neighbouring rows, one series each, and their order by entity and time.

use super::representatives::Representatives;
use super::seams::Seams;
use super::span::{RowSpan, SpanRun, row_number};
use crate::model::error::Result;

/// Bits of a representative series that one pass of the radix sort looks at.
const DIGIT_BITS: u32 = 12;

/// Returns the rows of some spans as runs of one series each.
pub(super) fn runs_of(
    spans: &[RowSpan<'_>],
    representatives: &Representatives,
) -> Result<Vec<SpanRun>> {
    let mut runs = Vec::new();
    for (index, span) in (0..).zip(spans) {
        let mut start = row_number(span.rows.start);
        for series in span.table.series[span.rows.clone()].chunk_by(|a, b| a == b) {
            let end = start + row_number(series.len());
            runs.push(SpanRun {
                representative: representatives.representative(series[0])?,
                span: index,
                start,
                end,
            });
            start = end;
        }
    }
    Ok(runs)
}

/// Sorts runs by representative series. Runs of the same series keep their order.
pub(super) fn by_representative(mut runs: Vec<SpanRun>) -> Vec<SpanRun> {
    if runs.is_sorted_by_key(|run| run.representative) {
        return runs;
    }
    let representatives = || runs.iter().map(|run| run.representative);
    let (first, last) =
        (representatives().min().unwrap_or(0), representatives().max().unwrap_or(0));
    let mut ordered = runs.clone();
    for shift in (0..u32::BITS - (last - first).leading_zeros()).step_by(DIGIT_BITS as usize) {
        let digit =
            |run: &SpanRun| ((run.representative - first) >> shift) as usize % (1 << DIGIT_BITS);
        // First the count of each digit, then the index for the next run of the digit.
        let mut targets = [0_u32; 1 << DIGIT_BITS];
        for run in &runs {
            targets[digit(run)] += 1;
        }
        let mut next = 0;
        for count in &mut targets {
            (*count, next) = (next, next + *count);
        }
        for run in &runs {
            let target = &mut targets[digit(run)];
            ordered[*target as usize] = *run;
            *target += 1;
        }
        std::mem::swap(&mut runs, &mut ordered);
    }
    runs
}

/// Sorts the rows of some runs by entity and time. Rows that are equal in both keep their order,
/// and rows that stay next to each other become one run. Only rows at seams are looked at one by
/// one.
pub(super) fn by_time(runs: &[SpanRun], seams: &Seams) -> Vec<SpanRun> {
    let mut from = RunRows { runs, taken: 0 };
    let mut ordered = Vec::with_capacity(runs.len() + 2 * seams.row_count());
    let mut push = |run: SpanRun| match ordered.last_mut() {
        Some(SpanRun { span, end, .. }) if (*span, *end) == (run.span, run.start) => *end = run.end,
        _ => ordered.push(run),
    };
    let mut row = 0;
    let mut of_seam: Vec<(i64, SpanRun)> = Vec::new();
    for seam in &seams.rows {
        from.take(seam.start - row, &mut push);
        row = seam.end;
        of_seam.clear();
        let mut times_ns = seams.times_ns[seam.clone()].iter();
        from.take(seam.len(), |run| {
            let rows = (run.start..run.end).map(|row| SpanRun { start: row, end: row + 1, ..run });
            of_seam.extend(times_ns.by_ref().copied().zip(rows));
        });
        of_seam.sort_by_key(|(time_ns, _)| *time_ns);
        for (_, run) in &of_seam {
            push(*run);
        }
    }
    from.take(seams.times_ns.len() - row, &mut push);
    ordered
}

/// Rows of runs, taken one after another.
struct RunRows<'r> {
    runs: &'r [SpanRun],
    /// Number of rows of the first run that were taken.
    taken: u32,
}

impl RunRows<'_> {
    /// Hands the next `count` rows to `put`, as runs.
    fn take(&mut self, count: usize, mut put: impl FnMut(SpanRun)) {
        let mut count = row_number(count);
        while let Some((run, rest)) = self.runs.split_first().filter(|_| count > 0) {
            let start = run.start + self.taken;
            let end = run.end.min(start + count);
            put(SpanRun { start, end, ..*run });
            count -= end - start;
            (self.runs, self.taken) =
                if end == run.end { (rest, 0) } else { (self.runs, end - run.start) };
        }
    }
}
