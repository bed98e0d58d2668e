//! The `fields` of a record.

use std::borrow::Cow;

use super::message::Parser;
use super::scan::{Reader, Scan, delimited, fixed64, text, varint};
use crate::wire::columns::{Cell, Row, UNKNOWN_COLUMN, Value};
use crate::wire::prefix::Prefix;

/// `TelemetryRecord.fields`
const FIELDS: u32 = delimited(4);
/// Fields of a map entry.
const KEY: u32 = delimited(1);
const VALUE: u32 = delimited(2);
/// Fields of `FieldValue`, a oneof.
const NUMBER_VALUE: u32 = fixed64(1);
const BOOL_VALUE: u32 = varint(2);
const STRING_VALUE: u32 = delimited(3);
const INT_VALUE: u32 = varint(4);

/// Stands for a value that is not set until the record ends; not a number is refused as well.
const UNSET: Value<'static> = Value::Float(f64::NAN);
/// Bytes of a double, and what stands before it: tag and length of the value, tag of the double.
const DOUBLE_BYTES: usize = 8;
const DOUBLE_HEAD: [u8; 3] = [0x12, 0x09, 0x09];

/// How a field of a column was sent before.
struct Layout<'a> {
    name: &'a str,
    /// The whole entry up to its double, where it holds nothing else and the column is one of
    /// doubles; otherwise empty. An entry that begins with the same bytes has the same name, and
    /// its double lies behind them.
    double_head: Prefix,
}

/// By table, then by column.
#[derive(Default)]
pub(super) struct Layouts<'a> {
    tables: Vec<Vec<Layout<'a>>>,
}

