//! Rows of any Arrow C stream on their way into a store.

mod bits;
mod field;
mod view;

mod mapping;
mod plan;
mod texts;

mod keys;
mod values;

mod reader;

#[cfg(test)]
mod tests;

pub use mapping::{ColumnMapping, MeasurementFrom};
pub use reader::RowReader;
