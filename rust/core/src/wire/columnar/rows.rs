//! Rows of columns as a batch.

use super::fields::{NO_TABLE, Places, put_fields};
use super::input::{InputRows, InputValues};
use super::tags::{RAW_KEY_FORMAT, tags_of};
use crate::model::batch::{Batch, ParseResult, Table};
use crate::model::fault::{FaultCode, Refusal};
use crate::model::limits::{BLOCK_ROWS_MAX, WriteLimits};
use crate::model::raw_keys::RawKeyCache;
use crate::wire::faults::Faults;
use crate::wire::rules::{is_rejected, series_name};
use crate::wire::series::SeriesFinder;

/// Reads `rows` into a batch, by the rules of a JSON document of the same records.
///
/// # Errors
/// [`Refusal::Faults`] or [`Refusal::InvalidInput`], as of such a document; locations begin with
/// the index of a row.
///
/// # Panics
/// When there are more than [`BLOCK_ROWS_MAX`] rows, or a column has another number of them.
pub fn parse_rows(
    rows: &InputRows<'_>,
    raw_keys: &RawKeyCache,
    limits: &WriteLimits,
    tenant_key: &str,
    ingest_ns: i64,
) -> ParseResult {
    assert!(rows.row_count <= BLOCK_ROWS_MAX, "a batch must fit one block");
    let mut parser = RowParser {
        rows,
        limits,
        tenant_key,
        series: SeriesFinder::new(RAW_KEY_FORMAT, raw_keys),
        batch: Batch { ingest_ns, ..Batch::default() },
        table_of_measurement: vec![NO_TABLE; rows.measurements.len()],
        faults: Faults::default(),
        tags_refused: false,
        raw_tags: Vec::new(),
        before: None,
    };
    let counts = FieldCounts::of(rows);
    let not_finite = not_finite(rows);
    let mut time_faults = rows.time_faults.iter().peekable();
    let mut places = Places { table_of: Vec::new(), row_of: Vec::new() };
    places.table_of.reserve(rows.row_count);
    places.row_of.reserve(rows.row_count);
    for row in 0..rows.row_count {
        let time_fault = time_faults.next_if(|(faulty, _)| *faulty == row);
        let table = parser.row(row, time_fault.map(|(_, code)| *code), &counts, &not_finite);
        places.table_of.push(table.unwrap_or(NO_TABLE));
        places.row_of.push(table.map_or(0, |table| parser.last_row(table)));
    }
    let RowParser { faults, tags_refused, series, mut batch, .. } = parser;
    if !faults.are_none() {
        return Err(Refusal::Faults(faults.into_list()));
    }
    if tags_refused {
        return Err(Refusal::InvalidInput { field: "tags" });
    }
    if counts.max() > limits.fields_max {
        return Err(Refusal::InvalidInput { field: "fields" });
    }
    batch.new_series = series.into_new();
    put_fields(&mut batch, rows, &places, limits.tenant_fields_max);
    Ok(batch)
}

/// Fields that each row has.
struct FieldCounts {
    /// Columns that all rows have.
    in_all: usize,
    /// Fields out of the other columns, by row; empty where there is none.
    in_some: Vec<u32>,
}

impl FieldCounts {
    fn of(rows: &InputRows<'_>) -> Self {
        let some: Vec<_> = rows.fields.iter().filter_map(|field| field.present.as_ref()).collect();
        let mut in_some = vec![0; if some.is_empty() { 0 } else { rows.row_count }];
        for row in some.iter().copied().flatten() {
            in_some[*row as usize] += 1;
        }
        Self { in_all: rows.fields.len() - some.len(), in_some }
    }

    fn has_any(&self, row: usize) -> bool {
        self.in_all > 0 || self.in_some.get(row).is_some_and(|count| *count > 0)
    }

    fn max(&self) -> usize {
        self.in_all + self.in_some.iter().max().map_or(0, |count| *count as usize)
    }
}

/// Columns with a number that no field can have, by index, and the rows of each.
fn not_finite(rows: &InputRows<'_>) -> Vec<(usize, Vec<usize>)> {
    let mut found = Vec::new();
    for (index, field) in rows.fields.iter().enumerate() {
        let InputValues::Float(values) = &field.values else { continue };
        // Without an early end, so that it takes wide instructions.
        if values.iter().fold(true, |finite, value| finite & value.is_finite()) {
            continue;
        }
        let is_bad = |row: &usize| !values[*row].is_finite();
        let bad: Vec<usize> = match &field.present {
            None => (0..values.len()).filter(is_bad).collect(),
            Some(present) => present.iter().map(|row| *row as usize).filter(is_bad).collect(),
        };
        if !bad.is_empty() {
            found.push((index, bad));
        }
    }
    found
}

