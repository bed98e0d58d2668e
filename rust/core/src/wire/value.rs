//! Field values on their way from a record into columns.

use std::borrow::Cow;

use crate::model::batch::FieldType;

/// An acceptable field value.
#[derive(Clone, Debug)]
pub(super) enum CellValue<'a> {
    Float(f64),
    Bool(bool),
    Text(Cow<'a, str>),
}

impl CellValue<'_> {
    pub(super) const fn field_type(&self) -> FieldType {
        match self {
            Self::Float(_) => FieldType::Float,
            Self::Bool(_) => FieldType::Bool,
            Self::Text(_) => FieldType::Text,
        }
    }

    #[inline]
    pub(super) const fn is_not_finite(&self) -> bool {
        matches!(self, Self::Float(value) if !value.is_finite())
    }
}

/// A field of a record on its way into a column.
#[derive(Clone, Debug)]
pub(super) struct FieldCell<'a> {
    pub(super) name: Cow<'a, str>,
    /// Column of the table for which the cells were read, if known. Saves a lookup of the name.
    pub(super) column: u32,
    pub(super) value: CellValue<'a>,
}

/// Columns of the values of a record, in the order of the values.
#[derive(Default)]
pub(super) struct RowColumns {
    pub(super) doubles: Vec<u32>,
    pub(super) others: Vec<u32>,
}

impl RowColumns {
    /// Copies the first columns of `other`: this many doubles and others.
    pub(super) fn copy_beginning(&mut self, other: &Self, (doubles, others): (usize, usize)) {
        self.doubles.clear();
        self.doubles.extend_from_slice(other.doubles.get(..doubles).unwrap_or_default());
        self.others.clear();
        self.others.extend_from_slice(other.others.get(..others).unwrap_or_default());
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.doubles.iter().chain(&self.others).copied()
    }

    pub(super) const fn len(&self) -> usize {
        self.doubles.len() + self.others.len()
    }

    pub(super) fn clear(&mut self) {
        self.doubles.clear();
        self.others.clear();
    }
}

/// Values of a record whose columns are known. Nearly all are doubles.
#[derive(Default)]
pub(super) struct RecordValues<'a> {
    pub(super) doubles: Vec<f64>,
    pub(super) others: Vec<CellValue<'a>>,
    /// Columns of the values, if a record has its fields in another order than its template.
    pub(super) columns: RowColumns,
}

impl RecordValues<'_> {
    pub(super) fn clear(&mut self) {
        self.doubles.clear();
        self.others.clear();
    }
}
