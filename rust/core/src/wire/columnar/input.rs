//! Rows as their sender has them, each part a column.

use std::borrow::Cow;

use crate::model::batch::FieldType;
use crate::model::fault::FaultCode;

/// Rows that are written together.
#[derive(Clone, Debug, Default)]
pub struct InputRows<'a> {
    /// Number of rows; each column has as many.
    pub row_count: usize,
    /// Index of the first row as faults give it.
    pub first_row: usize,
    /// Time of each, nanoseconds since 1970; anything where it is among `time_faults`.
    pub times_ns: Cow<'a, [i64]>,
    /// Rows without a time that can be stored, ascending, and what is wrong with each.
    pub time_faults: Vec<(usize, FaultCode)>,
    /// Measurements and tags of the rows, in the order of the first row of each. One may stand here
    /// more than once.
    pub keys: Vec<InputKey<'a>>,
    /// Index into `keys` of each row; empty where all rows have the first.
    pub key_of: Vec<u32>,
    /// Tags of the keys, one behind the other.
    pub tags: Vec<InputTag<'a>>,
    /// Columns of values, each name with each type once.
    pub fields: Vec<InputField<'a>>,
}

/// A measurement and tags, which together name a series.
#[derive(Clone, Copy, Debug)]
pub struct InputKey<'a> {
    /// Name of the measurement, `None` where it is missing.
    pub measurement: Option<&'a str>,
    /// Index of the end of its tags among all tags: they begin where those of the key before end.
    pub tags_end: usize,
}

/// A tag. Its texts are bytes: nearly all are those of a series that is known, and only others are
/// looked at.
#[derive(Clone, Debug)]
pub struct InputTag<'a> {
    /// Its key, `None` where it is missing.
    pub key: Option<&'a [u8]>,
    /// Its value, `None` where it is missing.
    pub value: Option<Cow<'a, [u8]>>,
}

/// Values of one field.
#[derive(Clone, Debug)]
pub struct InputField<'a> {
    /// Its name.
    pub name: &'a str,
    /// Rows that have a value, ascending; all where it is `None`.
    pub present: Option<Vec<u32>>,
    /// The values, one per row, anything where a row has none.
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
    /// Index into [`Self::keys`] of a row.
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
