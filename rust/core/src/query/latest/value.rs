//! A value of a sample, and the bytes that it counts for.

use crate::model::batch::{Column, FieldType, Values};

/// An owned value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Float(f64),
    Bool(bool),
    Text(Box<str>),
}

/// A borrowed value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// A finite double.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A string.
    Text(&'a str),
}

impl Value {
    /// Returns the value at an index of a column.
    pub(super) fn of(column: &Column, index: usize) -> Self {
        match &column.values {
            Values::Float(values) => Self::Float(values[index]),
            Values::Bool(values) => Self::Bool(values[index]),
            Values::Text(values) => Self::Text(values[index].clone()),
        }
    }

    pub(super) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Float(value) => ValueRef::Float(*value),
            Self::Bool(value) => ValueRef::Bool(*value),
            Self::Text(value) => ValueRef::Text(value),
        }
    }
}

impl ValueRef<'_> {
    pub(super) const fn field_type(self) -> FieldType {
        match self {
            Self::Float(_) => FieldType::Float,
            Self::Bool(_) => FieldType::Bool,
            Self::Text(_) => FieldType::Text,
        }
    }

    /// Returns the bytes that the value counts for: 8 for a double, 1 for a boolean, the UTF-8
    /// bytes of a string.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Float(_) => 8,
            Self::Bool(_) => 1,
            Self::Text(text) => text.len(),
        }
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Float(value) => Self::Float(value),
            ValueRef::Bool(value) => Self::Bool(value),
            ValueRef::Text(value) => Self::Text(value.into()),
        }
    }
}
