//! Records as columns: parsers produce them, blocks store them, queries read them.
//!
//! A [`Table`] holds the rows of one measurement. Its `series` and `field` numbers are local to a
//! [`Batch`] until the catalog has given them their stored ids; in a stored block they are ids.

use std::ops::Range;

use crate::model::fault::{Fault, Refusal};
use crate::model::new_series::NewSeries;

/// Series numbers from here on are indices into [`Batch::new_series`], not stored ids.
pub const NEW_SERIES_BASE: u32 = 1 << 31;

/// The one type a field of a measurement has for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// A double; integers are coerced to it.
    Float,
    /// A boolean.
    Bool,
    /// A string.
    Text,
}

impl FieldType {
    /// The word for this type.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Text => "text",
        }
    }

    /// The type of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Float, Self::Bool, Self::Text].into_iter().find(|each| each.as_str() == word)
    }

    /// The code that stored bytes have for this type (`docs/format.md`).
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Float => 0,
            Self::Bool => 1,
            Self::Text => 2,
        }
    }

    /// The type of a code.
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

/// Values of one column, one per row that has the field.
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
    /// An empty column of `field_type`.
    #[must_use]
    pub fn new(field_type: FieldType) -> Self {
        match field_type {
            FieldType::Float => Self::Float(Vec::new()),
            FieldType::Bool => Self::Bool(Vec::new()),
            FieldType::Text => Self::Text(Vec::new()),
        }
    }

    /// The type of all values.
    #[must_use]
    pub const fn field_type(&self) -> FieldType {
        match self {
            Self::Float(_) => FieldType::Float,
            Self::Bool(_) => FieldType::Bool,
            Self::Text(_) => FieldType::Text,
        }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Float(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Tells whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Rows of a table that have a value in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All rows, in order.
    All,
    /// These rows, ascending, each below the table's row count.
    Some(Vec<u32>),
}

impl Rows {
    /// Range of the values of the column that lie in `rows`.
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

    /// The row of the value at an index.
    ///
    /// # Panics
    /// If the column has no value at this index.
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
    /// Index into [`Batch::fields`] while parsing, stored [`crate::model::names::FieldId`] in a block.
    pub field: u32,
    /// Rows that have a value; as many as there are values.
    pub rows: Rows,
    /// The values, in row order.
    pub values: Values,
}

/// Rows of one measurement, in write order within each entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Series of each row.
    pub series: Vec<u32>,
    /// Time of each row, nanoseconds since 1970-01-01T00:00:00Z.
    pub times_ns: Vec<i64>,
    /// Columns, each field at most once.
    pub columns: Vec<Column>,
}

impl Table {
    /// Number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.times_ns.len()
    }

    /// Number of values, with as many more for the bytes of texts as these are doubles.
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
    /// The ingest instant of the batch, nanoseconds.
    pub ingest_ns: i64,
    /// One table per measurement.
    pub tables: Vec<Table>,
}

/// Position of a field cell: in array order of the records, then in key order.
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
    /// Index of its table in [`Batch::tables`].
    pub table: u32,
    /// Name, never empty.
    pub name: String,
    /// Type of its first accepted cell.
    pub field_type: FieldType,
    /// Position of that cell.
    pub first: CellPosition,
}

/// A cell whose type differs from an earlier accepted cell of the same batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Position of the cell.
    pub at: CellPosition,
    /// Name of the field.
    pub field: String,
}

/// A parsed batch whose syntax, schema and tags are in order: accepted rows as columns.
///
/// Records that are rejected by themselves leave no trace in the columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The one ingest instant, nanoseconds since 1970.
    pub ingest_ns: i64,
    /// One per measurement, in order of first accepted record.
    pub tables: Vec<Table>,
    /// Measurement of each table.
    pub measurements: Vec<String>,
    /// Fields; [`Column::field`] points here.
    pub fields: Vec<BatchField>,
    /// Tells whether there are more distinct fields than a tenant may have. The values of those
    /// beyond are left out, so the batch is not to be stored.
    pub has_excess_fields: bool,
    /// Series not found in the cache; a series may stand here more than once.
    pub new_series: NewSeries,
    /// First type conflict inside the batch, if any.
    pub conflict: Option<Conflict>,
    /// Records accepted.
    pub accepted_count: u32,
    /// Indices of the rejected records, ascending.
    pub rejected_indices: Vec<u32>,
    /// Records whose time was in the future and became the ingest instant.
    pub clamped_count: u32,
    /// Lines of the text, 0 where it has none.
    pub line_count: usize,
    /// First faults of the first rejected records of another protocol, whose faults reject them
    /// alone. The location begins with the number of the line, or of the value, from 1.
    pub dropped: Vec<Fault>,
}

/// Result of a parser.
pub type ParseResult = std::result::Result<Batch, Refusal>;
