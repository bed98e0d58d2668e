//! Roles of cells.

use crate::model::batch::FieldType;

/// A column with the values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvField {
    /// Name of the field.
    pub name: String,
    /// Type of its cells. `None` until a cell with a text has been read.
    pub field_type: Option<FieldType>,
}

/// Roles of a column. A column without a role is skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvColumn {
    /// If true, the column holds the times.
    pub is_time: bool,
    /// If true, the column holds the measurements.
    pub is_measurement: bool,
    /// Names of the tags whose values the column holds.
    pub tags: Vec<String>,
    /// The field whose values the column holds.
    pub field: Option<CsvField>,
}

/// The columns of a table, and the values that all its rows share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvColumns {
    /// Columns in order.
    pub cells: Vec<CsvColumn>,
    /// Nanoseconds per unit of times that are numbers. `None` for ISO 8601. Example: 1,000,000 for
    /// milliseconds.
    pub time_unit_ns: Option<i64>,
    /// The measurement of all rows. `None` if a column holds it.
    pub measurement: Option<String>,
    /// Tags of all rows.
    pub fixed_tags: Vec<(String, String)>,
}

/// Returns the type of a column whose first cell with a text is `cell`.
pub(super) fn type_of(cell: &str) -> FieldType {
    if boolean(cell).is_some() {
        FieldType::Bool
    } else if number(cell).is_some() {
        FieldType::Float
    } else {
        FieldType::Text
    }
}

/// Returns the boolean in a cell, if it is a boolean.
pub(super) fn boolean(cell: &str) -> Option<bool> {
    match () {
        () if cell.eq_ignore_ascii_case("true") => Some(true),
        () if cell.eq_ignore_ascii_case("false") => Some(false),
        () => None,
    }
}

/// Returns the number in a cell, if it is a number. The number may be `nan` or infinite.
pub(super) fn number(cell: &str) -> Option<f64> {
    cell.parse().ok()
}
