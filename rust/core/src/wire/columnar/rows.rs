//! Turns rows of columns into a batch.

use super::accepted::{accepted, has_more_fields, not_finite};
use super::fields::{NO_TABLE, Places, put_fields};
use super::input::{InputKey, InputRows};
use super::keys::KeySeries;
use crate::model::batch::{Batch, ParseResult, Table};
use crate::model::fault::{BatchRefusal, Fault, FaultCode};
use crate::model::limits::BLOCK_ROWS_MAX;
use crate::wire::ParseContext;
use crate::wire::faults::Faults;

/// Reads `rows` into a batch, by the rules of a JSON document with the same records.
///
/// # Errors
/// Returns [`BatchRefusal::Faults`] or [`BatchRefusal::InvalidInput`] as for such a document.
/// Locations begin with the index of a row.
///
/// # Panics
/// Panics if there are more than [`BLOCK_ROWS_MAX`] rows, or if a column has another number of
/// rows. Panics if the ends of tags do not ascend to the number of tags.
pub fn parse_rows(rows: &InputRows<'_>, context: ParseContext<'_>) -> ParseResult {
    assert!(rows.row_count <= BLOCK_ROWS_MAX, "a batch must fit one block");
    assert_eq!(rows.times_ns.len(), rows.row_count, "a time for each row");
    let accepted = accepted(rows);
    let wanted = accepted.as_ref().map(|accepted| wanted_keys(rows, accepted));
    let is_wanted = |key: usize| wanted.as_ref().is_none_or(|wanted| wanted[key]);
    let series = KeySeries::find(rows, is_wanted, context);
    let faults = faults(rows, &series);
    if !faults.is_empty() {
        return Err(BatchRefusal::Faults(faults));
    }
    if series.is_refused {
        return Err(BatchRefusal::InvalidInput { field: "tags" });
    }
    if has_more_fields(rows, context.limits.fields_max) {
        return Err(BatchRefusal::InvalidInput { field: "fields" });
    }
    let mut batch = Batch { ingest_ns: context.ingest_ns, ..Batch::default() };
    let places = match accepted {
        None if has_one_measurement(&rows.keys) => {
            put_whole(&mut batch, rows, &series.of_key);
            None
        }
        accepted => {
            let is_accepted = |row: usize| accepted.as_ref().is_none_or(|accepted| accepted[row]);
            Some(put_rows(&mut batch, rows, &series.of_key, is_accepted))
        }
    };
    batch.new_series = series.new;
    put_fields(&mut batch, rows, places.as_ref(), context.limits.tenant_fields_max);
    Ok(batch)
}

/// Returns for each key whether one of its rows is accepted.
fn wanted_keys(rows: &InputRows<'_>, accepted: &[bool]) -> Vec<bool> {
    let mut wanted = vec![false; rows.keys.len()];
    for (row, is_accepted) in accepted.iter().enumerate() {
        wanted[rows.key_at(row)] |= is_accepted;
    }
    wanted
}

fn has_one_measurement(keys: &[InputKey<'_>]) -> bool {
    keys.iter().all(|key| key.measurement == keys[0].measurement)
}

/// Returns the faults of the rows, in the order of the rows.
fn faults(rows: &InputRows<'_>, series: &KeySeries) -> Vec<Fault> {
    let not_finite = not_finite(rows);
    let is_named = |key: &InputKey<'_>| key.measurement.is_some_and(|name| !name.is_empty());
    let are_sound = rows.time_faults.is_empty() && series.faults.is_empty();
    if are_sound && not_finite.is_empty() && rows.keys.iter().all(is_named) {
        return Vec::new();
    }
    let mut faults = Faults::default();
    let mut time_faults = rows.time_faults.iter().peekable();
    for row in 0..rows.row_count {
        let (key, index) = (rows.key_at(row), rows.first_row + row);
        match rows.keys[key].measurement {
            None => faults.push(0, FaultCode::StringType, index, &["measurement"]),
            Some("") => faults.push(0, FaultCode::StringTooShort, index, &["measurement"]),
            Some(_) => {}
        }
        if let Some((_, code)) = time_faults.next_if(|(faulty, _)| *faulty == row) {
            faults.push(1, *code, index, &["time"]);
        }
        if let Ok(at) = series.faults.binary_search_by_key(&key, |(key, _)| *key) {
            let (_, (code, tag)) = &series.faults[at];
            faults.push(2, *code, index, &["tags", tag]);
        }
        for (column, bad) in &not_finite {
            if bad.binary_search(&row).is_ok() {
                let name = rows.fields[*column].name;
                faults.push(3 + column, FaultCode::FiniteNumber, index, &["fields", name]);
            }
        }
        faults.end_record();
    }
    faults.into_list()
}

/// Puts rows into a single table in their order. All are accepted and have the same measurement.
fn put_whole(batch: &mut Batch, rows: &InputRows<'_>, series: &[u32]) {
    let Some(measurement) = rows.keys.first().and_then(|key| key.measurement) else { return };
    let ingest_ns = batch.ingest_ns;
    let late = rows.times_ns.iter().filter(|time_ns| **time_ns > ingest_ns).count();
    batch.clamped_count = number(late);
    batch.accepted_count = number(rows.row_count);
    batch.measurements.push(measurement.to_owned());
    batch.tables.push(Table {
        series: if rows.key_of.is_empty() {
            vec![series[0]; rows.row_count]
        } else {
            rows.key_of.iter().map(|key| series[*key as usize]).collect()
        },
        times_ns: rows.times_ns.iter().map(|time_ns| (*time_ns).min(ingest_ns)).collect(),
        columns: Vec::new(),
    });
}

/// Puts the accepted rows into the tables of their measurements.
fn put_rows(
    batch: &mut Batch,
    rows: &InputRows<'_>,
    series: &[u32],
    is_accepted: impl Fn(usize) -> bool,
) -> Places {
    let mut places = Places::default();
    places.table_of.reserve(rows.row_count);
    places.row_of.reserve(rows.row_count);
    // Table of each key, if it has a row already.
    let mut table_of_key = vec![NO_TABLE; rows.keys.len()];
    for (row, time_ns) in rows.times_ns.iter().enumerate() {
        if !is_accepted(row) {
            batch.rejected_indices.push(number(row));
            places.push(NO_TABLE, 0);
            continue;
        }
        let key = rows.key_at(row);
        if table_of_key[key] == NO_TABLE {
            table_of_key[key] = table_of(batch, rows.keys[key].measurement.unwrap_or_default());
        }
        let table = &mut batch.tables[table_of_key[key] as usize];
        places.push(table_of_key[key], number(table.row_count()));
        table.series.push(series[key]);
        table.times_ns.push((*time_ns).min(batch.ingest_ns));
        batch.accepted_count += 1;
        batch.clamped_count += u32::from(*time_ns > batch.ingest_ns);
    }
    places
}

/// Returns the table of a measurement. Adds the table if it does not exist.
fn table_of(batch: &mut Batch, measurement: &str) -> u32 {
    let known = batch.measurements.iter().position(|other| other == measurement);
    number(known.unwrap_or_else(|| {
        batch.tables.push(Table::default());
        batch.measurements.push(measurement.to_owned());
        batch.tables.len() - 1
    }))
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("bounded by the rows of a block")
}
