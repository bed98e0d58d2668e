//! Sorts rows of several spans if few rows of a series lie next to each other. It counts the rows
//! of each entity, and then moves each value, column by column, to the place of its row.
//!
//! Reads are sequential, and each write continues after the last row of its entity. So a value
//! takes a few instructions, however many spans there are.

use std::ops::Range;

use super::gather::{self, Source};
use super::representatives::Representatives;
use super::seams::Search;
use super::span::{Span, row_number};
use crate::model::batch::{Column, Rows, Table, Values};
use crate::model::error::Result;
use crate::model::names::SeriesId;

/// Rows are counted by entity if the representative series span at most so many ids for each row.
/// Bounds the memory of the counts.
const RANGE_PER_ROW_MAX: usize = 8;

/// A column with fewer values than one in so many rows is moved value by value, and then sorted.
const ROWS_PER_VALUE_MAX: usize = 16;

/// The place of each row in the sorted table.
struct Targets {
    /// Place by row. The rows of a span follow the rows of the span before it.
    of_rows: Vec<u32>,
    /// Number of rows before each span, and before the end.
    starts: Vec<usize>,
    times_ns: Vec<i64>,
}

/// Sorts the rows of some spans of one measurement by representative series and time. Rows that are
/// equal in both stay in the order of the spans. Returns `None` if the representative series are
/// too far apart to be counted.
///
/// # Errors
/// Returns [`crate::model::error::Error::Corrupt`] if a series has no name.
pub(super) fn sorted(
    spans: &[Span<'_>],
    representatives: &Representatives,
) -> Result<Option<Table>> {
    let Some(targets) = Targets::of(spans, representatives)? else { return Ok(None) };
    let series = spans.iter().map(|span| span.table.series[span.rows.clone()].iter().copied());
    let series = targets.scattered(0, series);
    let columns = gather::sources(spans);
    let fields = columns.chunk_by(|a, b| a.column.field == b.column.field);
    let columns = fields.filter_map(|sources| targets.column(spans, sources)).collect();
    Ok(Some(Table { series, times_ns: targets.times_ns, columns }))
}

impl Targets {
    fn of(spans: &[Span<'_>], representatives: &Representatives) -> Result<Option<Self>> {
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
        let times_ns =
            spans.iter().map(|span| span.table.times_ns[span.rows.clone()].iter().copied());
        targets.times_ns = targets.scattered(0, times_ns);
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

    /// Moves the items of all rows, given span by span, to the places of their rows.
    fn scattered<T: Copy>(
        &self,
        empty: T,
        of_spans: impl Iterator<Item = impl Iterator<Item = T>>,
    ) -> Vec<T> {
        let mut out = vec![empty; self.of_rows.len()];
        for (items, start) in of_spans.zip(&self.starts) {
            for (item, target) in items.zip(&self.of_rows[*start..]) {
                out[*target as usize] = item;
            }
        }
        out
    }

    /// Returns the column of one field, or `None` if no span has a value of the field.
    fn column(&self, spans: &[Span<'_>], sources: &[Source<'_>]) -> Option<Column> {
        let first = sources.first()?.column;
        // A field id keeps its type for ever, so the type of the first column is the type of all.
        let (rows, values) = match first.values {
            Values::Float(_) => {
                // Stored values are finite, so NaN can mark a missing value.
                let empty = (f64::NAN, |value: &f64| value.is_nan());
                let (rows, values) = self.cells(spans, sources, empty, |values, indices| {
                    let Values::Float(values) = values else { return [].iter().copied() };
                    values[indices].iter().copied()
                });
                (rows, Values::Float(values))
            }
            Values::Bool(_) => {
                let empty = (None, Option::is_none);
                let (rows, values) = self.cells(spans, sources, empty, |values, indices| {
                    let Values::Bool(values) = values else { return [].iter().copied().map(Some) };
                    values[indices].iter().copied().map(Some)
                });
                (rows, Values::Bool(values.into_iter().flatten().collect()))
            }
            Values::Text(_) => {
                let empty = (None, Option::is_none);
                let (rows, values) = self.cells(spans, sources, empty, |values, indices| {
                    let Values::Text(values) = values else { return [].iter().map(Some) };
                    values[indices].iter().map(Some)
                });
                (rows, Values::Text(values.into_iter().flatten().cloned().collect()))
            }
        };
        (!values.is_empty()).then_some(Column { field: first.field, rows, values })
    }

    /// Hands the cells of each source to `put`, with the places of their rows.
    fn each<'t, I>(
        &self,
        spans: &[Span<'t>],
        sources: &[Source<'t>],
        cells: impl Fn(&'t Values, Range<usize>) -> I,
        mut put: impl FnMut(&[u32], I),
    ) {
        let mut few = Vec::new();
        for source in sources {
            let (rows, indices) = (&spans[source.span].rows, within(spans, source));
            let targets = &self.of_rows[self.starts[source.span]..];
            let cells = cells(&source.column.values, indices.clone());
            match &source.column.rows {
                Rows::All => put(&targets[..rows.len()], cells),
                Rows::Some(present) => {
                    few.clear();
                    let target = |row: &u32| targets[*row as usize - rows.start];
                    few.extend(present[indices].iter().map(target));
                    put(&few, cells);
                }
            }
        }
    }

    /// Returns the rows that have a value, and their cells, in order. `empty` marks a missing
    /// value, and `is_empty` returns true for the mark.
    fn cells<'t, C: Copy, I: Iterator<Item = C>>(
        &self,
        spans: &[Span<'t>],
        sources: &[Source<'t>],
        (empty, is_empty): (C, impl Fn(&C) -> bool),
        cells: impl Fn(&'t Values, Range<usize>) -> I,
    ) -> (Rows, Vec<C>) {
        if sources.len() == spans.len()
            && sources.iter().all(|source| source.column.rows == Rows::All)
        {
            let of_spans = sources
                .iter()
                .map(|source| cells(&source.column.values, spans[source.span].rows.clone()));
            return (Rows::All, self.scattered(empty, of_spans));
        }
        let count: usize = sources.iter().map(|source| within(spans, source).len()).sum();
        if count * ROWS_PER_VALUE_MAX < self.of_rows.len() {
            let mut found: Vec<(u32, C)> = Vec::with_capacity(count);
            self.each(spans, sources, cells, |targets, cells| {
                found.extend(targets.iter().copied().zip(cells));
            });
            found.sort_unstable_by_key(|(target, _)| *target);
            let (rows, out) = found.into_iter().unzip();
            return (Rows::Some(rows), out);
        }
        let mut out = vec![empty; self.of_rows.len()];
        self.each(spans, sources, cells, |targets, cells| {
            for (target, cell) in targets.iter().zip(cells) {
                out[*target as usize] = cell;
            }
        });
        if count == out.len() {
            return (Rows::All, out);
        }
        // Each row is written down, and the next row overwrites it if it has no value.
        let mut rows = vec![0; out.len()];
        let mut kept = 0;
        for row in 0..out.len() {
            let cell = out[row];
            (rows[kept], out[kept]) = (row_number(row), cell);
            kept += usize::from(!is_empty(&cell));
        }
        rows.truncate(kept);
        out.truncate(kept);
        (Rows::Some(rows), out)
    }
}

/// Returns the indices of a column's values that lie in its span.
fn within(spans: &[Span<'_>], source: &Source<'_>) -> Range<usize> {
    source.column.rows.within(&spans[source.span].rows)
}

fn rows_of(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| span.rows.len()).sum()
}
