//! Reads rows by the rules.

use std::borrow::Cow;
use std::ops::Range;

use super::columns::{boolean, number, type_of};
use super::keys::KeyTable;
use super::parser::CsvParser;
use super::split::{UnclosedRow, split};
use super::steps::CellStep;
use crate::model::batch::FieldType;
use crate::model::fault::FaultCode;
use crate::wire::columnar::{put_tag, tags_of};
use crate::wire::columns::{AcceptedRecord, UNKNOWN_COLUMN};
use crate::wire::rules::{is_rejected, series_name};
use crate::wire::tokens::line::integer;
use crate::wire::value::{CellValue, FieldCell};

/// A row, as far as it has been read.
#[derive(Default)]
struct CsvRow {
    time_ns: Option<i64>,
    measurement: Option<String>,
}

impl CsvParser<'_, '_> {
    /// Reads row `index`, which begins at `start`. Accepts or rejects it, unless the batch is
    /// already refused. Returns the offset of the end of its line. Bytes from `wrong` on are not
    /// UTF-8.
    pub(super) fn row(&mut self, start: usize, index: usize, wrong: Option<usize>) -> usize {
        let mut raw = std::mem::take(&mut self.raw);
        let end = match split(self.text, start, &mut raw) {
            Ok(end) if wrong.is_some_and(|at| at < end) => {
                self.faults.push(0, FaultCode::LineInvalid, index, &[]);
                end
            }
            Ok(end) => {
                if raw.len() == self.header.cells.len() {
                    self.raw = raw;
                    self.cells_of_row(index);
                    self.end_row(start..end, index);
                    raw = std::mem::take(&mut self.raw);
                } else {
                    self.faults.push(0, FaultCode::RecordType, index, &[]);
                }
                end
            }
            Err(UnclosedRow { end, .. }) => {
                self.faults.push(0, FaultCode::LineInvalid, index, &[]);
                end
            }
        };
        self.faults.end_record();
        self.raw = raw;
        end
    }

    /// Reads the fields of the row into `self.cells`.
    fn cells_of_row(&mut self, index: usize) {
        self.cells.clear();
        let mut is_new = false;
        for (at, (column, raw)) in self.header.cells.iter_mut().zip(&self.raw).enumerate() {
            let (Some(field), Some(text)) = (&mut column.field, raw.value()) else { continue };
            is_new |= field.field_type.is_none();
            let field_type = *field.field_type.get_or_insert_with(|| type_of(text));
            let value = match field_type {
                FieldType::Text => Ok(CellValue::Text(raw.text.clone())),
                FieldType::Bool => {
                    boolean(text).map(CellValue::Bool).ok_or(FaultCode::FieldValueType)
                }
                FieldType::Float => match number(text) {
                    Some(value) if value.is_nan() && text.eq_ignore_ascii_case("nan") => continue,
                    Some(value) if value.is_infinite() => Err(FaultCode::FiniteNumber),
                    Some(value) if !value.is_nan() => Ok(CellValue::Float(value)),
                    _ => Err(FaultCode::FieldValueType),
                },
            };
            match value {
                Ok(_) if self.cells.iter().any(|cell| cell.name == *field.name) => {
                    self.faults.push(at, FaultCode::DuplicateKey, index, &["fields", &field.name]);
                }
                Ok(value) => {
                    let name = Cow::Owned(field.name.clone());
                    self.cells.push(FieldCell { name, column: UNKNOWN_COLUMN, value });
                }
                Err(code) => self.faults.push(at, code, index, &["cell", &at.to_string()]),
            }
        }
        self.faults.fields_refused |= self.cells.len() > self.batch.limits.fields_max;
        if is_new {
            self.plan();
        }
    }

    /// Decides on a row after its fields are read.
    fn end_row(&mut self, range: Range<usize>, index: usize) {
        let parts = self.parts(index);
        let rejected = is_rejected(!self.cells.is_empty(), parts.time_ns);
        let measurement = parts.measurement.unwrap_or_default();
        let series = self.series_of(&measurement, index, !rejected);
        if !self.is_sound() {
            return;
        }
        let record = u32::try_from(index).expect("bounded by the records of a batch");
        let (Some(sent_ns), Some(series), false) = (parts.time_ns, series, rejected) else {
            self.batch.columns.batch().rejected_indices.push(record);
            return;
        };
        let time_ns = self.batch.columns.clamp(sent_ns);
        let measurement = measurement.as_str();
        let row = AcceptedRecord { record, measurement, series, time_ns, cells_table: None };
        self.batch.columns.accept(&row, &mut self.cells);
        let Some(table) = self.batch.columns.last_table() else { return };
        if self.batch.columns.is_complete() {
            self.learn(table);
            self.remember(range, KeyTable { series, table });
        } else {
            self.steps = None;
        }
    }

