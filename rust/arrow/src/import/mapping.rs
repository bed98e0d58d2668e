//! The caller's description of the columns of a flat table.

/// Origin of the measurement of a row.
#[derive(Clone, Debug)]
pub enum MeasurementFrom {
    /// All rows have this measurement.
    Name(String),
    /// This column holds the measurement.
    Column(String),
}

/// The columns of a flat table, by their roles.
#[derive(Clone, Debug)]
pub struct ColumnMapping {
    /// Column of times.
    pub time: String,
    /// Nanoseconds in the unit of integer times. Example: 1,000,000,000 for seconds.
    pub time_unit_ns: Option<i64>,
    /// Measurement of the rows.
    pub measurement: MeasurementFrom,
    /// Column of the `entity_id` tag.
    pub entity: Option<String>,
    /// Name and column of each tag.
    pub tags: Vec<(String, String)>,
    /// Key and value of tags that all rows have.
    pub fixed_tags: Vec<(String, String)>,
    /// Name and column of each field. If `None`, every column without another role is a field.
    pub fields: Option<Vec<(String, String)>>,
}