impl<'a> Layouts<'a> {
    #[inline]
    fn get(&self, table: u32, column: u32) -> Option<&Layout<'a>> {
        self.tables.get(table as usize)?.get(column as usize)
    }

    fn set(&mut self, table: u32, column: u32, name: &'a str) {
        let (table, column) = (table as usize, column as usize);
        if self.tables.len() <= table {
            self.tables.resize_with(table + 1, Vec::new);
        }
        if let Some(columns) = self.tables.get_mut(table)
            && columns.len() == column
        {
            columns.push(Layout { name, double_head: Prefix::default() });
        }
    }

    fn set_double_head(&mut self, table: u32, column: u32, head: &[u8]) {
        let columns = self.tables.get_mut(table as usize);
        if let Some(layout) = columns.and_then(|columns| columns.get_mut(column as usize))
            && layout.double_head.begins(head) != head.len()
        {
            layout.double_head = Prefix::new(head);
        }
    }
}

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
    /// Prepares for the fields of a record, which probably go where those of `measurement` do.
    #[inline]
    pub(super) fn begin_fields(&mut self, measurement: &str) {
        self.cells_table = if measurement.is_empty() {
            self.columns.last_table()
        } else {
            self.columns.find_table(measurement)
        };
    }

    /// Reads adjacent entries of `fields`.
    #[inline]
    pub(super) fn fields_run(&mut self, reader: &mut Reader<'a>) -> Scan<()> {
        while !reader.is_empty() {
            if let Some((length, value)) = self.expected_double(reader.rest) {
                self.fields.suspect |= !value.is_finite();
                let column = self.fields.column_next;
                self.fields.column_next += 1;
                if self.cells.is_empty() {
                    self.doubles.push((column, value));
                } else {
                    self.push_double(column, value);
                }
                reader.rest = reader.rest.get(length..).unwrap_or_default();
                continue;
            }
            let before = *reader;
            if reader.tag()? != FIELDS {
                *reader = before;
                break;
            }
            let entry = reader.delimited()?;
            let length = before.rest.len() - reader.rest.len();
            self.entry(before.rest.get(..length).unwrap_or_default(), entry)?;
        }
        Ok(())
    }

    /// The double of the entry that `rest` begins with, if it is laid out as the next column's were
    /// before, and the length of the entry.
    #[inline]
    fn expected_double(&self, rest: &[u8]) -> Option<(usize, f64)> {
        if self.fields.unordered {
            return None;
        }
        let layout = self.layouts.get(self.cells_table?, self.fields.column_next)?;
        let head = layout.double_head.begins(rest);
        let (bytes, _) = rest.get(head..)?.split_first_chunk::<DOUBLE_BYTES>()?;
        (head != 0).then(|| (head + DOUBLE_BYTES, f64::from_le_bytes(*bytes)))
    }

    fn push_double(&mut self, column: u32, value: f64) {
        let layout = self.cells_table.and_then(|table| self.layouts.get(table, column));
        let name = Cow::Borrowed(layout.map_or("", |layout| layout.name));
        self.cells.push(Cell { name, column, value: Value::Float(value) });
    }

    /// Makes cells of `doubles`, so that all fields are in one place.
    fn gather(&mut self) {
        let mut doubles = std::mem::take(&mut self.doubles);
        for (column, value) in doubles.drain(..) {
            self.push_double(column, value);
        }
        self.doubles = doubles;
    }

    /// Reads one entry; `whole` is it with its tag and length.
    fn entry(&mut self, whole: &'a [u8], entry: &'a [u8]) -> Scan<()> {
        self.gather();
        let mut reader = Reader::new(entry);
        let (mut name, mut column, mut value) = ("", UNKNOWN_COLUMN, UNSET);
        while !reader.is_empty() {
            match reader.tag()? {
                KEY => (name, column) = self.field_name(reader.delimited()?)?,
                VALUE => field_value(reader.delimited()?, &mut value)?,
                other => reader.skip(other)?,
            }
        }
        if let (Value::Float(_), Some(table)) = (&value, self.cells_table)
            && self.columns.holds_doubles(table, column)
            && let Some(head) = double_head(whole, name)
        {
            self.layouts.set_double_head(table, column, head);
        }
        self.fields.suspect |=
            name.is_empty() || matches!(value, Value::Float(value) if !value.is_finite());
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

    /// A field's name and its column, if known.
    #[inline]
    fn field_name(&mut self, bytes: &'a [u8]) -> Scan<(&'a str, u32)> {
        let Some(table) = self.cells_table else {
            return Ok((text(bytes)?, UNKNOWN_COLUMN));
        };
        let expected = self.fields.column_next;
        if let Some(layout) = self.layouts.get(table, expected)
            && layout.name.as_bytes() == bytes
        {
            return Ok((layout.name, expected));
        }
        let name = text(bytes)?;
        Ok((name, self.columns.find_column(table, name)))
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

    /// Whether a field of the record has no name, or no value, or one that is not finite (L8).
    #[inline]
    pub(super) fn has_faulty_field(&self) -> bool {
        let faulty = |cell: &Cell<'_>| {
            cell.name.is_empty() || matches!(cell.value, Value::Float(value) if !value.is_finite())
        };
        self.fields.suspect
            && (self.doubles.iter().any(|(_, value)| !value.is_finite())
                || self.cells.iter().any(faulty))
    }

    /// Accepts the record whose fields are `cells`.
    #[inline]
    pub(super) fn accept(&mut self, row: &Row<'_>) {
        if let Some(table) = row.cells_table.filter(|_| self.cells.is_empty())
            && self.columns.find_table(row.measurement) == Some(table)
        {
            self.columns.accept_doubles(table, row.series, row.time_ns, &self.doubles);
            return;
        }
        self.gather();
        let is_known = |cell: &Cell<'_>| cell.column != UNKNOWN_COLUMN;
        let known = row.cells_table.is_some() && self.cells.iter().all(is_known);
        self.columns.accept(row, &mut self.cells);
        if let (false, Some(table)) = (known, self.columns.last_table()) {
            for cell in &self.cells {
                if let Cow::Borrowed(name) = cell.name {
                    self.layouts.set(table, cell.column, name);
                }
            }
        }
    }
}

/// Merges a `FieldValue` into `value`: the last of a oneof wins. Integers become doubles, to the
/// nearest.
#[inline]
fn field_value<'a>(bytes: &'a [u8], value: &mut Value<'a>) -> Scan<()> {
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

/// The part of an entry before its double, where it is the key `name`, then a double, then nothing.
fn double_head<'e>(whole: &'e [u8], name: &str) -> Option<&'e [u8]> {
    let (head, _) = whole.split_at_checked(whole.len().checked_sub(DOUBLE_BYTES)?)?;
    let rest = head.strip_suffix(&DOUBLE_HEAD)?.strip_suffix(name.as_bytes())?;
    // What is left is the tag and length of the entry, then of the key, a byte each.
    let lengths = u8::try_from(name.len()).ok().filter(|length| *length < 0x60)?;
    (rest == [0x22, lengths + 13, 0x0a, lengths]).then_some(head)
}

#[expect(clippy::cast_precision_loss, reason = "numbers are stored as doubles (contract)")]
const fn nearest(value: i64) -> f64 {
    value as f64
}
