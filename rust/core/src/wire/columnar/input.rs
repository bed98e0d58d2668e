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
    /// Names of measurements, `None` for one that is missing.
    pub measurements: Vec<Option<&'a str>>,
    /// Index into `measurements` of each row; empty where all rows have the first.
    pub measurement_of: Vec<u32>,
    /// Tags of each.
    pub tags: InputTags<'a>,
    /// Columns of values, each name with each type once.
    pub fields: Vec<InputField<'a>>,
}

/// Values of a tag, one per row.
pub type TagValues<'a> = Vec<Option<Cow<'a, [u8]>>>;

/// Tags of rows. Their texts are bytes: nearly all are those of a series that is known, and only
/// others are looked at.
#[derive(Clone, Debug)]
pub enum InputTags<'a> {
    /// Entries of each row, one behind the other.
    Maps {
        /// Index of the first entry of each row, and after them the number of entries.
        offsets: Vec<usize>,
        /// Keys of the entries.
        keys: Vec<Option<&'a [u8]>>,
        /// Values of the entries.
        values: Vec<Option<&'a [u8]>>,
    },
    /// A column for each tag, `None` where a row does not have it; and tags that all rows have.
    Columns {
        /// Key and values of each.
        columns: Vec<(&'a str, TagValues<'a>)>,
        /// Key and value of each.
        fixed: Vec<(&'a str, &'a str)>,
    },
}

impl Default for InputTags<'_> {
    fn default() -> Self {
        Self::Columns { columns: Vec::new(), fixed: Vec::new() }
    }
}

/// Values of one field.
#[derive(Clone, Debug)]
pub struct InputField<'a> {
    /// Its name.
    pub name: &'a str,
    /// Rows that have a value; all where it is `None`.
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

impl InputValues<'_> {
    pub(super) const fn field_type(&self) -> FieldType {
        match self {
            Self::Float(_) => FieldType::Float,
            Self::Bool(_) => FieldType::Bool,
            Self::Text(_) => FieldType::Text,
        }
    }
}
