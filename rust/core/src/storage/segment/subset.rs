//! Some rows of a table: the rows of each day, the rows that meet a condition, and the newest rows.

use std::borrow::Cow;

use super::days::day_of;
use super::gather;
use super::representatives::Representatives;
use super::runs::runs_of;
use super::slices::Slices;
use super::span::{RowSpan, SpanRun, row_number};
use crate::codec::TimeBounds;
use crate::model::batch::Table;
use crate::model::error::Result;

/// Splits the rows of `table` by day. Rows of a day keep their order.
#[must_use]
pub fn split_by_day(table: &Table) -> Vec<(i64, Cow<'_, Table>)> {
    let Some(times) = TimeBounds::of(&table.times_ns) else { return Vec::new() };
    let (first, last) = (day_of(times.min_ns), day_of(times.max_ns));
    if first == last {
        return vec![(first, Cow::Borrowed(table))];
    }
    let mut rows: Vec<(i64, u32)> = table.times_ns.iter().copied().map(day_of).zip(0..).collect();
    rows.sort_by_key(|(day, _)| *day);
    let run =
        |(_, row): &(i64, u32)| SpanRun { representative: 0, span: 0, start: *row, end: row + 1 };
    let runs: Vec<SpanRun> = rows.iter().map(run).collect();
    let by_day = gather::table(&[RowSpan::whole(table)], &runs);
    let (mut days, mut ends) = (Vec::new(), Vec::new());
    for of_day in rows.chunk_by(|a, b| a.0 == b.0) {
        days.push(of_day[0].0);
        ends.push(ends.last().unwrap_or(&0) + of_day.len());
    }
    days.into_iter().zip(Slices::new(&by_day, &ends).tables().map(Cow::Owned)).collect()
}

/// Returns the rows of `table` for which `kept` returns true. Calls `kept` once for each row, in
/// order.
#[must_use]
pub fn filtered(table: &Table, mut kept: impl FnMut(usize) -> bool) -> Cow<'_, Table> {
    let mut runs: Vec<SpanRun> = Vec::new();
    for row in (0..table.row_count()).filter(|row| kept(*row)).map(row_number) {
        match runs.last_mut() {
            Some(run) if run.end == row => run.end += 1,
            _ => runs.push(SpanRun { representative: 0, span: 0, start: row, end: row + 1 }),
        }
    }
    match &*runs {
        [run] if run.len() == table.row_count() => Cow::Borrowed(table),
        _ => Cow::Owned(gather::table(&[RowSpan::whole(table)], &runs)),
    }
}

/// Returns the rows at the newest instant of each entity, from a table that is [`super::sorted`].
///
/// # Errors
/// Returns [`crate::model::error::Error::Corrupt`] if a series has no name.
pub fn newest(table: &Table, representatives: &Representatives) -> Result<Table> {
    let spans = [RowSpan::whole(table)];
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
