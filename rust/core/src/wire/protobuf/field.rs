//! The `fields` of a record.

use std::borrow::Cow;

use super::message::Parser;
use super::scan::{Reader, Scan, delimited, fixed64, text, varint};
use crate::wire::columns::{Cell, UNKNOWN_COLUMN, Value};

/// Fields of a map entry.
const KEY: u32 = delimited(1);
const VALUE: u32 = delimited(2);
/// Fields of `FieldValue`, a oneof.
const NUMBER_VALUE: u32 = fixed64(1);
const BOOL_VALUE: u32 = varint(2);
const STRING_VALUE: u32 = delimited(3);
const INT_VALUE: u32 = varint(4);

/// Stands for a value that is not set until the record ends; not a number is refused as well.
pub(super) const UNSET: Value<'static> = Value::Float(f64::NAN);

/// State of the fields of one record.
#[derive(Default)]
pub(super) struct FieldsState {
    /// The column after the one before: senders repeat their keys in one order.
    column_next: u32,
    /// Whether a key may have come before: not while columns ascend.
    unordered: bool,
    /// Whether `Parser::keys` holds those of `Parser::cells`.
    keys_known: bool,
    /// Whether some value was not acceptable when it was read.
    suspect: bool,
}

impl<'a> Parser<'a, '_> {
    /// Reads one entry of `fields` of a record that is probably of `measurement`.
    pub(super) fn field(&mut self, measurement: &str, entry: &'a [u8]) -> Scan<()> {
        if self.cells.is_empty() {
            self.cells_table = if measurement.is_empty() {
                self.columns.last_table()
            } else {
                self.columns.find_table(measurement)
            };
        }
        let (mut name, mut value) = ("", UNSET);
        let mut reader = Reader::new(entry);
        while !reader.is_empty() {
            match reader.tag()? {
                KEY => name = text(reader.delimited()?)?,
                VALUE => field_value(reader.delimited()?, &mut value)?,
                other => reader.skip(other)?,
            }
        }
        if self.has_too_many_fields() {
            return Ok(());
        }
        self.fields.suspect |= name.is_empty() || is_not_finite(&value);
        let column = self.find_column(name);
        if column == UNKNOWN_COLUMN || column < self.fields.column_next {
            self.fields.unordered = true;
        } else {
            self.fields.column_next = column + 1;
        }
        if self.fields.unordered
            && let Some(at) = self.earlier_cell(name)
            && let Some(cell) = self.cells.get_mut(at)
        {
            cell.value = value;
        } else {
            self.cells.push(Cell { name: Cow::Borrowed(name), column, value });
        }
        Ok(())
    }

    #[inline]
    fn find_column(&self, name: &str) -> u32 {
        let Some(table) = self.cells_table else { return UNKNOWN_COLUMN };
        let expected = self.fields.column_next;
        if self.columns.is_named(table, expected, name) {
            return expected;
        }
        self.columns.find_column(table, name)
    }

    /// Where in `cells` the key `name` came before.
    fn earlier_cell(&mut self, name: &'a str) -> Option<usize> {
        if !self.fields.keys_known {
            self.fields.keys_known = true;
            self.keys.clear();
            for cell in &self.cells {
                self.keys.insert(cell.name.clone());
            }
        }
        self.keys.earlier(Cow::Borrowed(name))
    }

    /// Whether the record has more fields than it may have; of those beyond, one is kept.
    #[inline]
    fn has_too_many_fields(&self) -> bool {
        self.cells.len() > self.limits.fields_max
    }

    /// Whether the record has too many fields, or one without a name, without a value, or with
    /// one that is not finite.
    #[inline]
    pub(super) fn has_faulty_field(&self) -> bool {
        let faulty = |cell: &Cell<'_>| cell.name.is_empty() || is_not_finite(&cell.value);
        self.has_too_many_fields() || self.fields.suspect && self.cells.iter().any(faulty)
    }
}

/// Merges a `FieldValue` into `value`: the last of a oneof wins. Integers become doubles, to the
/// nearest.
#[inline]
pub(super) fn field_value<'a>(bytes: &'a [u8], value: &mut Value<'a>) -> Scan<()> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        *value = match reader.tag()? {
            NUMBER_VALUE => Value::Float(reader.double()?),
            BOOL_VALUE => Value::Bool(reader.varint()? != 0),
            STRING_VALUE => Value::Text(Cow::Borrowed(text(reader.delimited()?)?)),
            INT_VALUE => Value::Float(nearest(reader.varint()?.cast_signed())),
            other => {
                reader.skip(other)?;
                continue;
            }
        };
    }
    Ok(())
}

#[inline]
pub(super) const fn is_not_finite(value: &Value<'_>) -> bool {
    matches!(value, Value::Float(value) if !value.is_finite())
}

#[expect(clippy::cast_precision_loss, reason = "numbers are stored as doubles (contract)")]
const fn nearest(value: i64) -> f64 {
    value as f64
}
