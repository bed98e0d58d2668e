//! Columns of the rows that a scan returns.

use std::collections::{BTreeMap, HashMap};

use crate::model::batch::FieldType;
use crate::model::catalog::{Catalog, MeasurementIndex};
use crate::model::column_name;
use crate::model::error::{Error, Result};
use crate::model::limits::SCAN_COLUMNS_MAX;
use crate::model::names::FieldId;

/// Columns of a scan in addition to `time`, `measurement` and `tags`.
#[derive(Clone, Debug, Default)]
pub struct ScanSchema {
    /// Name and type of each column, in order of the field names, then of the types.
    pub columns: Vec<(String, FieldType)>,
    /// Names of the measurements. Rows refer to them by index.
    pub measurements: Vec<String>,
    column_of: HashMap<FieldId, usize>,
    measurement_of: HashMap<MeasurementIndex, u32>,
}

impl ScanSchema {
    /// Makes the columns of `fields`. Fields with the same name and type share a column.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if a field has no name.
    pub fn new(fields: impl Iterator<Item = FieldId>, catalog: &Catalog) -> Result<Self> {
        let mut ids: BTreeMap<(&str, u8), Vec<FieldId>> = BTreeMap::new();
        for id in fields {
            let field =
                catalog.field(id).ok_or(Error::Corrupt { what: "a field without a name" })?;
            ids.entry((&field.name, field.field_type.code())).or_default().push(id);
        }
        let mut schema = Self::default();
        let names: Vec<(&str, u8)> = ids.keys().copied().collect();
        for (index, ((name, code), ids)) in ids.into_iter().enumerate() {
            let is_same = |at: Option<usize>| {
                at.and_then(|at| names.get(at)).is_some_and(|(other, _)| *other == name)
            };
            let has_other_type = is_same(index.checked_sub(1)) || is_same(Some(index + 1));
            let field_type = FieldType::of_code(code).unwrap_or(FieldType::Float);
            let column = column_name::of_field(name, field_type, has_other_type);
            schema.columns.push((column, field_type));
            schema.column_of.extend(ids.into_iter().map(|id| (id, index)));
        }
        for (at, measurement) in (0..).zip(catalog.measurements_by_name()) {
            schema.measurements.push(catalog.measurement_name(measurement).to_owned());
            schema.measurement_of.insert(measurement, at);
        }
        Ok(schema)
    }

    /// Checks that a table can have all columns.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if there are more than [`SCAN_COLUMNS_MAX`] columns.
    pub fn check_table(&self) -> Result<()> {
        let count = self.columns.len();
        if count <= SCAN_COLUMNS_MAX {
            return Ok(());
        }
        let message = format!(
            "the rows have {count} fields, and a table has columns for {SCAN_COLUMNS_MAX} at most"
        );
        Err(Error::Invalid { message })
    }

    /// Returns the index of the column of a field.
    #[must_use]
    pub fn column_of(&self, field: FieldId) -> Option<usize> {
        self.column_of.get(&field).copied()
    }

    /// Returns the index of a measurement in [`Self::measurements`].
    #[must_use]
    pub fn measurement_of(&self, measurement: MeasurementIndex) -> Option<u32> {
        self.measurement_of.get(&measurement).copied()
    }
}
