//! Writes an Arrow stream piece by piece.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use fleetcast_arrow::{ArrowArrayStream, ColumnMapping, MeasurementFrom, RowReader};
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::{Acknowledgement, Plane, WriteError};
use fleetcast_core::storage::store::Cursor;
use fleetcast_core::wire::Precision;

use crate::arguments::ingest_ns;
use crate::errors::failure;
use crate::gil::leave;
use crate::results::WriteResult;

/// Pieces of a stream. Each piece is written when the caller asks for it.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct ArrowWrites {
    pub(crate) plane: Arc<Plane>,
    pub(crate) reader: Mutex<RowReader>,
    pub(crate) limits: WriteLimits,
    /// Key of the import. Its position is stored with each piece.
    pub(crate) cursor: Option<[u8; 16]>,
    pub(crate) now_ns: Option<i64>,
}

impl ArrowWrites {
    fn write_piece(&self) -> Result<Option<WriteResult>, WriteError> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ns = ingest_ns(self.now_ns)?;
        let first_row = reader.next_row();
        let written = reader.with_next(|rows| {
            let position = (rows.first_row + rows.row_count) as u64;
            let when = self.cursor.map_or(Acknowledgement::Durable, |key| {
                Acknowledgement::At(Cursor { key, position: position.to_le_bytes().to_vec() })
            });
            self.plane.write_rows(rows, &self.limits, now_ns, when)
        })?;
        let result = |written| WriteResult::of_piece(written, first_row, now_ns);
        Ok(written.transpose()?.map(result).transpose()?)
    }
}

#[pymethods]
impl ArrowWrites {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<WriteResult>> {
        py.check_signals()?;
        leave(py, || Ok(self.write_piece()))?.map_err(|error| failure(py, error))
    }
}

/// Takes the stream of any object that Arrow libraries accept.
#[expect(unsafe_code, reason = "the capsule holds a pointer to a C structure")]
pub(crate) fn stream_of(object: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStream> {
    if !object.hasattr("__arrow_c_stream__")? {
        let kind = object.get_type().qualname()?;
        let message = format!(
            "a {kind} is no table, which has __arrow_c_stream__: make one with polars or pyarrow, \
             or give dicts to encode_records() and write_json()"
        );
        return Err(PyTypeError::new_err(message));
    }
    let capsule = object.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule of this name holds a live stream, by the Arrow `PyCapsule` interface. The
    // stream is moved out, so the capsule has no stream left to release.
    Ok(unsafe { ArrowArrayStream::take(pointer.as_ptr().cast()) })
}

/// Converts a mapping. `_core.pyi` describes the dict.
pub(crate) fn mapping_of(dict: &Bound<'_, PyDict>) -> PyResult<ColumnMapping> {
    const KEYS: [&str; 7] =
        ["time", "time_unit", "measurement", "entity", "tags", "fixed_tags", "fields"];
    for key in dict.keys() {
        let key: String = key.extract()?;
        if !KEYS.contains(&key.as_str()) {
            let known = KEYS.join(", ");
            return Err(PyValueError::new_err(format!("a mapping has no {key:?}, only {known}")));
        }
    }
    let item = |key| dict.get_item(key).map(|found| found.filter(|item| !item.is_none()));
    let text = |key| item(key)?.map(|item| item.extract::<String>()).transpose();
    let needed = |key| PyValueError::new_err(format!("a mapping needs {key:?}"));
    let measurement = item("measurement")?.ok_or_else(|| needed("measurement"))?;
    let measurement = if let Ok(from) = measurement.cast::<PyDict>() {
        let missing = || PyValueError::new_err("measurement is a name or {\"column\": NAME}");
        let column = from.get_item("column")?.ok_or_else(missing)?;
        MeasurementFrom::Column(column.extract()?)
    } else {
        MeasurementFrom::Name(measurement.extract()?)
    };
    let unit_ns = |unit: String| {
        let unknown = || PyValueError::new_err("time_unit is one of s, ms, us, ns");
        Precision::parse(&unit).map(Precision::unit_ns).ok_or_else(unknown)
    };
    let pairs = |key| {
        let Some(item) = item(key)? else { return Ok(None) };
        let pairs = item.cast::<PyDict>()?.iter();
        let pairs = pairs.map(|(key, value)| Ok((key.extract()?, value.extract()?)));
        pairs.collect::<PyResult<Vec<(String, String)>>>().map(Some)
    };
    Ok(ColumnMapping {
        time: text("time")?.ok_or_else(|| needed("time"))?,
        time_unit_ns: text("time_unit")?.map(unit_ns).transpose()?,
        measurement,
        entity: text("entity")?,
        tags: pairs("tags")?.unwrap_or_default(),
        fixed_tags: pairs("fixed_tags")?.unwrap_or_default(),
        fields: pairs("fields")?,
    })
}
