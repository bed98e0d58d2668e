//! Roles of cells.

use crate::model::batch::FieldType;

/// A column that is a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvField {
    /// Name of the field.
    pub name: String,
    /// Type of its cells; `None` until the first that is not empty.
    pub field_type: Option<FieldType>,
}

/// Roles of a column; one without any is passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvColumn {
    /// Tells whether it holds the times.
    pub is_time: bool,
    /// Tells whether it holds the measurements.
    pub is_measurement: bool,
    /// Names of the tags that it holds.
    pub tags: Vec<String>,
    /// The field that it holds.
    pub field: Option<CsvField>,
}

/// The columns of a table, and what all its rows have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvColumns {
    /// Columns in order.
    pub cells: Vec<CsvColumn>,
    /// Nanoseconds of the unit of times that are numbers; `None` for ISO 8601.
    pub time_unit_ns: Option<i64>,
    /// The measurement of all rows; `None` where a column has it.
    pub measurement: Option<String>,
    /// Tags of all rows.
    pub fixed_tags: Vec<(String, String)>,
}

/// The type of a column whose first cell this is.
pub(super) fn type_of(cell: &str) -> FieldType {
    if boolean(cell).is_some() {
        FieldType::Bool
    } else if number(cell).is_some() {
        FieldType::Float
    } else {
        FieldType::Text
    }
}

/// The boolean that a cell is.
pub(super) fn boolean(cell: &str) -> Option<bool> {
    match () {
        () if cell.eq_ignore_ascii_case("true") => Some(true),
        () if cell.eq_ignore_ascii_case("false") => Some(false),
        () => None,
    }
}

/// The number that a cell is, which may be none (`nan`) or too large.
pub(super) fn number(cell: &str) -> Option<f64> {
    cell.parse().ok()
}
