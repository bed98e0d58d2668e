//! Records as columns: parsers produce them, blocks store them, queries read them.
//!
//! A [`Table`] holds the rows of one measurement. In a [`Batch`], its `series` and `field` numbers
//! are local until the catalog replaces them by stored ids. In a stored block they are stored ids.
//!
//! Example: the records `{"temp": 20.5}` and `{"temp": 21.0, "ok": true}` of one measurement are a
//! table of two rows. Column `temp` has two values in [`RowSet::All`], and column `ok` has one
//! value in row 1.

use std::ops::Range;

use crate::model::fault::{BatchRefusal, Fault};
use crate::model::new_series::NewSeries;

/// First number that is not a stored id: a series number from here on is an index into
/// [`Batch::new_series`].
///
/// Example: the number `NEW_SERIES_BASE + 2` stands for the third new series.
pub const NEW_SERIES_BASE: u32 = 1 << 31;

/// The type of a field of a measurement. A field keeps its type for ever. The values of a newest
/// sample are sorted by type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldType {
    /// A double. Integers are converted to doubles.
    Float,
    /// A boolean.
    Bool,
    /// A string.
    Text,
}

impl FieldType {
    /// Returns the word for this type, such as `float`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Text => "text",
        }
    }

    /// Returns the type that `word` names, `None` if it names no type.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Float, Self::Bool, Self::Text].into_iter().find(|each| each.as_str() == word)
    }

    /// Returns the code of this type in stored bytes (`docs/format.md`).
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Float => 0,
            Self::Bool => 1,
            Self::Text => 2,
        }
    }

    /// Returns the type with this code, or `None` if there is none.
    #[must_use]
    pub const fn of_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Float),
            1 => Some(Self::Bool),
            2 => Some(Self::Text),
            _ => None,
        }
    }
}

/// Values of one column: a value for each row that has the field.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Finite doubles, kept bit-exact.
    Float(Vec<f64>),
    /// Booleans.
    Bool(Vec<bool>),
    /// Strings.
    Text(Vec<Box<str>>),
}

impl Values {
    /// Returns an empty column of `field_type`.
    #[must_use]
    pub fn new(field_type: FieldType) -> Self {
        match field_type {
            FieldType::Float => Self::Float(Vec::new()),
            FieldType::Bool => Self::Bool(Vec::new()),
            FieldType::Text => Self::Text(Vec::new()),
        }
    }

    /// Returns the type of all values.
    #[must_use]
    pub const fn field_type(&self) -> FieldType {
        match self {
            Self::Float(_) => FieldType::Float,
            Self::Bool(_) => FieldType::Bool,
            Self::Text(_) => FieldType::Text,
        }
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Float(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Returns true if there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The rows of a table that have a value in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowSet {
    /// All rows, in order.
    All,
    /// Only these rows, which ascend and are below the table's row count.
    Some(Vec<u32>),
}

impl RowSet {
    /// Returns the range of the column's values that lie in `rows`.
    ///
    /// Example: a column with values in rows 2, 5 and 6 has the values `1..3` in rows `4..8`.
    #[must_use]
    pub fn within(&self, rows: &Range<usize>) -> Range<usize> {
        match self {
            Self::All => rows.clone(),
            Self::Some(present) => {
                let index = |end: usize| present.partition_point(|row| (*row as usize) < end);
                index(rows.start)..index(rows.end)
            }
        }
    }

    /// Returns the row of the value at `index`.
    ///
    /// Example: in a column with values in rows 2, 5 and 6, the value at index 1 is in row 5.
    ///
    /// # Panics
    /// Panics if the column has no value at `index`.
    #[must_use]
    pub fn row_at(&self, index: usize) -> usize {
        match self {
            Self::All => index,
            Self::Some(present) => present[index] as usize,
        }
    }
}

/// One field of one measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Index into [`Batch::fields`] during parsing, or stored [`crate::model::names::FieldId`] in a
    /// block.
    pub field: u32,
    /// Rows that have a value. Their number is the number of values.
    pub rows: RowSet,
    /// The values, in row order.
    pub values: Values,
}

/// Rows of one measurement, in write order within each entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Series of each row, as a number (see the module).
    pub series: Vec<u32>,
    /// Time of each row, in nanoseconds since 1970-01-01T00:00:00Z.
    pub times_ns: Vec<i64>,
    /// Columns. No field has two columns.
    pub columns: Vec<Column>,
}

impl Table {
    /// Returns the number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.times_ns.len()
    }

    /// Returns the number of values. A text counts once more for each eight of its bytes.
    ///
    /// Example: a column of the doubles 1.5 and 2.5 weighs 2. A column of one text of 20 bytes
    /// weighs 3.
    #[must_use]
    pub fn weight(&self) -> usize {
        let of_column = |column: &Column| match &column.values {
            Values::Text(texts) => {
                texts.len() + texts.iter().map(|text| text.len()).sum::<usize>() / 8
            }
            values => values.len(),
        };
        self.columns.iter().map(of_column).sum()
    }
}

/// Content of one stored block: the accepted rows of one batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The ingest instant of the batch, in nanoseconds since 1970.
    pub ingest_ns: i64,
    /// A table for each measurement.
    pub tables: Vec<Table>,
}

/// Position of a field cell, ordered by record in the array, then by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellPosition {
    /// Index of the record in the batch.
    pub record: u32,
    /// Index of the key in the record's `fields`.
    pub key: u32,
}

/// A field that occurs in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchField {
    /// Index of the field's table in [`Batch::tables`].
    pub table: u32,
    /// Name of the field, never empty.
    pub name: String,
    /// Type of the first accepted cell of the field.
    pub field_type: FieldType,
    /// Position of the first accepted cell of the field.
    pub first: CellPosition,
}

/// A cell whose type differs from the type of an earlier accepted cell of the same batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Position of the cell.
    pub at: CellPosition,
    /// Name of the field.
    pub field: String,
}

/// A parsed batch whose syntax, schema and tags are valid. It holds the accepted rows as columns.
///
/// A rejected record leaves no trace in the columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The ingest instant of the batch, in nanoseconds since 1970.
    pub ingest_ns: i64,
    /// A table for each measurement, in order of first accepted record.
    pub tables: Vec<Table>,
    /// Measurement of each table.
    pub measurements: Vec<String>,
    /// Fields, to which [`Column::field`] points.
    pub fields: Vec<BatchField>,
    /// True if the batch has more distinct fields than a tenant may have. The values of the excess
    /// fields are missing, so the batch must not be stored.
    pub has_excess_fields: bool,
    /// Series that the cache did not have. A series may occur more than once.
    pub new_series: NewSeries,
    /// First type conflict inside the batch, if there is one.
    pub conflict: Option<Conflict>,
    /// Number of accepted records.
    pub accepted_count: u32,
    /// Ascending indices of the rejected records.
    pub rejected_indices: Vec<u32>,
    /// Number of records whose time was in the future and became the ingest instant.
    pub clamped_count: u32,
    /// Number of lines of the text, or 0 if the protocol has no lines.
    pub line_count: usize,
    /// First fault of each of the first rejected records, for protocols whose faults reject single
    /// records. The location begins with the number of the line or of the value, counted from 1.
    pub dropped: Vec<Fault>,
}

/// Result of a parser.
pub type ParseResult = std::result::Result<Batch, BatchRefusal>;
