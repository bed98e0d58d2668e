//! Hands columns to Python through the Arrow `PyCapsule` interface.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use fleetcast_arrow::ArrowArrayStream;
use fleetcast_core::plane;
use fleetcast_core::query::Frame;
use fleetcast_core::query::scan::{ScanBatch, ScanSchema, json_lines};

use crate::door::{Held, leave};

/// The schema that a consumer prefers. The interface lets a producer ignore the preference.
type Wish<'w, 'py> = Option<&'w Bound<'py, PyAny>>;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct ArrowStream(Held<ArrowArrayStream>);

impl From<Frame> for ArrowStream {
    fn from(frame: Frame) -> Self {
        Self(Held::new(ArrowArrayStream::new(frame)))
    }
}

#[pymethods]
impl ArrowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Wish<'_, 'py>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        capsule(py, requested_schema, self.0.take())
    }
}

/// Rows of a scan: a single Arrow stream, or batch by batch.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RowStream(Held<plane::RowStream>);

impl From<plane::RowStream> for RowStream {
    fn from(rows: plane::RowStream) -> Self {
        Self(Held::new(rows))
    }
}

#[pymethods]
impl RowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Wish<'_, 'py>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.check_table(py)?;
        capsule(py, requested_schema, self.0.take())
    }

    fn check_table(&self, py: Python<'_>) -> PyResult<()> {
        leave(py, || self.0.lock().as_ref().map_or(Ok(()), |rows| rows.schema().check_table()))
    }

    const fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RowBatch>> {
        leave(py, || {
            let mut stream = self.0.lock();
            let Some(rows) = &mut *stream else { return Ok(None) };
            let Some(batch) = rows.next_batch()? else { return Ok(None) };
            let schema = Arc::clone(rows.schema());
            Ok(Some(RowBatch(Held::new(ScannedRows { schema, batch, given: 0 }))))
        })
    }
}

/// Rows of one measurement.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RowBatch(Held<ScannedRows>);

struct ScannedRows {
    schema: Arc<ScanSchema>,
    batch: ScanBatch,
    /// Rows that `json_lines` has already returned.
    given: usize,
}

impl From<ScannedRows> for ArrowArrayStream {
    fn from(rows: ScannedRows) -> Self {
        Self::from((rows.schema, rows.batch))
    }
}

#[pymethods]
impl RowBatch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Wish<'_, 'py>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let rows = self.0.take();
        leave(py, || rows.as_ref().map_or(Ok(()), |rows| rows.schema.check_table()))?;
        capsule(py, requested_schema, rows)
    }

    fn __len__(&self) -> usize {
        self.0.lock().as_ref().map_or(0, |rows| rows.batch.row_count - rows.given)
    }

    fn json_lines(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        leave(py, || {
            let mut rows = self.0.lock();
            let Some(ScannedRows { schema, batch, given }) = &mut *rows else {
                return Ok(Vec::new());
            };
            let (lines, next) = json_lines(batch, schema, *given);
            *given = next;
            Ok(lines)
        })
    }
}

/// Wraps a stream in a capsule. Returns `ValueError` if the stream was taken before.
fn capsule<'py>(
    py: Python<'py>,
    _wish: Wish<'_, 'py>,
    stream: Option<impl Into<ArrowArrayStream>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let taken = || PyValueError::new_err("the stream was taken before");
    PyCapsule::new_with_value(py, stream.ok_or_else(taken)?.into(), c"arrow_array_stream")
}
