//! Comma-separated values (RFC 4180): rows of cells whose roles a header defines.
//!
//! A row without anything unusual is read cell by cell in one pass over its bytes (`quick`). Such a
//! row has no quotes, only known fields, the tags of an earlier row, and values of the columns'
//! types. Any other row is read from its start by the rules (`row`).

mod columns;
mod split;

mod keys;
mod steps;

mod parser;

mod quick;
mod row;

mod document;

#[cfg(test)]
mod tests;

pub use columns::{CsvColumn, CsvColumns, CsvField};
pub use document::{csv_cells, csv_records, parse_csv};
