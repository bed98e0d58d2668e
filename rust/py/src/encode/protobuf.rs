//! Encodes records as fields of a `WriteRequest`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyMapping, PyString};

use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::model::time::SECOND_NS;
use fleetcast_core::wire::{self, FieldValue, RecordEncoder};
use fleetcast_docstrings::documented;

use super::times::time_ns;

#[documented]
#[pyfunction]
pub(crate) fn encode_protobuf<'py>(
    records: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let mut encoder = RecordEncoder::default();
    let mut out = Vec::new();
    let encoded = records.try_iter()?.map(|record| {
        encode(&mut encoder, &record?)?;
        out.clear();
        encoder.end(&mut out);
        Ok(PyBytes::new(records.py(), &out))
    });
    encoded.collect()
}

#[pyfunction]
#[pyo3(signature = (request, *, tags_max, fields_max))]
pub(crate) fn is_acceptable(request: &[u8], tags_max: usize, fields_max: usize) -> bool {
    let limits = WriteLimits { tags_max, fields_max, ..WriteLimits::default() };
    wire::is_acceptable(request, &limits)
}

fn encode(encoder: &mut RecordEncoder, record: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = record.py();
    let measurement = record.get_item(intern!(py, "measurement"))?;
    let time_ns = time_ns(&record.get_item(intern!(py, "time"))?)?;
    let second_ns = i128::from(SECOND_NS);
    let seconds = i64::try_from(time_ns.div_euclid(second_ns))
        .map_err(|_| PyValueError::new_err("the time is out of range"))?;
    let nanos = u32::try_from(time_ns.rem_euclid(second_ns)).unwrap_or_default();
    encoder.begin(measurement.cast::<PyString>()?.to_str()?, seconds, nanos);
    each(record, intern!(py, "tags"), |key, value| {
        encoder.tag(key, value.cast::<PyString>()?.to_str()?);
        Ok(())
    })?;
    each(record, intern!(py, "fields"), |name, value| field(encoder, name, value))
}

/// Gives each item of the mapping `key` in `record` to `take`. Does no work if the key is missing.
fn each<'py>(
    record: &Bound<'py, PyAny>,
    key: &Bound<'py, PyString>,
    mut take: impl FnMut(&str, &Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    let items = match record.cast_exact::<PyDict>() {
        Ok(record) => record.get_item(key)?,
        Err(_) => Some(record.call_method1("get", (key, PyDict::new(record.py())))?),
    };
    let Some(items) = items else { return Ok(()) };
    if let Ok(items) = items.cast_exact::<PyDict>() {
        for (key, value) in items {
            take(key.cast::<PyString>()?.to_str()?, &value)?;
        }
        return Ok(());
    }
    for item in items.cast::<PyMapping>()?.items()? {
        let (key, value) = item.extract::<(Bound<'_, PyString>, Bound<'_, PyAny>)>()?;
        take(key.to_str()?, &value)?;
    }
    Ok(())
}

fn field(encoder: &mut RecordEncoder, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let value = if let Ok(value) = value.cast::<PyFloat>() {
        FieldValue::Number(value.value())
    } else if let Ok(text) = value.cast::<PyString>() {
        FieldValue::Text(text.to_str()?)
    } else if let Ok(value) = value.cast::<PyBool>() {
        FieldValue::Bool(value.is_true())
    } else if value.is_instance_of::<PyInt>() {
        // A double holds `i64::MIN` exactly.
        match value.extract::<i64>() {
            Ok(value) if value > i64::MIN => FieldValue::Int(value),
            _ => FieldValue::Number(value.extract()?),
        }
    } else {
        let kind = value.get_type().qualname()?;
        let message = format!("a {kind} cannot be written as telemetry");
        return Err(PyTypeError::new_err(message));
    };
    encoder.field(name, value);
    Ok(())
}
