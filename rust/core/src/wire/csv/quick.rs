//! Reads rows without anything unusual.

use std::ops::Range;

use super::columns::boolean;
use super::parser::{CsvParser, QuickRow};
use super::split::{cell_length, is_cell_end};
use super::steps::CellStep;
use crate::model::batch::FieldType;
use crate::model::time::TimeReader;
use crate::wire::columns::UNKNOWN_COLUMN;
use crate::wire::rules::is_stored;
use crate::wire::tokens::json::Scanner;
use crate::wire::tokens::line::{integer, is_end};
use crate::wire::value::CellValue;

impl CsvParser<'_, '_> {
    /// Accepts the row that begins at `start`. Returns the offset of the end of its line. Returns
    /// `None` to leave the row to the rules; it has changed no state then.
    #[inline]
    pub(super) fn quick_row(&mut self, start: usize) -> Option<usize> {
        let (sent_ns, key, end) = self.read(start)?;
        let Self { text, batch, keys, quick, columns_of, key_count, .. } = self;
        let key = if *key_count > 1 { &quick.key } else { text.as_bytes().get(key)? };
        let known = keys.find(key)?;
        let of_table = columns_of.get(known.table as usize)?;
        let QuickRow { cells, columns, values, .. } = quick;
        columns.clear();
        let column = |cell: &u32| of_table.get(*cell as usize).copied();
        for cell in &cells.doubles {
            columns.doubles.push(column(cell).filter(|column| *column != UNKNOWN_COLUMN)?);
        }
        for cell in &cells.others {
            columns.others.push(column(cell).filter(|column| *column != UNKNOWN_COLUMN)?);
        }
        let time_ns = batch.columns.clamp(sent_ns);
        batch.columns.accept_known(known.table, known.series, time_ns, columns, values);
        Some(end)
    }

    /// Reads a row that would be accepted. Returns its time, the range of its key, and its end.
    #[inline]
    fn read(&mut self, start: usize) -> Option<(i64, Range<usize>, usize)> {
        let Self { text, times, header, steps, key_count, keys, quick, .. } = self;
        let mut scan = Scanner::new(text, start);
        let (mut sent_ns, mut key_range) = (None, start..start);
        quick.clear();
        let mut cell_at = 0_u32;
        for (step, _) in steps.as_ref()? {
            if cell_at > 0 && !scan.take(b',') {
                return None;
            }
            let cell = cell_at;
            cell_at += 1;
            match step {
                CellStep::Field(Some(FieldType::Float)) => {
                    if let Some(value) = double(&mut scan).ok()? {
                        quick.cells.doubles.push(cell);
                        quick.values.doubles.push(value);
                    }
                }
                CellStep::Time => sent_ns = Some(time(&mut scan, times, header.time_unit_ns)?),
                CellStep::Key(count) => {
                    cell_at += u32::try_from(count - 1).ok()?;
                    let expected = keys.expected().filter(|_| *key_count == 1);
                    let length = key_length(scan.rest(), *count, expected)?;
                    key_range = scan.at..scan.at + length;
                    if *key_count > 1 {
                        quick.key.extend_from_slice(scan.rest().get(..length)?);
                        quick.key.push(b',');
                    }
                    scan.at += length;
                }
                CellStep::Field(field_type) => {
                    if let Some(value) = other(&mut scan, *field_type).ok()? {
                        quick.cells.others.push(cell);
                        quick.values.others.push(value);
                    }
                }
                CellStep::Ignored => {
                    if scan.peek() == b'"' {
                        return None;
                    }
                    scan.at += cell_length(scan.rest());
                }
            }
        }
        let has_fields = !quick.cells.doubles.is_empty() || !quick.cells.others.is_empty();
        let sent_ns = sent_ns.filter(|sent_ns| has_fields && is_stored(*sent_ns))?;
        is_end(scan.bytes(), scan.at).then_some((sent_ns, key_range, scan.at))
    }
}

/// Marks a cell that is left to the rules.
struct UnusualCell;

/// Returns the number in a cell, if there is a number.
#[inline]
fn double(scan: &mut Scanner<'_>) -> Result<Option<f64>, UnusualCell> {
    if matches!(scan.peek(), b'0'..=b'9' | b'-') {
        let value = scan.double().ok().filter(|value| value.is_finite());
        let value = value.filter(|_| is_cell_end(scan.bytes(), scan.at));
        return value.map(Some).ok_or(UnusualCell);
    }
    if is_cell_end(scan.bytes(), scan.at) {
        return Ok(None);
    }
    let length = cell_length(scan.rest());
    let cell = scan.rest().get(..length).unwrap_or_default();
    scan.at += length;
    if cell.eq_ignore_ascii_case(b"nan") { Ok(None) } else { Err(UnusualCell) }
}

/// Returns the value of a cell that is not a number, if there is a value.
#[inline]
fn other<'a>(
    scan: &mut Scanner<'a>,
    field_type: Option<FieldType>,
) -> Result<Option<CellValue<'a>>, UnusualCell> {
    let length = cell_length(scan.rest());
    if length == 0 {
        return Ok(None);
    }
    let cell = scan.text.get(scan.at..scan.at + length).unwrap_or_default();
    scan.at += length;
    let value = match field_type {
        Some(FieldType::Bool) => boolean(cell).map(CellValue::Bool),
        Some(FieldType::Text) if !cell.starts_with('"') => Some(CellValue::Text(cell.into())),
        Some(FieldType::Text | FieldType::Float) | None => None,
    };
    value.map(Some).ok_or(UnusualCell)
}

/// Returns the time in a cell, in nanoseconds since 1970.
#[inline]
fn time(scan: &mut Scanner<'_>, times: &mut TimeReader, unit_ns: Option<i64>) -> Option<i64> {
    let (time_ns, length) = match unit_ns {
        Some(unit_ns) => {
            let (time, length) = integer(scan.rest()).ok()?;
            (time.checked_mul(unit_ns)?, length)
        }
        None => match times.begins(scan.rest()) {
            Some((time_ns, length)) if is_cell_end(scan.bytes(), scan.at + length) => {
                (time_ns, length)
            }
            _ => {
                let length = cell_length(scan.rest());
                (times.parse_ns(scan.rest().get(..length)?)?, length)
            }
        },
    };
    scan.at += length;
    is_cell_end(scan.bytes(), scan.at).then_some(time_ns)
}

/// Returns the length of `count` cells, which probably equal `expected`. Returns `None` if a cell
/// has quotes.
#[inline]
fn key_length(rest: &[u8], count: usize, expected: Option<&[u8]>) -> Option<usize> {
    if let Some(key) = expected
        && rest.starts_with(key)
        && is_cell_end(rest, key.len())
    {
        return Some(key.len());
    }
    let mut length = 0;
    for cell in 0..count {
        if cell > 0 {
            if rest.get(length) != Some(&b',') {
                return None;
            }
            length += 1;
        }
        length += cell_length(rest.get(length..)?);
    }
    (!rest.get(..length)?.contains(&b'"')).then_some(length)
}
