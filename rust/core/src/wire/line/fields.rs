//! Reads the fields of a record.

use std::borrow::Cow;

use super::parser::{BrokenLine, LineParser};
use crate::model::fault::FaultCode;
use crate::wire::columns::UNKNOWN_COLUMN;
use crate::wire::mapping::Rule;
use crate::wire::template::SlotKind;
use crate::wire::tokens::json::Scanner;
use crate::wire::tokens::line::{
    IntegerFault, NAME, boolean, integer, is_unquoted_end, string, unquoted,
};
use crate::wire::value::{CellValue, FieldCell};

/// State of the fields of one record.
struct LineFields {
    /// The column after the previous column: senders repeat their keys in the same order.
    column_next: u32,
    /// If true, a key may have come before. While columns ascend, no key can have come before.
    unordered: bool,
}

impl<'a> LineParser<'a, '_> {
    /// Reads the fields that begin here into `self.cells`.
    pub(super) fn fields(
        &mut self,
        scan: &mut Scanner<'a>,
        measurement: &str,
        rule: Option<&Rule>,
    ) -> Result<(), BrokenLine> {
        self.cells_table = self.batch.columns.find_table(measurement);
        let mut fields = LineFields { column_next: 0, unordered: false };
        loop {
            let key_at = scan.at;
            let name = NAME.read(scan, self.backslashes);
            let name = match rule {
                Some(rule) if !name.is_empty() => rule.field(name),
                _ => name,
            };
            if !scan.take(b'=') {
                return Err(BrokenLine);
            }
            let value_at = scan.at;
            let (value, fault) = field_value(scan)?;
            self.templates.note(value_at..scan.at, SlotKind::Field);
            self.field(&mut fields, key_at, name, value, fault);
            if !scan.take(b',') {
                break;
            }
        }
        self.faults.fields_refused |= self.cells.len() > self.batch.limits.fields_max;
        if is_unquoted_end(scan.bytes(), scan.at) { Ok(()) } else { Err(BrokenLine) }
    }

    /// Notes a field, or its fault. A faulty field counts too: a later key may be a duplicate of
    /// its key.
    fn field(
        &mut self,
        fields: &mut LineFields,
        key_at: usize,
        name: Cow<'a, str>,
        value: CellValue<'a>,
        fault: Option<FaultCode>,
    ) {
        let column = self.find_column(fields.column_next, &name);
        let was_unordered = fields.unordered;
        fields.unordered |= column == UNKNOWN_COLUMN || column < fields.column_next;
        if column != UNKNOWN_COLUMN {
            fields.column_next = column + 1;
        }
        if fields.unordered && self.is_duplicate(was_unordered, name.clone()) {
            self.faults.push(key_at, FaultCode::DuplicateKey, self.received, &["fields", &name]);
            return;
        }
        if name.is_empty() {
            self.faults.push(key_at, FaultCode::StringTooShort, self.received, &["fields", &name]);
        }
        if let Some(code) = fault {
            self.faults.push(key_at, code, self.received, &["fields", &name]);
        }
        self.cells.push(FieldCell { name, column, value });
    }

    #[inline]
    fn find_column(&self, expected: u32, name: &str) -> u32 {
        let Some(table) = self.cells_table else { return UNKNOWN_COLUMN };
        if self.batch.columns.is_named(table, expected, name) {
            return expected;
        }
        self.batch.columns.find_column(table, name)
    }

    /// Returns true if a field of this name came before. If `keys_known`, `self.keys` holds the
    /// keys of `self.cells`.
    #[cold]
    fn is_duplicate(&mut self, keys_known: bool, name: Cow<'a, str>) -> bool {
        if !keys_known {
            self.keys.clear();
            for cell in &self.cells {
                self.keys.insert(cell.name.clone());
            }
        }
        !self.keys.insert(name)
    }
}

/// Returns a field value. If the value is faulty, returns the fault and any value.
#[inline]
fn field_value<'a>(
    scan: &mut Scanner<'a>,
) -> Result<(CellValue<'a>, Option<FaultCode>), BrokenLine> {
    if scan.peek() == b'"' {
        return Ok((CellValue::Text(string(scan).ok_or(BrokenLine)?), None));
    }
    let mut after = *scan;
    if let Ok(value) = after.double()
        && is_unquoted_end(after.bytes(), after.at)
        && value.is_finite()
    {
        scan.at = after.at;
        return Ok((CellValue::Float(value), None));
    }
    Ok(other_value(unquoted(scan)))
}

/// Returns a value that is not written as JSON writes numbers.
fn other_value<'a>(text: &str) -> (CellValue<'a>, Option<FaultCode>) {
    if let Some(value) = boolean(text) {
        return (CellValue::Bool(value), None);
    }
    let value = match text.as_bytes() {
        [b'-', .., b'u'] => Err(FaultCode::IntParsing),
        [digits @ .., b'u'] => whole(digits).or_else(|code| beyond_signed(digits).ok_or(code)),
        [digits @ .., b'i'] => whole(digits),
        _ => decimal(text),
    };
    match value {
        Ok(value) => (CellValue::Float(value), None),
        Err(code) => (CellValue::Bool(false), Some(code)),
    }
}

/// Returns an integer as the nearest double, because all numbers are stored as doubles.
#[expect(clippy::cast_precision_loss, reason = "integers are stored as the nearest double")]
fn whole(digits: &[u8]) -> Result<f64, FaultCode> {
    match integer(digits) {
        Ok((value, length)) if length == digits.len() => Ok(value as f64),
        Err(IntegerFault::Size) => Err(FaultCode::IntParsingSize),
        Ok(_) | Err(IntegerFault::Syntax) => Err(FaultCode::IntParsing),
    }
}

/// Returns an integer from 2^63 to 2^64 - 1.
#[expect(clippy::cast_precision_loss, reason = "integers are stored as the nearest double")]
fn beyond_signed(digits: &[u8]) -> Option<f64> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    text.parse::<u64>().ok().map(|value| value as f64)
}

/// Returns a number with a sign, a point or zeros that JSON does not allow. Example: `+.5`.
fn decimal(text: &str) -> Result<f64, FaultCode> {
    let is_number =
        text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    let value: Option<f64> = if is_number { text.parse().ok() } else { None };
    match value {
        None => Err(FaultCode::FieldValueType),
        Some(value) if value.is_infinite() => Err(FaultCode::FiniteNumber),
        Some(value) => Ok(value),
    }
}
