//! What is kept of each hour of an entity in a block, so that windows need not decode it.

use std::ops::Range;

use super::rows::{Leaders, places_within};
use super::{HOUR_NS, hour_of};
use crate::aggregate::{Fold, Statistic};
use crate::batch::{Column, FieldId, Rows, SeriesId, Table, Values};
use crate::column::decimal_sum;
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
    for (row, (series, time_ns)) in table.series.iter().zip(&table.times_ns).enumerate() {
        let leader = leaders.leader(*series)?;
        match hours.last_mut() {
            Some(hour) if hour.leader == leader && time_ns - hour.start_ns < HOUR_NS => {
                hour.rows.end = row + 1;
            }
            _ => hours.push(Hour { leader, start_ns: hour_of(*time_ns), rows: row..row + 1 }),
        }
    }
    Ok(hours)
}

fn fold(times_ns: &[i64], column: &Column, values: &[f64], hour: &Hour) -> Fold {
    let mut fold = Fold::default();
    let places = match &column.rows {
        Rows::All => {
            for row in hour.rows.clone() {
                fold.add(times_ns[row], values[row]);
            }
            hour.rows.clone()
        }
        Rows::Some(present) => {
            let places = places_within(present, &hour.rows);
            for place in places.clone() {
                fold.add(times_ns[present[place] as usize], values[place]);
            }
            places
        }
    };
    if let Some(sum) = decimal_sum(&values[places]) {
        fold.set(Statistic::Sum, hour.start_ns, sum);
    }
    fold
}
