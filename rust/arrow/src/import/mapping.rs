//! The caller's word on what the columns of a flat table are.

/// Origin of the measurement of a row.
#[derive(Clone, Debug)]
pub enum MeasurementFrom {
    /// All rows have this one.
    Name(String),
    /// A column has it.
    Column(String),
}

/// Columns of a flat table and what they are.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Column of times.
    pub time: String,
    /// Nanoseconds of the unit of integers in it.
    pub time_unit_ns: Option<i64>,
    /// Measurement of the rows.
    pub measurement: MeasurementFrom,
    /// Column of the `entity_id` tag.
    pub entity: Option<String>,
    /// Tag and column of each.
    pub tags: Vec<(String, String)>,
    /// Key and value of tags that all rows have.
    pub fixed_tags: Vec<(String, String)>,
    /// Field and column of each; all columns that are nothing else where it is `None`.
    pub fields: Option<Vec<(String, String)>>,
}
