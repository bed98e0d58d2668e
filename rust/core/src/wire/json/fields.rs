//! The `fields` of a record.

use std::borrow::Cow;

use super::array::Parser;
use super::scan::Scan;
use crate::fault::FaultCode;
use crate::wire::columns::{Cell, UNKNOWN_COLUMN, Value};

impl<'a> Parser<'a, '_> {
    /// Reads the object `fields` of record `index` into `self.cells`. `table` is where they will
    /// probably go: senders repeat their keys in one order, so each key is first compared with
    /// the name of the column after the one before.
    #[inline]
    pub(super) fn fields(&mut self, index: usize, table: Option<u32>) -> Scan<()> {
        self.cells.clear();
        self.cells_table = table;
        self.keys_of_cells = false;
        let mut column_next = 0;
        // While columns ascend, no key can have come before.
        let mut ascending = true;
        self.scan.expect(b'{')?;
        let mut more = self.scan.first(b'}');
        while more {
            let key_at = self.scan.at;
            let (name, column) = self.field_name(table, column_next)?;
            ascending &= column != UNKNOWN_COLUMN && column >= column_next;
            if column != UNKNOWN_COLUMN {
                column_next = column + 1;
            }
            let duplicate = !ascending && self.is_duplicate(&name);
            self.scan.colon()?;
            if duplicate {
                self.faults
                    .push(key_at, FaultCode::DuplicateKey, index, &["fields", &name]);
                self.scan.skip_value(3)?;
            } else {
                if name.is_empty() {
                    self.faults
                        .push(key_at, FaultCode::StringTooShort, index, &["fields", &name]);
                }
                let value = match self.field_value()? {
                    Ok(value) => value,
                    Err(code) => {
                        self.faults.push(key_at, code, index, &["fields", &name]);
                        Value::Bool(false)
                    }
                };
                // Faulty ones too: their keys count as duplicates of later ones.
                self.cells.push(Cell {
                    name,
                    column,
                    value,
                });
            }
            more = self.scan.next(b'}')?;
        }
        Ok(())
    }

    /// A key and its column in `table`, which is `expected` if all goes well.
    #[inline]
    fn field_name(&mut self, table: Option<u32>, expected: u32) -> Scan<(Cow<'a, str>, u32)> {
        let Some(table) = table else {
            return Ok((self.scan.string()?, UNKNOWN_COLUMN));
        };
        let start = self.scan.at;
        if let Some(quoted) = self.columns.quoted_name(table, expected)
            && self.scan.take_prefix(quoted)
        {
            let name = self.scan.span(start + 1, self.scan.at - 1)?;
            return Ok((Cow::Borrowed(name), expected));
        }
        let name = self.scan.string()?;
        let column = self.columns.find_column(table, &name);
        Ok((name, column))
    }

    /// Whether a key of this object came before; `self.cells` holds all of them.
    #[cold]
    fn is_duplicate(&mut self, name: &Cow<'a, str>) -> bool {
        if !self.keys_of_cells {
            self.keys_of_cells = true;
            self.keys.clear();
            for cell in &self.cells {
                self.keys.insert(cell.name.clone());
            }
        }
        !self.keys.insert(name.clone())
    }

    #[inline]
    fn field_value(&mut self) -> Scan<Result<Value<'a>, FaultCode>> {
        Ok(match self.scan.peek() {
            b'-' | b'0'..=b'9' => {
                let value = self.scan.number()?.value();
                if value.is_finite() {
                    Ok(Value::Float(value))
                } else {
                    Err(FaultCode::FiniteNumber)
                }
            }
            b'"' => Ok(Value::Text(self.scan.string()?)),
            b't' => {
                self.scan.literal(b"true")?;
                Ok(Value::Bool(true))
            }
            b'f' => {
                self.scan.literal(b"false")?;
                Ok(Value::Bool(false))
            }
            _ => {
                self.scan.skip_value(3)?;
                Err(FaultCode::FieldValueType)
            }
        })
    }
}
