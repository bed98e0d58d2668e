//! Columns handed to Python as the Arrow `PyCapsule` interface asks.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use fleetcast_arrow::ArrowArrayStream;
use fleetcast_core::plane;
use fleetcast_core::query::Frame;
use fleetcast_core::query::scan::{ScanBatch, ScanSchema, json_lines};

use crate::door::leave;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct ArrowStream {
    stream: Mutex<Option<ArrowArrayStream>>,
}

impl From<Frame> for ArrowStream {
    fn from(frame: Frame) -> Self {
        Self { stream: Mutex::new(Some(ArrowArrayStream::new(frame))) }
    }
}

#[pymethods]
impl ArrowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore the wish; the consumer converts.
        drop(requested_schema);
        capsule(py, taken(&self.stream)?)
    }
}

/// Rows of a scan: whole as an Arrow stream, or batch by batch.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RowStream {
    stream: Mutex<Option<plane::RowStream>>,
}

impl From<plane::RowStream> for RowStream {
    fn from(rows: plane::RowStream) -> Self {
        Self { stream: Mutex::new(Some(rows)) }
    }
}

#[pymethods]
impl RowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        self.check_table(py)?;
        capsule(py, ArrowArrayStream::from(taken(&self.stream)?))
    }

    fn check_table(&self, py: Python<'_>) -> PyResult<()> {
        leave(py, || {
            let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            stream.as_ref().map_or(Ok(()), |rows| rows.schema().check_table())
        })
    }

    const fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RowBatch>> {
        let batch = leave(py, || {
            let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(rows) = &mut *stream else { return Ok(None) };
            let batch = rows.next_batch()?;
            Ok(batch.map(|batch| ScannedRows {
                schema: Arc::clone(rows.schema()),
                batch,
                given: 0,
            }))
        })?;
        Ok(batch.map(|batch| RowBatch { rows: Mutex::new(Some(batch)) }))
    }
}

/// Rows of one measurement.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RowBatch {
    rows: Mutex<Option<ScannedRows>>,
}

struct ScannedRows {
    schema: Arc<ScanSchema>,
    batch: ScanBatch,
    /// Rows that became lines.
    given: usize,
}

#[pymethods]
impl RowBatch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let ScannedRows { schema, batch, .. } = taken(&self.rows)?;
        leave(py, || schema.check_table())?;
        capsule(py, ArrowArrayStream::from((schema, batch)))
    }

    fn __len__(&self) -> usize {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.as_ref().map_or(0, |rows| rows.batch.row_count - rows.given)
    }

    fn json_lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let lines = leave(py, || {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(ScannedRows { schema, batch, given }) = &mut *rows else {
                return Ok(Vec::new());
            };
            let (lines, next) = json_lines(batch, schema, *given);
            *given = next;
            Ok(lines)
        })?;
        Ok(PyBytes::new(py, &lines))
    }
}

/// Content of `stream`, given once.
fn taken<T>(stream: &Mutex<Option<T>>) -> PyResult<T> {
    let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
    stream.ok_or_else(|| PyValueError::new_err("the stream was taken before"))
}

fn capsule(py: Python<'_>, stream: ArrowArrayStream) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}
