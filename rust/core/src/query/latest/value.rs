//! One value of a sample, and how much of a sample it is.

use crate::model::batch::{Column, Values};

/// A value of its own.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Float(f64),
    Bool(bool),
    Text(Box<str>),
}

/// A value that lies elsewhere.
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
    /// The value at an index of a column.
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
    /// Bytes that it counts for: 8 of a double, 1 of a boolean, the UTF-8 of a string.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Float(_) => 8,
            Self::Bool(_) => 1,
            Self::Text(text) => text.len(),
        }
    }
}
