//! Copies rows of several spans into one table, run by run.
//!
//! The cost of a column with few values grows with its values, not with the rows of the table.

use std::cell::OnceCell;
use std::ops::Range;

use super::span::{RowSpan, SpanRun, row_number};
use crate::model::batch::{Column, RowSet, Table, Values};
use crate::model::names::SeriesId;

/// A column with fewer values than one in so many rows is moved value by value, and then sorted.
pub(super) const ROWS_PER_VALUE_MAX: usize = 16;

/// Mark of a row that no run has.
const NONE: u32 = u32::MAX;

/// Returns the rows of a span as a table. Columns without a value in the span are left out.
pub(super) fn span_table(span: &RowSpan<'_>) -> Table {
    if span.rows.len() == span.table.row_count() {
        return span.table.clone();
    }
    let (start, end) = (row_number(span.rows.start), row_number(span.rows.end));
    table(std::slice::from_ref(span), &[SpanRun { representative: 0, span: 0, start, end }])
}

/// Returns the rows of `runs` as a table, in the order of the runs.
pub(super) fn table(spans: &[RowSpan<'_>], runs: &[SpanRun]) -> Table {
    let series: Vec<&[SeriesId]> = spans.iter().map(|span| &*span.table.series).collect();
    Table {
        series: whole(&series, runs),
        times_ns: times_ns(spans, runs),
        columns: columns(spans, runs),
    }
}

/// Returns the rows of `tables` as one table, in the order of the tables.
pub(super) fn concatenated(mut tables: Vec<Table>) -> Table {
    if tables.len() < 2 {
        return tables.pop().unwrap_or_default();
    }
    let spans: Vec<RowSpan<'_>> = tables.iter().map(RowSpan::whole).collect();
    let whole = |(index, span): (u32, &RowSpan<'_>)| SpanRun {
        representative: 0,
        span: index,
        start: 0,
        end: row_number(span.rows.end),
    };
    table(&spans, &(0..).zip(&spans).map(whole).collect::<Vec<_>>())
}

/// Returns the times of the rows of `runs`, in the order of the runs.
pub(super) fn times_ns(spans: &[RowSpan<'_>], runs: &[SpanRun]) -> Vec<i64> {
    let times_ns: Vec<&[i64]> = spans.iter().map(|span| &*span.table.times_ns).collect();
    whole(&times_ns, runs)
}

fn whole<T: Clone>(sources: &[&[T]], runs: &[SpanRun]) -> Vec<T> {
    let mut out = Vec::with_capacity(runs.iter().map(SpanRun::len).sum());
    for run in runs {
        extend(&mut out, &sources[run.span as usize][run.rows()]);
    }
    out
}

/// Appends `items`. Pushes a single item, the common case.
fn extend<T: Clone>(out: &mut Vec<T>, items: &[T]) {
    match items {
        [item] => out.push(item.clone()),
        items => out.extend_from_slice(items),
    }
}

/// A column of a span.
pub(super) struct SpanColumn<'t> {
    pub(super) span: usize,
    pub(super) column: &'t Column,
}

/// Returns every column of the spans, by field. Columns of the same field stay in the order of the
/// spans.
pub(super) fn sources<'t>(spans: &[RowSpan<'t>]) -> Vec<SpanColumn<'t>> {
    let of_span = |(span, of): (usize, &RowSpan<'t>)| {
        of.table.columns.iter().map(move |column| SpanColumn { span, column })
    };
    let mut sources: Vec<SpanColumn<'t>> = spans.iter().enumerate().flat_map(of_span).collect();
    sources.sort_unstable_by_key(|source| (source.column.field, source.span));
    sources
}

