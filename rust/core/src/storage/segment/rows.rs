//! Rows of a measurement put in order, taken apart and put together.

use std::borrow::Cow;
use std::ops::Range;

use super::cut::Cuts;
use super::gather::{self, Run};
use super::{Representatives, day_of};
use crate::model::batch::Table;
use crate::model::error::Result;

/// Spans put together at a time. Their rows of one entity are read in turn, so what is read of all
/// has to stay in a core's cache: this many are, even where all begin at multiples of a page.
const SPANS_MAX: usize = 64;

/// Bits of a representative series that one pass of the radix sort looks at.
const DIGIT_BITS: u32 = 12;

/// Some neighbouring rows of a table.
#[derive(Clone)]
pub struct Span<'t> {
    pub(super) table: &'t Table,
    pub(super) rows: Range<usize>,
}

impl<'t> Span<'t> {
    /// All rows of `table`.
    #[must_use]
    pub fn whole(table: &'t Table) -> Self {
        Self { table, rows: 0..table.row_count() }
    }

    /// These rows as a table; columns without a value here are left out.
    pub(super) fn to_table(&self) -> Table {
        if self.rows.len() == self.table.row_count() {
            return self.table.clone();
        }
        let (start, end) = (row_number(self.rows.start), row_number(self.rows.end));
        gather::table(std::slice::from_ref(self), &[Run { representative: 0, span: 0, start, end }])
    }
}

/// The rows of some spans as runs of the same series.
fn runs_of(spans: &[Span<'_>], representatives: &Representatives) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for (index, span) in (0..).zip(spans) {
        let mut start = row_number(span.rows.start);
        for series in span.table.series[span.rows.clone()].chunk_by(|a, b| a == b) {
            let end = start + row_number(series.len());
            runs.push(Run {
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

fn row_number(row: usize) -> u32 {
    u32::try_from(row).expect("a table has fewer than 2^32 rows")
}

/// The rows of some spans of one measurement, ordered by representative series and time; rows alike
/// in both stay in the order of the spans.
///
/// # Errors
/// [`crate::model::error::Error::Corrupt`] for a series that has no name.
pub fn sorted(spans: &[Span<'_>], representatives: &Representatives) -> Result<Table> {
    if spans.len() > SPANS_MAX {
        let parts = spans.chunks(SPANS_MAX).map(|spans| sorted(spans, representatives));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        return sorted(&parts.iter().map(Span::whole).collect::<Vec<_>>(), representatives);
    }
    let mut runs = by_representative(runs_of(spans, representatives)?);
    let times_ns = gather::times_ns(spans, &runs);
    let entities = || {
        let mut times_ns = times_ns.as_slice();
        runs.chunk_by(|a, b| a.representative == b.representative).map(move |runs| {
            let rows = runs.iter().map(Run::len).sum();
            let (of_entity, behind) = times_ns.split_at(rows);
            times_ns = behind;
            (runs, of_entity)
        })
    };
    if entities().any(|(_, times_ns)| !times_ns.is_sorted()) {
        runs = entities().flat_map(|(runs, times_ns)| by_time(runs, times_ns)).collect();
    }
    match spans {
        [span] if runs.is_sorted_by_key(|run| run.start) => Ok(span.to_table()),
        _ => Ok(gather::table(spans, &runs)),
    }
}

/// Runs sorted by representative series; those of one stay in their order.
fn by_representative(mut runs: Vec<Run>) -> Vec<Run> {
    if runs.is_sorted_by_key(|run| run.representative) {
        return runs;
    }
    let representatives = || runs.iter().map(|run| run.representative);
    let (first, last) =
        (representatives().min().unwrap_or(0), representatives().max().unwrap_or(0));
    let mut ordered = runs.clone();
    for shift in (0..u32::BITS - (last - first).leading_zeros()).step_by(DIGIT_BITS as usize) {
        let digit =
            |run: &Run| ((run.representative - first) >> shift) as usize % (1 << DIGIT_BITS);
        let mut places = [0_u32; 1 << DIGIT_BITS];
        for run in &runs {
            places[digit(run)] += 1;
        }
        let mut place = 0;
        for count in &mut places {
            (*count, place) = (place, place + *count);
        }
        for run in &runs {
            let place = &mut places[digit(run)];
            ordered[*place as usize] = *run;
            *place += 1;
        }
        std::mem::swap(&mut runs, &mut ordered);
    }
    runs
}

/// The rows of one entity by time, those of one time in the order in which they are.
fn by_time(runs: &[Run], times_ns: &[i64]) -> Vec<Run> {
    let rows = runs
        .iter()
        .flat_map(|run| (run.start..run.end).map(|row| Run { start: row, end: row + 1, ..*run }));
    let mut rows: Vec<(i64, Run)> = times_ns.iter().copied().zip(rows).collect();
    rows.sort_by_key(|(time_ns, _)| *time_ns);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The rows of `table` by the day they lie in, each day's in their order.
#[must_use]
pub fn split_by_day(table: &Table) -> Vec<(i64, Cow<'_, Table>)> {
    let ends = table.times_ns.iter().min().zip(table.times_ns.iter().max());
    let Some((first, last)) = ends.map(|(min, max)| (day_of(*min), day_of(*max))) else {
        return Vec::new();
    };
    if first == last {
        return vec![(first, Cow::Borrowed(table))];
    }
    let mut rows: Vec<(i64, u32)> = table.times_ns.iter().copied().map(day_of).zip(0..).collect();
    rows.sort_by_key(|(day, _)| *day);
    let run = |(_, row): &(i64, u32)| Run { representative: 0, span: 0, start: *row, end: row + 1 };
    let runs: Vec<Run> = rows.iter().map(run).collect();
    let by_day = gather::table(&[Span::whole(table)], &runs);
    let (mut days, mut ends) = (Vec::new(), Vec::new());
    for of_day in rows.chunk_by(|a, b| a.0 == b.0) {
        days.push(of_day[0].0);
        ends.push(ends.last().unwrap_or(&0) + of_day.len());
    }
    days.into_iter().zip(Cuts::new(&by_day, &ends).tables().map(Cow::Owned)).collect()
}

/// The rows of each entity's newest instant, of a table that is [`sorted`].
///
/// # Errors
/// [`crate::model::error::Error::Corrupt`] for a series that has no name.
pub fn newest(table: &Table, representatives: &Representatives) -> Result<Table> {
    let spans = [Span::whole(table)];
    let runs = runs_of(&spans, representatives)?;
    let newest = runs.chunk_by(|a, b| a.representative == b.representative).map(|runs| {
        let (mut run, end) = (runs[0], runs[runs.len() - 1].end);
        let times_ns = &table.times_ns[run.start as usize..end as usize];
        let older = times_ns.partition_point(|time_ns| Some(time_ns) < times_ns.last());
        (run.start, run.end) = (run.start + row_number(older), end);
        run
    });
    Ok(gather::table(&spans, &newest.collect::<Vec<_>>()))
}