    /// Reads time and measurement of the row.
    fn parts(&mut self, index: usize) -> CsvRow {
        let mut parts = CsvRow { time_ns: None, measurement: self.header.measurement.clone() };
        for (at, (column, raw)) in self.header.cells.iter().zip(&self.raw).enumerate() {
            if column.is_time {
                let time = match (raw.value(), self.header.time_unit_ns) {
                    (Some(text), None) => {
                        let time_ns = self.times.parse_ns(text.as_bytes());
                        time_ns.ok_or((FaultCode::DatetimeParsing, "time"))
                    }
                    (None, None) => Err((FaultCode::DatetimeType, "time")),
                    (text, Some(unit_ns)) => whole(text.unwrap_or_default())
                        .ok_or((FaultCode::IntParsing, "cell"))
                        .and_then(|time| {
                            time.checked_mul(unit_ns).ok_or((FaultCode::DatetimeParsing, "time"))
                        }),
                };
                match time {
                    Ok(time_ns) => parts.time_ns = Some(time_ns),
                    Err((code, key)) => {
                        let number = at.to_string();
                        let keys = [key, &number];
                        let depth = if key == "cell" { 2 } else { 1 };
                        self.faults.push(at, code, index, keys.get(..depth).unwrap_or_default());
                    }
                }
            }
            if column.is_measurement {
                let code = match raw.value() {
                    None => Some(FaultCode::StringType),
                    Some("") => Some(FaultCode::StringTooShort),
                    Some(_) => None,
                };
                if let Some(code) = code {
                    self.faults.push(at, code, index, &["measurement"]);
                }
                parts.measurement = raw.value().map(str::to_owned);
            }
        }
        parts
    }

    /// Returns the series of a row. An unknown series becomes a new series of the batch if the row
    /// is `accepted`. Returns `None` if the row has faults or its tags refuse the batch; both are
    /// noted.
    fn series_of(&mut self, measurement: &str, index: usize, accepted: bool) -> Option<u32> {
        let raw_tags = &mut self.raw_tags;
        raw_tags.clear();
        for (key, value) in &self.header.fixed_tags {
            put_tag(raw_tags, key, value);
        }
        for (column, raw) in self.header.cells.iter().zip(&self.raw) {
            for key in &column.tags {
                if let Some(value) = raw.value() {
                    put_tag(raw_tags, key, value);
                }
            }
        }
        let unknown = match self.batch.series.find(measurement, raw_tags) {
            Ok(series) => return Some(series),
            Err(unknown) => unknown,
        };
        let tags = match tags_of(raw_tags) {
            Ok(tags) => tags,
            Err((code, key)) => {
                self.faults.push(usize::MAX, code, index, &["tags", &key]);
                return None;
            }
        };
        if !self.faults.are_none() {
            return None;
        }
        let Some(name) = series_name(measurement, tags, self.batch.tenant_key, self.batch.limits)
        else {
            self.faults.tags_refused = true;
            return None;
        };
        accepted.then(|| self.batch.series.add(&name, unknown, measurement, raw_tags))
    }

    /// Remembers the series of a row by the bytes of its measurement and tags.
    fn remember(&mut self, range: Range<usize>, known: KeyTable) {
        let (Some(row), Some(steps)) = (self.text.get(range), &self.steps) else { return };
        if row.contains('"') {
            return;
        }
        let cells: Vec<&str> = self.raw.iter().map(|cell| &*cell.text).collect();
        let mut key = Vec::new();
        for (step, from) in steps {
            let CellStep::Key(count) = step else { continue };
            let run = cells.get(*from..from + count).unwrap_or_default().join(",");
            key.extend_from_slice(run.as_bytes());
            if self.key_count > 1 {
                key.push(b',');
            }
        }
        self.keys.add(&key, known);
    }
}

/// Returns the whole number in a cell, if there is one.
fn whole(cell: &str) -> Option<i64> {
    let digits = cell.strip_prefix('+').filter(|rest| !rest.starts_with('-')).unwrap_or(cell);
    match integer(digits.as_bytes()) {
        Ok((number, length)) if length == digits.len() => Some(number),
        _ => None,
    }
}
