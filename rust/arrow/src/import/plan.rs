//! The columns of a stream, by their purposes.

use std::collections::HashSet;

use fleetcast_core::model::batch::FieldType;
use fleetcast_core::model::column_name;
use fleetcast_core::model::error::Result;

use super::field::{ArrowField, invalid};
use super::mapping::{ColumnMapping, MeasurementFrom};

/// Indices of the columns of a stream, by their purposes.
pub(super) struct ColumnPlan {
    pub(super) time: usize,
    /// Nanoseconds in the unit of integers and timestamps; `None` for texts.
    pub(super) unit_ns: Option<i64>,
    pub(super) measurement: Measurement,
    pub(super) tags: TagsPlan,
    /// Name and column of each field.
    pub(super) fields: Vec<(String, usize)>,
}

pub(super) enum Measurement {
    Name(String),
    Column(usize),
}

pub(super) enum TagsPlan {
    /// A column of maps.
    Map(usize),
    /// Key and column of each tag, and key and value of the tags that all rows have.
    Columns { columns: Vec<(String, usize)>, fixed: Vec<(String, String)> },
}

impl ColumnPlan {
    /// Makes the plan for a stream with the schema of a scan.
    ///
    /// # Errors
    /// Returns [`fleetcast_core::model::error::Error::Invalid`] if the schema is another.
    pub(super) fn of_scan(root: &ArrowField) -> Result<Self> {
        let [time, measurement, tags] = column_name::ROW_COLUMNS.map(|name| find(root, name));
        let (time, measurement, tags) = (time?, measurement?, tags?);
        let unit_ns = unit_ns(&root.children[time], None)?;
        if !root.children[measurement].is_text() {
            return Err(unlike(&root.children[measurement], "text"));
        }
        if root.children[tags].entry().is_none() {
            return Err(unlike(&root.children[tags], "a map from text to text"));
        }
        let mut fields = Vec::new();
        for (index, column) in root.children.iter().enumerate() {
            if [time, measurement, tags].contains(&index) {
                continue;
            }
            let (name, field_type) = column_name::field_of(&column.name);
            if field_type.is_some_and(|of_name| !may_have(column, of_name)) {
                return Err(unlike(column, "of the type that its name says"));
            }
            fields.push((name.into_owned(), index));
        }
        let (measurement, tags) = (Measurement::Column(measurement), TagsPlan::Map(tags));
        Self { time, unit_ns: Some(unit_ns), measurement, tags, fields }.checked(root)
    }

    /// Makes the plan for a stream from `mapping`.
    ///
    /// # Errors
    /// Returns [`fleetcast_core::model::error::Error::Invalid`] if `mapping` names a missing column
    /// or a column of an unsuitable type.
    pub(super) fn of_mapping(root: &ArrowField, mapping: ColumnMapping) -> Result<Self> {
        let time = find(root, &mapping.time)?;
        let of_time = &root.children[time];
        let unit_ns =
            if of_time.is_text() { None } else { Some(unit_ns(of_time, mapping.time_unit_ns)?) };
        let measurement = match mapping.measurement {
            MeasurementFrom::Name(name) => Measurement::Name(name),
            MeasurementFrom::Column(column) => Measurement::Column(find(root, &column)?),
        };
        let mut columns = Vec::new();
        let entity = mapping.entity.map(|column| ("entity_id".to_owned(), column));
        for (tag, column) in entity.into_iter().chain(mapping.tags) {
            columns.push((tag, find(root, &column)?));
        }
        let mut used: HashSet<usize> = columns.iter().map(|(_, column)| *column).collect();
        used.insert(time);
        if let Measurement::Column(column) = measurement {
            used.insert(column);
        }
        let fields = if let Some(named) = mapping.fields {
            let found = |(field, column): (String, String)| Ok((field, find(root, &column)?));
            named.into_iter().map(found).collect::<Result<_>>()?
        } else {
            let others = root.children.iter().enumerate();
            let others = others.filter(|(index, _)| !used.contains(index));
            others.map(|(index, column)| (column.name.clone(), index)).collect()
        };
        let tags = TagsPlan::Columns { columns, fixed: mapping.fixed_tags };
        Self { time, unit_ns, measurement, tags, fields }.checked(root)
    }

    fn checked(self, root: &ArrowField) -> Result<Self> {
        if let Some((_, column)) = self.fields.iter().find(|(name, _)| name.is_empty()) {
            let name = &root.children[*column].name;
            return Err(invalid(format!("column {name:?} gives a field without a name")));
        }
        let mut seen = HashSet::new();
        for (name, column) in &self.fields {
            let column = &root.children[*column];
            if !seen.insert((name, column.is_text(), column.format == "b")) {
                return Err(invalid(format!("two columns give the field {name:?}")));
            }
        }
        Ok(self)
    }
}

fn find(root: &ArrowField, name: &str) -> Result<usize> {
    let mut found = root.children.iter().enumerate().filter(|(_, column)| column.name == name);
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        (None, _) => Err(invalid(format!("there is no column {name:?}, only {}", root.names()))),
        _ => Err(invalid(format!("there is more than one column {name:?}"))),
    }
}

fn unlike(column: &ArrowField, wanted: &str) -> fleetcast_core::model::error::Error {
    invalid(format!("column {:?} is {}, not {wanted}", column.name, column.type_name()))
}

/// Returns the nanoseconds in the unit of a column of times.
fn unit_ns(column: &ArrowField, of_integers: Option<i64>) -> Result<i64> {
    match (column.unit_ns(), column.is_integer() && column.dictionary.is_none(), of_integers) {
        (Some(unit_ns), _, _) | (None, true, Some(unit_ns)) => Ok(unit_ns),
        (None, true, None) => {
            Err(invalid(format!("column {:?} has integers: say their time_unit", column.name)))
        }
        (None, false, _) => Err(unlike(column, "a timestamp")),
    }
}

fn may_have(column: &ArrowField, field_type: FieldType) -> bool {
    match field_type {
        _ if column.format == "n" => true,
        FieldType::Float => {
            column.is_integer() && column.dictionary.is_none()
                || matches!(column.format.as_str(), "g" | "f")
        }
        FieldType::Bool => column.format == "b",
        FieldType::Text => column.is_text(),
    }
}
