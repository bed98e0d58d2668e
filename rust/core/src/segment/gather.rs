//! Rows of tables copied into another, by runs that stay side by side.

use std::ops::Range;

use super::rows::Span;
use crate::batch::{Column, FieldId, Rows, SeriesId, Table, Values};

/// Neighbouring rows of one span that stay side by side, all of one entity.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) leader: SeriesId,
    /// Place of the span.
    pub(super) source: u32,
    /// Rows of its table.
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Run {
    pub(super) const fn rows(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(super) const fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
}

/// The rows of `runs`, one run below the other.
pub(super) fn table(spans: &[Span<'_>], runs: &[Run]) -> Table {
    let series: Vec<&[SeriesId]> = spans.iter().map(|span| &*span.table.series).collect();
    Table {
        series: whole(&series, runs),
        times_ns: times_ns(spans, runs),
        columns: columns(spans, runs),
    }
}

/// The times of `runs`.
pub(super) fn times_ns(spans: &[Span<'_>], runs: &[Run]) -> Vec<i64> {
    let times_ns: Vec<&[i64]> = spans.iter().map(|span| &*span.table.times_ns).collect();
    whole(&times_ns, runs)
}

fn whole<T: Clone>(sources: &[&[T]], runs: &[Run]) -> Vec<T> {
    let mut out = Vec::with_capacity(runs.iter().map(Run::len).sum());
    for run in runs {
        extend(&mut out, &sources[run.source as usize][run.rows()]);
    }
    out
}

/// Appends items, of which there is often one alone.
fn extend<T: Clone>(out: &mut Vec<T>, items: &[T]) {
    match items {
        [item] => out.push(item.clone()),
        items => out.extend_from_slice(items),
    }
}

/// Every column that has a value in `runs`, by field.
fn columns(spans: &[Span<'_>], runs: &[Run]) -> Vec<Column> {
    let columns = spans.iter().flat_map(|span| &span.table.columns);
    let mut fields: Vec<FieldId> = columns.map(|column| column.field).collect();
    fields.sort_unstable();
    fields.dedup();
    fields.into_iter().filter_map(|field| column(spans, field, runs)).collect()
}

fn column(spans: &[Span<'_>], field: FieldId, runs: &[Run]) -> Option<Column> {
    let mut columns = spans.iter().flat_map(|span| &span.table.columns);
    let like = columns.find(|column| column.field == field)?;
    // One field id has one type for ever, so each finds its own everywhere.
    let (rows, values) = match like.values {
        Values::Float(_) => {
            let (rows, values) = values(spans, field, runs, |values| match values {
                Values::Float(values) => values,
                _ => &[],
            });
            (rows, Values::Float(values))
        }
        Values::Bool(_) => {
            let (rows, values) = values(spans, field, runs, |values| match values {
                Values::Bool(values) => values,
                _ => &[],
            });
            (rows, Values::Bool(values))
        }
        Values::Text(_) => {
            let (rows, values) = values(spans, field, runs, |values| match values {
                Values::Text(values) => values,
                _ => &[],
            });
            (rows, Values::Text(values))
        }
    };
    (!values.is_empty()).then_some(Column { field, rows, values })
}

/// A column of a span.
struct Source<'t, T> {
    values: &'t [T],
    /// Where every row of the table has its own value, there is nothing to look up.
    places: Option<Places<'t>>,
}

/// Which rows have a value.
struct Places<'t> {
    present: &'t [u32],
    /// First row of the span.
    start: usize,
    /// For each row of the span and the one behind it: how many values of the table come before it.
    before: Vec<u32>,
}

fn values<T: Clone>(
    spans: &[Span<'_>],
    field: FieldId,
    runs: &[Run],
    typed: impl Fn(&Values) -> &[T],
) -> (Rows, Vec<T>) {
    let sources: Vec<_> = spans.iter().map(|span| Source::of(span, field, &typed)).collect();
    let dense: Option<Vec<&[T]>> = sources.iter().map(|source| source.as_ref()?.dense()).collect();
    if let Some(dense) = dense {
        return (Rows::All, whole(&dense, runs));
    }
    let (mut present, mut values) = (Vec::new(), Vec::new());
    let mut row = 0;
    for run in runs {
        let end = row + (run.end - run.start);
        if let Some(source) = &sources[run.source as usize] {
            let places = match &source.places {
                None => {
                    present.extend(row..end);
                    run.rows()
                }
                Some(places) => {
                    let within = places.within(run.rows());
                    let rows = &places.present[within.clone()];
                    present.extend(rows.iter().map(|from| row + (from - run.start)));
                    within
                }
            };
            extend(&mut values, &source.values[places]);
        }
        row = end;
    }
    (if present.len() == row as usize { Rows::All } else { Rows::Some(present) }, values)
}

impl<'t, T> Source<'t, T> {
    fn of(span: &Span<'t>, field: FieldId, typed: impl Fn(&'t Values) -> &'t [T]) -> Option<Self> {
        let column = span.table.columns.iter().find(|column| column.field == field)?;
        let places = match &column.rows {
            Rows::All => None,
            Rows::Some(present) => Some(Places::of(present, &span.rows)),
        };
        Some(Self { values: typed(&column.values), places })
    }

    fn dense(&self) -> Option<&'t [T]> {
        self.places.is_none().then_some(self.values)
    }
}

impl<'t> Places<'t> {
    fn of(present: &'t [u32], rows: &Range<usize>) -> Self {
        let mut place = places_within(present, rows).start;
        let mut before = Vec::with_capacity(rows.len() + 1);
        let number = |place: usize| u32::try_from(place).expect("a table has fewer than 2^32 rows");
        before.push(number(place));
        for row in rows.clone() {
            place += usize::from(present.get(place).is_some_and(|next| *next as usize == row));
            before.push(number(place));
        }
        Self { present, start: rows.start, before }
    }

    /// Places of the values of some rows of the span.
    fn within(&self, rows: Range<usize>) -> Range<usize> {
        let before = |row: usize| self.before[row - self.start] as usize;
        before(rows.start)..before(rows.end)
    }
}

/// Places, among the ascending rows `present`, of those in `rows`.
pub(super) fn places_within(present: &[u32], rows: &Range<usize>) -> Range<usize> {
    let place = |end: usize| present.partition_point(|row| (*row as usize) < end);
    place(rows.start)..place(rows.end)
}