/// Returns every column that has a value in `runs`, by field.
fn columns(spans: &[RowSpan<'_>], runs: &[SpanRun]) -> Vec<Column> {
    let sources = sources(spans);
    let row_count = runs.iter().map(SpanRun::len).sum();
    let gather = Gatherer { spans, runs, row_count, targets: OnceCell::new() };
    let fields = sources.chunk_by(|a, b| a.column.field == b.column.field);
    fields.filter_map(|sources| gather.column(sources)).collect()
}

struct Gatherer<'a> {
    spans: &'a [RowSpan<'a>],
    runs: &'a [SpanRun],
    row_count: usize,
    /// The row that each row becomes, by span and row of the span. [`NONE`] if no run has the row.
    targets: OnceCell<Vec<Vec<u32>>>,
}

impl Gatherer<'_> {
    /// Returns the column of one field, or `None` if no run has a value of the field.
    fn column(&self, sources: &[SpanColumn<'_>]) -> Option<Column> {
        let first = sources.first()?.column;
        // A field id keeps its type for ever, so the type of the first column is the type of all.
        let (rows, values) = match first.values {
            Values::Float(_) => {
                let (rows, values) = self.values(sources, |values| match values {
                    Values::Float(values) => values,
                    _ => &[],
                });
                (rows, Values::Float(values))
            }
            Values::Bool(_) => {
                let (rows, values) = self.values(sources, |values| match values {
                    Values::Bool(values) => values,
                    _ => &[],
                });
                (rows, Values::Bool(values))
            }
            Values::Text(_) => {
                let (rows, values) = self.values(sources, |values| match values {
                    Values::Text(values) => values,
                    _ => &[],
                });
                (rows, Values::Text(values))
            }
        };
        (!values.is_empty()).then_some(Column { field: first.field, rows, values })
    }

    fn values<T: Clone>(
        &self,
        sources: &[SpanColumn<'_>],
        typed: impl Fn(&Values) -> &[T],
    ) -> (RowSet, Vec<T>) {
        if sources.len() == self.spans.len()
            && sources.iter().all(|source| source.column.rows == RowSet::All)
        {
            let dense: Vec<&[T]> =
                sources.iter().map(|source| typed(&source.column.values)).collect();
            return (RowSet::All, whole(&dense, self.runs));
        }
        let in_span =
            |source: &SpanColumn<'_>| source.column.rows.within(&self.spans[source.span].rows);
        let count: usize = sources.iter().map(|source| in_span(source).len()).sum();
        let rows: usize = sources.iter().map(|source| self.spans[source.span].rows.len()).sum();
        if count * ROWS_PER_VALUE_MAX < rows + self.runs.len() {
            self.by_value(sources, typed)
        } else {
            self.by_run(sources, count, typed)
        }
    }

    /// Copies a column that many rows have, run by run. `count` is the number of values in the spans.
    fn by_run<T: Clone>(
        &self,
        sources: &[SpanColumn<'_>],
        count: usize,
        typed: impl Fn(&Values) -> &[T],
    ) -> (RowSet, Vec<T>) {
        let mut of_span: Vec<Option<(&[T], Option<PresentCursor<'_>>)>> = Vec::new();
        of_span.resize_with(self.spans.len(), || None);
        for SpanColumn { span, column } in sources {
            let present = match &column.rows {
                RowSet::All => None,
                RowSet::Some(rows) => Some(PresentCursor { rows, next: 0 }),
            };
            of_span[*span] = Some((typed(&column.values), present));
        }
        let (mut present, mut values) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut row = 0;
        for run in self.runs {
            let end = row + (run.end - run.start);
            if let Some((all, of_column)) = &mut of_span[run.span as usize] {
                let within = match of_column {
                    None => {
                        present.extend(row..end);
                        run.rows()
                    }
                    Some(of_column) => {
                        let within = of_column.within(run.rows());
                        let rows = &of_column.rows[within.clone()];
                        present.extend(rows.iter().map(|from| row + (from - run.start)));
                        within
                    }
                };
                extend(&mut values, &all[within]);
            }
            row = end;
        }
        (if present.len() == row as usize { RowSet::All } else { RowSet::Some(present) }, values)
    }

    /// Copies a column that few rows have, value by value, each to the row that its row became.
    fn by_value<T: Clone>(
        &self,
        sources: &[SpanColumn<'_>],
        typed: impl Fn(&Values) -> &[T],
    ) -> (RowSet, Vec<T>) {
        let targets = self.targets.get_or_init(|| self.targets());
        let mut found: Vec<(u32, &T)> = Vec::new();
        for SpanColumn { span, column } in sources {
            let (rows, values) = (&self.spans[*span].rows, typed(&column.values));
            for index in column.rows.within(rows) {
                let target = targets[*span][column.rows.row_at(index) - rows.start];
                if target != NONE {
                    found.push((target, &values[index]));
                }
            }
        }
        if !found.is_sorted_by_key(|(target, _)| *target) {
            found.sort_unstable_by_key(|(target, _)| *target);
        }
        let (present, values): (Vec<u32>, Vec<T>) =
            found.into_iter().map(|(target, value)| (target, value.clone())).unzip();
        (if present.len() == self.row_count { RowSet::All } else { RowSet::Some(present) }, values)
    }

    fn targets(&self) -> Vec<Vec<u32>> {
        let mut targets: Vec<Vec<u32>> =
            self.spans.iter().map(|span| vec![NONE; span.rows.len()]).collect();
        let mut next = 0..NONE;
        for run in self.runs {
            let start = self.spans[run.span as usize].rows.start;
            let rows = run.start as usize - start..run.end as usize - start;
            for (target, row) in targets[run.span as usize][rows].iter_mut().zip(&mut next) {
                *target = row;
            }
        }
        targets
    }
}

/// Rows of a table that have a value, and a position among them: the end of the rows asked for
/// last. The runs of a span mostly follow each other, so the next search begins there.
struct PresentCursor<'t> {
    rows: &'t [u32],
    next: usize,
}

impl PresentCursor<'_> {
    /// Returns the indices of the values of `rows`.
    fn within(&mut self, rows: Range<usize>) -> Range<usize> {
        let is_before = |end: usize| move |row: &u32| (*row as usize) < end;
        let is_behind =
            self.rows[..self.next].last().is_some_and(|row| *row as usize >= rows.start);
        if is_behind {
            self.next = self.rows[..self.next].partition_point(is_before(rows.start));
        } else if let Some(first) = self.rows.get(self.next) {
            // Each row in between has one value at most.
            let between = rows.start.saturating_sub(*first as usize);
            let skipped = &self.rows[self.next..self.rows.len().min(self.next + between)];
            self.next += skipped.partition_point(is_before(rows.start));
        }
        let start = self.next;
        let candidates = &self.rows[start..self.rows.len().min(start + rows.len())];
        // Mostly the last candidate is within the rows, and all before it then are, too.
        let are_within = candidates.last().is_none_or(|row| (*row as usize) < rows.end);
        self.next += if are_within {
            candidates.len()
        } else {
            candidates.partition_point(is_before(rows.end))
        };
        start..self.next
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Spans give their runs in order, or start again at an earlier row.
        #[test]
        fn values_of_rows_are_found_wherever_the_rows_before_ended(
            is_present in prop::collection::vec(any::<bool>(), 1..200),
            asked in prop::collection::vec((0_usize..200, 0_usize..40), 1..20),
            is_ascending: bool,
        ) {
            let rows: Vec<u32> = (0_u32..).zip(&is_present).filter(|(_, is)| **is).map(|(row, _)| row).collect();
            let mut asked = asked;
            if is_ascending {
                asked.sort_unstable();
            }
            let mut present = PresentCursor { rows: &rows, next: 0 };
            for (start, count) in asked {
                let before = |end: usize| rows.partition_point(|row| (*row as usize) < end);
                prop_assert_eq!(present.within(start..start + count), before(start)..before(start + count));
            }
        }
    }
}
