//! What is kept of each hour of an entity in a block, so that windows need not decode it.

use std::ops::Range;

use super::gather::places_within;
use super::{HOUR_NS, Leaders, hour_of};
use crate::aggregate::{Fold, Statistic};
use crate::batch::{Column, FieldId, Rows, SeriesId, Table, Values};
use crate::column::{decimal_sum, float_bounds};
use crate::error::Result;

/// A block has statistics if its hours have so many rows on average.
const ROWS_PER_HOUR_MIN: usize = 24;

/// Fields from here on have no statistics.
const FIELDS_END: FieldId = 1 << 29;

/// The column that holds a statistic of a field.
#[must_use]
pub const fn column_of(field: FieldId, statistic: Statistic) -> Option<FieldId> {
    if field < FIELDS_END { Some(field << 3 | statistic as u32) } else { None }
}

/// Rows of one entity in one hour.
struct Hour {
    leader: SeriesId,
    start_ns: i64,
    rows: Range<usize>,
}

/// The statistics of a table sorted by leader and time, if they pay.
///
/// # Errors
/// [`crate::error::Error::Corrupt`] for a series that has no name.
pub fn of(table: &Table, leaders: &Leaders) -> Result<Option<Table>> {
    let hours = hours(table, leaders)?;
    let floats = table.columns.iter().filter_map(|column| match &column.values {
        Values::Float(values) if column.field < FIELDS_END => Some((column, values)),
        _ => None,
    });
    let mut floats = floats.peekable();
    if floats.peek().is_none() || table.row_count() < ROWS_PER_HOUR_MIN * hours.len() {
        return Ok(None);
    }
    let columns = floats.flat_map(|(column, values)| {
        let folds: Vec<Fold> =
            hours.iter().map(|hour| fold(&table.times_ns, column, values, hour)).collect();
        Statistic::ALL.into_iter().filter_map(move |statistic| {
            let start_of = |fold: &Fold| hour_of(fold.last_ns());
            let kept = (0_u32..)
                .zip(&folds)
                .filter_map(|(row, fold)| Some((row, fold.get(statistic, start_of(fold))?)));
            let (rows, values): (Vec<u32>, Vec<f64>) = kept.unzip();
            let field = column_of(column.field, statistic).filter(|_| !values.is_empty())?;
            let rows = if rows.len() == folds.len() { Rows::All } else { Rows::Some(rows) };
            Some(Column { field, rows, values: Values::Float(values) })
        })
    });
    let columns = columns.collect();
    Ok(Some(Table {
        series: hours.iter().map(|hour| hour.leader).collect(),
        times_ns: hours.iter().map(|hour| hour.start_ns).collect(),
        columns,
    }))
}

fn hours(table: &Table, leaders: &Leaders) -> Result<Vec<Hour>> {
    let mut hours: Vec<Hour> = Vec::new();
    let mut row = 0;
    for series in table.series.chunk_by(|a, b| a == b) {
        let (leader, end) = (leaders.leader(series[0])?, row + series.len());
        while row < end {
            let start_ns = hour_of(table.times_ns[row]);
            let times_ns = &table.times_ns[row..end];
            let within = times_ns.partition_point(|time_ns| time_ns - start_ns < HOUR_NS);
            match hours.last_mut() {
                // Another tag set of the same entity.
                Some(hour) if (hour.leader, hour.start_ns) == (leader, start_ns) => {
                    hour.rows.end = row + within;
                }
                _ => hours.push(Hour { leader, start_ns, rows: row..row + within }),
            }
            row += within;
        }
    }
    Ok(hours)
}

/// The values of a column in an hour.
fn fold(times_ns: &[i64], column: &Column, values: &[f64], hour: &Hour) -> Fold {
    let (places, last_row) = match &column.rows {
        Rows::All => (hour.rows.clone(), hour.rows.end.checked_sub(1)),
        Rows::Some(present) => {
            let places = places_within(present, &hour.rows);
            let last = present[places.clone()].last().map(|row| *row as usize);
            (places, last)
        }
    };
    let values = &values[places];
    match (float_bounds(values), last_row) {
        (Some(bounds), Some(last_row)) => {
            let bounds = (bounds.min, bounds.max);
            Fold::of(values, bounds, decimal_sum(values), times_ns[last_row])
        }
        _ => Fold::default(),
    }
}
