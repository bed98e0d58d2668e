//! Statistics of each hour of an entity in a block, so that windows need not decode the block.

use std::collections::HashSet;
use std::ops::Range;

use super::days::{HOUR_NS, hour_of};
use super::representatives::Representatives;
use crate::codec::{DecimalSums, FloatBounds};
use crate::model::aggregate::Statistic;
use crate::model::batch::{Column, RowSet, Table, Values};
use crate::model::error::Result;
use crate::model::fold::Fold;
use crate::model::names::{FieldId, SeriesId};

/// A block has statistics if its hours have so many rows on average.
const ROWS_PER_HOUR_MIN: usize = 24;

/// A field has statistics if its hours have so many values on average. With fewer values the
/// statistics would take about as much space as the values.
const VALUES_PER_HOUR_MIN: usize = 4;

/// Fields with this id or a greater id have no statistics.
const FIELDS_END: FieldId = 1 << 29;

/// Returns the column that holds a statistic of a field. Example: the statistic 2 of field 5 is in
/// column 5 · 8 + 2 = 42.
#[must_use]
pub const fn column_of(field: FieldId, statistic: Statistic) -> Option<FieldId> {
    if field < FIELDS_END { Some(field << 3 | statistic as u32) } else { None }
}

/// Returns the field and the statistic that a column holds, the inverse of [`column_of`].
#[must_use]
pub fn of_column(column: FieldId) -> Option<(FieldId, Statistic)> {
    let statistic = Statistic::ALL.get((column & 7) as usize)?;
    Some((column >> 3, *statistic))
}

/// Rows of one entity in one hour.
struct Hour {
    representative: SeriesId,
    start_ns: i64,
    rows: Range<usize>,
}

/// Computes the statistics of a table sorted by representative series and time, as the tables of a
/// block. The first table has a row for each hour of an entity. If some fields have too few values,
/// a second table lists these fields as columns without rows. Returns `None` if statistics do not
/// pay.
///
/// # Errors
/// Returns [`crate::model::error::Error::Corrupt`] if a series has no name.
pub fn of(table: &Table, representatives: &Representatives) -> Result<Option<Vec<Table>>> {
    let hours = hours(table, representatives)?;
    if table.row_count() < ROWS_PER_HOUR_MIN * hours.len() {
        return Ok(None);
    }
    let tables = tables(table, &hours, |column, folds| {
        column.values.len() < VALUES_PER_HOUR_MIN * folds.len()
    });
    Ok(Some(tables).filter(|tables| !tables[0].columns.is_empty()))
}

/// Returns true if the rows of `table` can have `stored` as their statistics. The writer chose
/// which fields are left out, so `stored` decides that.
///
/// # Errors
/// Returns the errors of [`of`].
pub fn agree(
    stored: Option<&[Table]>,
    table: &Table,
    representatives: &Representatives,
) -> Result<bool> {
    let Some(stored) = stored else { return Ok(of(table, representatives)?.is_none()) };
    let left_out = stored.iter().skip(1).flat_map(|table| &table.columns);
    let left_out: HashSet<FieldId> = left_out.map(|column| column.field).collect();
    let hours = hours(table, representatives)?;
    Ok(stored == tables(table, &hours, |column, _| left_out.contains(&column.field)))
}

fn tables(
    table: &Table,
    hours: &[Hour],
    is_left_out: impl Fn(&Column, &[(u32, Fold)]) -> bool,
) -> Vec<Table> {
    let mut statistics = Table {
        series: hours.iter().map(|hour| hour.representative).collect(),
        times_ns: hours.iter().map(|hour| hour.start_ns).collect(),
        columns: Vec::new(),
    };
    let mut left_out = Table::default();
    for column in &table.columns {
        let Values::Float(values) = &column.values else { continue };
        let folds = folds(&table.times_ns, column, values, hours);
        if column.field >= FIELDS_END || is_left_out(column, &folds) {
            let values = Values::Float(Vec::new());
            left_out.columns.push(Column { field: column.field, rows: RowSet::All, values });
        } else {
            statistics.columns.extend(columns(column.field, &folds, hours.len(), |_, _| true));
        }
    }
    let has_left_out = !left_out.columns.is_empty();
    [Some(statistics), has_left_out.then_some(left_out)].into_iter().flatten().collect()
}

/// Returns the columns of one field in a table of `hours` rows, by the row of each fold. They have
/// the statistics of a fold that `is_kept`.
pub fn columns(
    field: FieldId,
    folds: &[(u32, Fold)],
    hours: usize,
    is_kept: impl Fn(&Fold, Statistic) -> bool,
) -> impl Iterator<Item = Column> {
    Statistic::ALL.into_iter().filter_map(move |statistic| {
        let (mut rows, mut values) =
            (Vec::with_capacity(folds.len()), Vec::with_capacity(folds.len()));
        for (row, fold) in folds.iter().filter(|(_, fold)| is_kept(fold, statistic)) {
            if let Some(value) = fold.get(statistic, hour_of(fold.last_ns())) {
                rows.push(*row);
                values.push(value);
            }
        }
        let field = column_of(field, statistic).filter(|_| !values.is_empty())?;
        let rows = if rows.len() == hours { RowSet::All } else { RowSet::Some(rows) };
        Some(Column { field, rows, values: Values::Float(values) })
    })
}

fn hours(table: &Table, representatives: &Representatives) -> Result<Vec<Hour>> {
    let mut hours: Vec<Hour> = Vec::new();
    let mut row = 0;
    for series in table.series.chunk_by(|a, b| a == b) {
        let (representative, end) =
            (representatives.representative(series[0])?, row + series.len());
        while row < end {
            let start_ns = hour_of(table.times_ns[row]);
            let times_ns = &table.times_ns[row..end];
            let in_hour = |time_ns: &i64| time_ns.saturating_sub(start_ns) < HOUR_NS;
            let within = times_ns.partition_point(in_hour);
            match hours.last_mut() {
                // The series is another tag set of the same entity.
                Some(hour)
                    if (hour.representative, hour.start_ns) == (representative, start_ns) =>
                {
                    hour.rows.end = row + within;
                }
                _ => hours.push(Hour { representative, start_ns, rows: row..row + within }),
            }
            row += within;
        }
    }
    Ok(hours)
}

/// Folds the values of a column in each hour that has values. Returns the index of the hour and the
/// fold.
fn folds(times_ns: &[i64], column: &Column, values: &[f64], hours: &[Hour]) -> Vec<(u32, Fold)> {
    let mut folds = Vec::with_capacity(hours.len().min(values.len()));
    let (mut hour, mut start) = (0, 0);
    let mut sums = DecimalSums::default();
    while start < values.len() {
        let row = column.rows.row_at(start);
        hour += hours[hour..].partition_point(|hour| hour.rows.end <= row);
        let indices = start..column.rows.within(&hours[hour].rows).end;
        let last_row = column.rows.row_at(indices.end - 1);
        let of_hour = &values[indices.clone()];
        if let Some(bounds) = FloatBounds::of(of_hour) {
            let sum = sums.sum(of_hour);
            let fold = Fold::of(of_hour, (bounds.min, bounds.max), sum, times_ns[last_row]);
            folds.push((u32::try_from(hour).expect("a block has fewer hours"), fold));
        }
        start = indices.end;
    }
    folds
}
