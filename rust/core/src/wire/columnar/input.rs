//! Rows as their sender has them: each part is a column.

use std::borrow::Cow;

use crate::model::batch::FieldType;
use crate::model::fault::FaultCode;

/// Rows that are written together.
#[derive(Clone, Debug, Default)]
pub struct InputRows<'a> {
    /// Number of rows. Each column has this many values.
    pub row_count: usize,
    /// Index of the first row, as faults report it.
    pub first_row: usize,
    /// Time of each row in nanoseconds since 1970. Any value for the rows in `time_faults`.
    pub times_ns: Cow<'a, [i64]>,
    /// Rows without a time that can be stored, ascending, each with its fault.
    pub time_faults: Vec<(usize, FaultCode)>,
    /// Measurements and tags of the rows, in the order of their first rows. The same key may appear
    /// more than once.
    pub keys: Vec<InputKey<'a>>,
    /// Index into `keys` of each row. Empty if all rows have the first key.
    pub key_of: Vec<u32>,
    /// Tags of all keys, in the order of the keys.
    pub tags: Vec<InputTag<'a>>,
    /// Columns of values. Each pair of name and type appears once.
    pub fields: Vec<InputField<'a>>,
}

/// A measurement and tags, which together name a series.
#[derive(Clone, Copy, Debug)]
pub struct InputKey<'a> {
    /// Name of the measurement, `None` if it is missing.
    pub measurement: Option<&'a str>,
    /// Index of the end of its tags in [`InputRows::tags`]. They begin at the end of the previous
    /// key's tags. Example: two keys with 2 tags each have the ends 2 and 4.
    pub tags_end: usize,
}

/// A tag. Its texts are bytes: the tags of a known series are compared as bytes, and only new tags
/// are decoded.
#[derive(Clone, Debug)]
pub struct InputTag<'a> {
    /// Key of the tag, `None` if it is missing.
    pub key: Option<&'a [u8]>,
    /// Value of the tag, `None` if it is missing.
    pub value: Option<Cow<'a, [u8]>>,
}

/// Values of one field.
#[derive(Clone, Debug)]
pub struct InputField<'a> {
    /// Name of the field.
    pub name: &'a str,
    /// Rows that have a value, ascending. `None` if all rows have a value.
    pub present: Option<Vec<u32>>,
    /// The values, one per row. Any value for a row without a value.
    pub values: InputValues<'a>,
}

/// Values of a column, one per row.
#[derive(Clone, Debug)]
pub enum InputValues<'a> {
    /// Doubles.
    Float(Cow<'a, [f64]>),
    /// Booleans.
    Bool(Vec<bool>),
    /// Texts.
    Text(Vec<&'a str>),
}

impl InputRows<'_> {
    /// Returns the index into [`Self::keys`] of a row.
    pub(super) fn key_at(&self, row: usize) -> usize {
        self.key_of.get(row).map_or(0, |key| *key as usize)
    }
}

impl InputValues<'_> {
    pub(super) const fn field_type(&self) -> FieldType {
        match self {
            Self::Float(_) => FieldType::Float,
            Self::Bool(_) => FieldType::Bool,
            Self::Text(_) => FieldType::Text,
        }
    }
}
