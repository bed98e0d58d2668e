//! Comma-separated values (RFC 4180): rows of cells, to which a header has given their roles.
//!
//! A row is read cell by cell in one pass over its bytes (`quick`) where nothing about it is unusual:
//! no quotes, fields that are known, tags that a row before had, values of the columns' types. Every
//! doubt is left to the rules (`row`), which read it from its start.

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
