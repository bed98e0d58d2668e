//! Reads the `fields` of a record.

use std::borrow::Cow;

use super::parser::{JsonParser, RECORD_DEPTH};
use crate::model::fault::FaultCode;
use crate::wire::columns::UNKNOWN_COLUMN;
use crate::wire::template::SlotKind;
use crate::wire::tokens::json::{JsonResult, Scanner};
use crate::wire::value::{CellValue, FieldCell};

/// Depth of the values of a record's fields.
const FIELDS_DEPTH: usize = RECORD_DEPTH + 1;

impl<'a> JsonParser<'a, '_> {
    /// Reads the object `fields` of record `index` into `self.cells`. Returns the offset after it.
    ///
    /// The cells probably go into `table`. Senders repeat their keys in the same order, so each key
    /// is first compared with the name of the next column.
    pub(super) fn fields(
        &mut self,
        mut scan: Scanner<'a>,
        index: usize,
        table: Option<u32>,
    ) -> JsonResult<usize> {
        self.cells.clear();
        self.cells_table = table;
        self.keys_of_cells = false;
        let mut column_next = 0;
        // While the columns ascend, no key can have come before.
        let mut ascending = true;
        scan.expect(b'{')?;
        let mut more = scan.first(b'}');
        while more {
            let key_at = scan.at;
            let (name, column) = self.field_name(&mut scan, table, column_next)?;
            ascending &= column != UNKNOWN_COLUMN && column >= column_next;
            if column != UNKNOWN_COLUMN {
                column_next = column + 1;
            }
            scan.colon()?;
            if !ascending && self.is_duplicate(name.clone()) {
                self.faults.push(key_at, FaultCode::DuplicateKey, index, &["fields", &name]);
                scan.at = scan.value_end(FIELDS_DEPTH)?;
                more = scan.next(b'}')?;
                continue;
            }
            if name.is_empty() {
                self.faults.push(key_at, FaultCode::StringTooShort, index, &["fields", &name]);
            }
            let value_at = scan.at;
            let (value, fault) = field_value(&mut scan)?;
            if let Some(code) = fault {
                self.faults.push(key_at, code, index, &["fields", &name]);
            }
            self.templates.note(value_at..scan.at, SlotKind::Field);
            // Push faulty cells too: a later key may be a duplicate of their key.
            self.cells.push(FieldCell { name, column, value });
            more = scan.next(b'}')?;
        }
        self.faults.fields_refused |= self.cells.len() > self.batch.limits.fields_max;
        Ok(scan.at)
    }

    /// Returns a key and its column in `table`, which is probably `expected`.
    #[inline]
    fn field_name(
        &self,
        scan: &mut Scanner<'a>,
        table: Option<u32>,
        expected: u32,
    ) -> JsonResult<(Cow<'a, str>, u32)> {
        if let Some(table) = table
            && let Some(key) = self.batch.columns.plain_key(table, expected)
            && let Some(length) = key.length_in(scan.rest())
        {
            let start = scan.at + 1;
            scan.at += length;
            return Ok((Cow::Borrowed(scan.span(start, scan.at - 1)?), expected));
        }
        let (name, column, at) = self.unexpected_name(*scan, table)?;
        scan.at = at;
        Ok((name, column))
    }

    /// Returns a key, its column in `table`, and the offset after the key.
    fn unexpected_name(
        &self,
        mut scan: Scanner<'a>,
        table: Option<u32>,
    ) -> JsonResult<(Cow<'a, str>, u32, usize)> {
        let name = scan.string()?;
        let column =
            table.map_or(UNKNOWN_COLUMN, |table| self.batch.columns.find_column(table, &name));
        Ok((name, column, scan.at))
    }

    /// Returns true if a key of this object came before. `self.cells` holds all earlier keys.
    #[cold]
    fn is_duplicate(&mut self, name: Cow<'a, str>) -> bool {
        if !self.keys_of_cells {
            self.keys_of_cells = true;
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
fn field_value<'a>(scan: &mut Scanner<'a>) -> JsonResult<(CellValue<'a>, Option<FaultCode>)> {
    let value = match scan.peek() {
        b'-' | b'0'..=b'9' => {
            let value = scan.double()?;
            let fault = value.is_infinite().then_some(FaultCode::FiniteNumber);
            return Ok((CellValue::Float(value), fault));
        }
        b'"' => CellValue::Text(scan.string()?),
        b't' => {
            scan.literal(b"true")?;
            CellValue::Bool(true)
        }
        b'f' => {
            scan.literal(b"false")?;
            CellValue::Bool(false)
        }
        _ => {
            scan.at = scan.value_end(FIELDS_DEPTH)?;
            return Ok((CellValue::Bool(false), Some(FaultCode::FieldValueType)));
        }
    };
    Ok((value, None))
}