struct RowParser<'r> {
    rows: &'r InputRows<'r>,
    limits: &'r WriteLimits,
    tenant_key: &'r str,
    series: SeriesFinder<'r>,
    batch: Batch,
    /// Table of each measurement, once it has a row.
    table_of_measurement: Vec<u32>,
    faults: Faults,
    tags_refused: bool,
    raw_tags: Vec<u8>,
    /// Measurement, tags and series of the row before: the next one often has the same.
    before: Option<(usize, Vec<u8>, u32)>,
}

impl RowParser<'_> {
    /// Reads a row; the table that it goes into, if it is accepted.
    fn row(
        &mut self,
        row: usize,
        time_fault: Option<FaultCode>,
        counts: &FieldCounts,
        not_finite: &[(usize, Vec<usize>)],
    ) -> Option<u32> {
        let of_measurement = self.rows.measurement_of.get(row).map_or(0, |at| *at as usize);
        let measurement = self.rows.measurements[of_measurement];
        let index = self.rows.first_row + row;
        match measurement {
            None => self.faults.push(0, FaultCode::StringType, index, &["measurement"]),
            Some("") => self.faults.push(0, FaultCode::StringTooShort, index, &["measurement"]),
            Some(_) => {}
        }
        if let Some(code) = time_fault {
            self.faults.push(1, code, index, &["time"]);
        }
        for (column, bad) in not_finite {
            if bad.binary_search(&row).is_ok() {
                let name = self.rows.fields[*column].name;
                self.faults.push(3 + column, FaultCode::FiniteNumber, index, &["fields", name]);
            }
        }
        let time_ns = self.rows.times_ns[row];
        let rejected = is_rejected(counts.has_any(row), Some(time_ns));
        let series =
            self.series_of(row, of_measurement, measurement.unwrap_or_default(), !rejected);
        self.faults.end_record();
        if rejected && self.faults.are_none() {
            let record = u32::try_from(row).expect("bounded by the rows of a block");
            self.batch.rejected_indices.push(record);
        }
        let series = series.filter(|_| !rejected)?;
        Some(self.accept(of_measurement, measurement?, series, time_ns))
    }

    /// The series of a row, which becomes a new one of the batch if it is unknown and the row is
    /// `accepted`. `None` where its tags refuse the batch, or it needs none.
    fn series_of(
        &mut self,
        row: usize,
        of_measurement: usize,
        measurement: &str,
        accepted: bool,
    ) -> Option<u32> {
        self.rows.tags.put_raw(row, &mut self.raw_tags);
        if let Some((before, raw_tags, series)) = &self.before
            && *before == of_measurement
            && *raw_tags == self.raw_tags
        {
            return Some(*series);
        }
        let series = match self.series.find(measurement, &self.raw_tags) {
            Ok(series) => series,
            Err(unknown) => {
                let tags = match tags_of(&self.raw_tags) {
                    Ok(tags) => tags,
                    Err((code, key)) => {
                        let index = self.rows.first_row + row;
                        self.faults.push(2, code, index, &["tags", &key]);
                        return None;
                    }
                };
                let Some(name) = series_name(measurement, tags, self.tenant_key, self.limits)
                else {
                    self.tags_refused = true;
                    return None;
                };
                if !accepted || measurement.is_empty() {
                    return None;
                }
                self.series.add(name, unknown, measurement, &self.raw_tags)
            }
        };
        let (_, raw_tags, _) = self.before.take().unwrap_or_default();
        let free = std::mem::replace(&mut self.raw_tags, raw_tags);
        self.before = Some((of_measurement, free, series));
        Some(series)
    }

    fn accept(&mut self, of_measurement: usize, name: &str, series: u32, time_ns: i64) -> u32 {
        let batch = &mut self.batch;
        let mut table = self.table_of_measurement[of_measurement];
        if table == NO_TABLE {
            // One name may stand among the measurements more than once.
            let known = batch.measurements.iter().position(|other| other == name);
            let at = known.unwrap_or_else(|| {
                batch.tables.push(Table::default());
                batch.measurements.push(name.to_owned());
                batch.tables.len() - 1
            });
            table = u32::try_from(at).expect("fewer tables than rows");
            self.table_of_measurement[of_measurement] = table;
        }
        batch.accepted_count += 1;
        batch.clamped_count += u32::from(time_ns > batch.ingest_ns);
        let ingest_ns = batch.ingest_ns;
        let of_table = &mut batch.tables[table as usize];
        of_table.series.push(series);
        of_table.times_ns.push(time_ns.min(ingest_ns));
        table
    }

    /// The last row of a table.
    fn last_row(&self, table: u32) -> u32 {
        let rows = self.batch.tables[table as usize].row_count();
        u32::try_from(rows - 1).expect("bounded by the rows of a block")
    }
}
