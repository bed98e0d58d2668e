//! Rows of a measurement ordered by entity and time, and split by day.

use std::borrow::Cow;
use std::ops::Range;

use super::days::day_of;
use super::gather;
use super::representatives::Representatives;
use super::slices::Slices;
use super::span::{Run, Span, row_number};
use crate::model::batch::Table;
use crate::model::error::Result;
use crate::model::names::SeriesId;

/// Spans put together at a time. Their rows of one entity are read in turn, so what is read of all
/// has to stay in a core's cache: this many are, even where all begin at multiples of a page.
const SPANS_MAX: usize = 64;

/// Bits of a representative series that one pass of the radix sort looks at.
const DIGIT_BITS: u32 = 12;

/// Rows of some spans as runs of one series each.
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
            let (of_entity, rest) = times_ns.split_at(rows);
            times_ns = rest;
            (runs, of_entity)
        })
    };
    if entities().any(|(_, times_ns)| !times_ns.is_sorted()) {
        runs = entities().flat_map(|(runs, times_ns)| by_time(runs, times_ns)).collect();
    }
    match spans {
        [span] if runs.is_sorted_by_key(|run| run.start) => Ok(gather::span_table(span)),
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
        // Counts of the digits, then the index that the next run of each digit goes to.
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

/// The rows of one entity by time, those of one time in the order in which they are.
fn by_time(runs: &[Run], times_ns: &[i64]) -> Vec<Run> {
    let rows = runs
        .iter()
        .flat_map(|run| (run.start..run.end).map(|row| Run { start: row, end: row + 1, ..*run }));
    let mut rows: Vec<(i64, Run)> = times_ns.iter().copied().zip(rows).collect();
    rows.sort_by_key(|(time_ns, _)| *time_ns);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The rows of some tables of one measurement, in order of their entities, those of one side by side
/// in the order of the tables; and where they come from, table and rows. `entities` has for each
/// table and row of it what its entity is ordered by.
#[must_use]
pub fn grouped(
    tables: &[&Table],
    entities: &[Vec<SeriesId>],
) -> (Table, Vec<(usize, Range<usize>)>) {
    let mut runs = Vec::new();
    for (span, entities) in (0..).zip(entities) {
        let mut start = 0;
        for run in entities.chunk_by(|a, b| a == b) {
            let end = start + row_number(run.len());
            runs.push(Run { representative: run[0], span, start, end });
            start = end;
        }
    }
    let runs = by_representative(runs);
    let spans: Vec<Span<'_>> = tables.iter().map(|table| Span::whole(table)).collect();
    let origins = runs.iter().map(|run| (run.span as usize, run.rows())).collect();
    (gather::table(&spans, &runs), origins)
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
    days.into_iter().zip(Slices::new(&by_day, &ends).tables().map(Cow::Owned)).collect()
}

/// The rows of `table` that are `kept`, each asked for in turn.
#[must_use]
pub fn filtered(table: &Table, mut kept: impl FnMut(usize) -> bool) -> Cow<'_, Table> {
    let mut runs: Vec<Run> = Vec::new();
    for row in (0..table.row_count()).filter(|row| kept(*row)).map(row_number) {
        match runs.last_mut() {
            Some(run) if run.end == row => run.end += 1,
            _ => runs.push(Run { representative: 0, span: 0, start: row, end: row + 1 }),
        }
    }
    match &*runs {
        [run] if run.len() == table.row_count() => Cow::Borrowed(table),
        _ => Cow::Owned(gather::table(&[Span::whole(table)], &runs)),
    }
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
