//! Sorts rows of a measurement by entity and time.

use std::ops::Range;

use super::gather;
use super::representatives::Representatives;
use super::runs::{by_representative, by_time, runs_of};
use super::scatter::Scatter;
use super::seams::Seams;
use super::span::{RowSpan, SpanRun, row_number};
use crate::model::batch::Table;
use crate::model::error::Result;
use crate::model::names::SeriesId;

/// Most spans sorted together. Rows of one entity are read from all spans in turn, so the lines
/// being read must stay in a core's cache. So many lines do, even if every span begins at a
/// multiple of a page.
const SPANS_MAX: usize = 64;

/// Runs of one series are moved together if they have so many rows on average.
const ROWS_PER_RUN_MIN: usize = 8;

/// Rows at seams are moved in runs if each run at a seam comes with so many rows.
const ROWS_PER_SEAM_RUN_MIN: usize = 8;

/// Values of a piece of sorted rows, which fits a core's second cache, and the fewest rows.
const PIECE_VALUES: usize = 1 << 17;
const PIECE_ROWS_MIN: usize = 1 << 10;

/// Sorts the rows of some spans of one measurement by representative series and time. Rows that are
/// equal in both stay in the order of the spans.
///
/// # Errors
/// Returns [`crate::model::error::Error::Corrupt`] if a series has no name.
pub fn sorted(spans: &[RowSpan<'_>], representatives: &Representatives) -> Result<Table> {
    if are_runs_short(spans)
        && let Some(table) = scattered(spans, representatives)?
    {
        return Ok(table);
    }
    if spans.len() > SPANS_MAX {
        let parts = spans.chunks(SPANS_MAX).map(|spans| sorted(spans, representatives));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        return sorted(&parts.iter().map(RowSpan::whole).collect::<Vec<_>>(), representatives);
    }
    let runs = by_representative(runs_of(spans, representatives)?);
    let seams = Seams::of(spans, &runs);
    if seams.run_count() * ROWS_PER_SEAM_RUN_MIN > seams.times_ns.len()
        && let Some(table) = scattered(spans, representatives)?
    {
        return Ok(table);
    }
    Ok(by_runs(spans, runs, &seams))
}

/// Sorts as [`sorted`] does, row by row, if the rows can be counted by entity.
fn scattered(spans: &[RowSpan<'_>], representatives: &Representatives) -> Result<Option<Table>> {
    let scatter = Scatter::of(spans, representatives, u32::BITS - 1)?;
    Ok(scatter.map(|scatter| scatter.pieces().next().unwrap_or_default()))
}

/// Sorts as [`sorted`] does, and hands the sorted rows to `take` in pieces. If few rows of a series
/// lie next to each other, a piece has about `PIECE_VALUES` values.
///
/// # Errors
/// Returns the errors of [`sorted`] and of `take`.
pub(super) fn sorted_pieces(
    spans: &[RowSpan<'_>],
    representatives: &Representatives,
    mut take: impl FnMut(Table) -> Result<()>,
) -> Result<()> {
    let columns = spans.iter().map(|span| span.table.columns.len()).max().unwrap_or(0);
    let piece_bits = (PIECE_VALUES / columns.max(1)).max(PIECE_ROWS_MIN).ilog2();
    if are_runs_short(spans)
        && let Some(scatter) = Scatter::of(spans, representatives, piece_bits)?
    {
        return scatter.pieces().try_for_each(take);
    }
    take(sorted(spans, representatives)?)
}

/// Returns true if few rows of one series lie next to each other.
fn are_runs_short(spans: &[RowSpan<'_>]) -> bool {
    let (mut rows, mut runs) = (0, spans.len());
    for series in spans.iter().map(|span| &span.table.series[span.rows.clone()]) {
        rows += series.len();
        let pairs = series.iter().zip(series.get(1..).unwrap_or_default());
        runs += pairs.map(|(a, b)| usize::from(a != b)).sum::<usize>();
    }
    runs * ROWS_PER_RUN_MIN > rows
}

/// Sorts as [`sorted`] does, run by run. `runs` are sorted by representative series.
fn by_runs(spans: &[RowSpan<'_>], mut runs: Vec<SpanRun>, seams: &Seams) -> Table {
    if !seams.rows.is_empty() {
        runs = by_time(&runs, seams);
    }
    match spans {
        [span] if runs.is_sorted_by_key(|run| run.start) => gather::span_table(span),
        _ => gather::table(spans, &runs),
    }
}

/// Groups the rows of some tables of one measurement by entity. Rows of the same entity stay in the
/// order of the tables. `entities` has, for each row of each table, the key to sort its entity by.
/// Also returns the origin of each run of rows: table and rows.
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
            runs.push(SpanRun { representative: run[0], span, start, end });
            start = end;
        }
    }
    let runs = by_representative(runs);
    let spans: Vec<RowSpan<'_>> = tables.iter().map(|table| RowSpan::whole(table)).collect();
    let origins = runs.iter().map(|run| (run.span as usize, run.rows())).collect();
    (gather::table(&spans, &runs), origins)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::batch::{Column, RowSet, Values};
    use crate::model::catalog::Catalog;
    use crate::model::names::{SeriesId, SeriesName};

    /// Entities `a` to `d`, each with two tag sets.
    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        for id in 0..8_u32 {
            let tags =
                [("entity_id", ["a", "b", "c", "d"][id as usize % 4]), ("site", &id.to_string())];
            catalog.insert_series(id, SeriesName::new("link", &tags).view());
        }
        catalog
    }

    /// A row: series, time, and which cells it has: a double, a boolean, a text, and a double of a
    /// field with few values.
    type Row = (SeriesId, i64, [bool; 4]);

    fn table(first: usize, rows: &[Row]) -> Table {
        let numbered = || (first..).zip(rows).zip(0_u32..);
        let of = |at: usize| numbered().filter(move |((_, row), _)| row.2[at]);
        let rows_of = |at: usize| {
            let present: Vec<u32> = of(at).map(|(_, row)| row).collect();
            if present.len() == rows.len() { RowSet::All } else { RowSet::Some(present) }
        };
        let number = |number: usize| f64::from(row_number(number)) / 4.0;
        let floats = |at| of(at).map(|((row, _), _)| number(row)).collect();
        let columns = [
            (1, rows_of(0), Values::Float(floats(0))),
            (2, rows_of(1), Values::Bool(of(1).map(|((row, _), _)| row % 2 == 0).collect())),
            (
                3,
                rows_of(2),
                Values::Text(of(2).map(|((row, _), _)| row.to_string().into()).collect()),
            ),
            (4, rows_of(3), Values::Float(floats(3))),
        ];
        let columns = columns.into_iter().filter(|(_, _, values)| !values.is_empty());
        Table {
            series: rows.iter().map(|row| row.0).collect(),
            times_ns: rows.iter().map(|row| row.1).collect(),
            columns: columns.map(|(field, rows, values)| Column { field, rows, values }).collect(),
        }
    }

    /// Sorts rows by entity and time with a stable sort, which keeps equal rows in write order.
    fn expected(rows: &[Row], representatives: &Representatives) -> Vec<(usize, Row)> {
        let mut rows: Vec<(usize, Row)> = rows.iter().copied().enumerate().collect();
        rows.sort_by_key(|(_, row)| (representatives.representative(row.0).unwrap(), row.1));
        rows
    }

    /// Rows of one entity and time after another, often in runs. The last field has few values.
    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let cells = (any::<bool>(), any::<bool>(), any::<bool>(), 0..40);
        let run = (0_u32..8, 0_i64..20, 1_usize..20, cells, any::<bool>());
        proptest::collection::vec(run, 0..30).prop_map(|runs| {
            let mut rows = Vec::new();
            for (series, time_ns, length, (float, boolean, text, few), is_run) in runs {
                for at in 0..if is_run { length } else { 1 } {
                    let time_ns = time_ns + i64::try_from(at).unwrap();
                    rows.push((series, time_ns, [float, boolean, text, few == 0]));
                }
            }
            rows
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// F4, F6, H27: each way to sort rows puts a row at the place that a stable sort gives it,
        /// with its values of every type.
        #[test]
        fn rows_moved_alone_and_in_runs_come_out_in_the_same_order(
            rows in rows(),
            cut in 1_usize..60,
            skipped in 0_usize..3,
            piece_bits in 0_u32..6,
        ) {
            let representatives = Representatives::new(&catalog());
            let starts = (0..).step_by(cut);
            let tables: Vec<Table> =
                rows.chunks(cut).zip(starts).map(|(rows, start)| table(start, rows)).collect();
            // Spans that begin behind the first row of their table.
            let of = |table| {
                let RowSpan { table, rows } = RowSpan::whole(table);
                RowSpan { table, rows: skipped.min(rows.end)..rows.end }
            };
            let spans: Vec<RowSpan<'_>> = tables.iter().map(of).collect();
            let runs = runs_of(&spans, &representatives).unwrap();
            let runs = by_representative(runs);
            let by_runs = by_runs(&spans, runs.clone(), &Seams::of(&spans, &runs));
            prop_assert_eq!(&sorted(&spans, &representatives).unwrap(), &by_runs);
            let scattered = scattered(&spans, &representatives).unwrap();
            prop_assert!(scattered.is_none_or(|scattered| scattered == by_runs));
            if let Some(scatter) = Scatter::of(&spans, &representatives, piece_bits).unwrap() {
                let pieces: Vec<Table> = scatter.pieces().collect();
                prop_assert!(pieces.iter().rev().skip(1).all(|of| of.row_count() == 1 << piece_bits));
                prop_assert_eq!(&gather::concatenated(pieces), &by_runs);
            }
            if skipped == 0 {
                let in_order = expected(&rows, &representatives);
                let series: Vec<_> = in_order.iter().map(|(_, row)| row.0).collect();
                prop_assert_eq!(&by_runs.series, &series);
                for column in &by_runs.columns {
                    let cell = if column.field == 4 { 3 } else { column.field as usize - 1 };
                    let has = |(at, (_, row)): (usize, &(usize, Row))| row.2[cell].then_some(at);
                    let with: Vec<usize> = in_order.iter().enumerate().filter_map(has).collect();
                    let found = (0..column.values.len()).map(|index| column.rows.row_at(index));
                    prop_assert!(found.eq(with.iter().copied()));
                    for (index, at) in with.into_iter().enumerate() {
                        let number = in_order[at].0;
                        let is_its_own = match &column.values {
                            Values::Float(of) => {
                                of[index].to_bits() == (f64::from(row_number(number)) / 4.0).to_bits()
                            }
                            Values::Bool(of) => of[index] == number.is_multiple_of(2),
                            Values::Text(of) => *of[index] == *number.to_string(),
                        };
                        prop_assert!(is_its_own);
                    }
                }
            }
        }
    }
}
