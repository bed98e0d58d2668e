//! A description of a store as a dict.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use fleetcast_core::plane::{DistinctTexts, MeasurementContents};

/// Builds the dict that `_core.pyi` describes.
pub(crate) fn description<'py>(
    py: Python<'py>,
    measurements: &BTreeMap<String, MeasurementContents>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (name, contents) in measurements {
        let of_measurement = PyDict::new(py);
        of_measurement.set_item("rows", contents.rows)?;
        of_measurement.set_item("first_ns", contents.times_ns.map(|ends| ends.0))?;
        of_measurement.set_item("last_ns", contents.times_ns.map(|ends| ends.1))?;
        of_measurement.set_item("series", contents.series)?;
        of_measurement.set_item("entities", bounded(py, &contents.entities)?)?;
        let tags = PyDict::new(py);
        for (key, values) in &contents.tags {
            tags.set_item(key, bounded(py, values)?)?;
        }
        of_measurement.set_item("tags", tags)?;
        let fields = PyDict::new(py);
        for (field, field_type) in &contents.fields {
            fields.set_item(field, field_type.as_str())?;
        }
        of_measurement.set_item("fields", fields)?;
        all.set_item(name, of_measurement)?;
    }
    let description = PyDict::new(py);
    description.set_item("measurements", all)?;
    Ok(description)
}

fn bounded<'py>(py: Python<'py>, texts: &DistinctTexts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("count", texts.count)?;
    dict.set_item("first", &texts.first)?;
    Ok(dict)
}
