//! Reads the `fields` of a record.

use std::borrow::Cow;

use super::parser::ProtobufParser;
use crate::wire::columns::UNKNOWN_COLUMN;
use crate::wire::tokens::protobuf::{
    MessageReader, ProtobufResult, UNSET, delimited, merge_field_value, text,
};
use crate::wire::value::FieldCell;

/// Fields of a map entry.
const KEY: u32 = delimited(1);
const VALUE: u32 = delimited(2);
impl<'a> ProtobufParser<'a, '_> {
    /// Reads an entry of `fields` of a record that is probably of `measurement`.
    pub(super) fn field(&mut self, measurement: &str, entry: &'a [u8]) -> ProtobufResult<()> {
        if self.cells.is_empty() {
            self.cells_table = if measurement.is_empty() {
                self.batch.columns.last_table()
            } else {
                self.batch.columns.find_table(measurement)
            };
        }
        let (mut name, mut value) = ("", UNSET);
        let mut reader = MessageReader::new(entry);
        while !reader.is_empty() {
            match reader.tag()? {
                KEY => name = text(reader.delimited()?)?,
                VALUE => merge_field_value(reader.delimited()?, &mut value)?,
                other => reader.skip(other)?,
            }
        }
        if self.has_too_many_fields() {
            return Ok(());
        }
        self.fields.suspect |= name.is_empty() || value.is_not_finite();
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
            self.cells.push(FieldCell { name: Cow::Borrowed(name), column, value });
        }
        Ok(())
    }

    #[inline]
    fn find_column(&self, name: &str) -> u32 {
        let Some(table) = self.cells_table else { return UNKNOWN_COLUMN };
        let expected = self.fields.column_next;
        if self.batch.columns.is_named(table, expected, name) {
            return expected;
        }
        self.batch.columns.find_column(table, name)
    }

    /// Returns the index in `cells` of an earlier key `name`.
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

    /// Returns true if the record has too many fields. Of the fields beyond the bound, a single
    /// field is kept.
    #[inline]
    fn has_too_many_fields(&self) -> bool {
        self.cells.len() > self.batch.limits.fields_max
    }

    /// Returns true if the record has too many fields. Also returns true if a field has no name, no
    /// value, or a value that is not finite.
    #[inline]
    pub(super) fn has_faulty_field(&self) -> bool {
        let faulty = |cell: &FieldCell<'_>| cell.name.is_empty() || cell.value.is_not_finite();
        self.has_too_many_fields() || self.fields.suspect && self.cells.iter().any(faulty)
    }
}
