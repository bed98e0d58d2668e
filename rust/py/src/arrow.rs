//! Columns handed to Python as the Arrow `PyCapsule` interface asks.

use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use fleetcast_arrow::ArrowArrayStream;
use fleetcast_core::plane::RowStream;
use fleetcast_core::query::Frame;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct ArrowStream {
    stream: Mutex<Option<ArrowArrayStream>>,
}

impl From<Frame> for ArrowStream {
    fn from(frame: Frame) -> Self {
        Self { stream: Mutex::new(Some(ArrowArrayStream::new(frame))) }
    }
}

impl From<RowStream> for ArrowStream {
    fn from(rows: RowStream) -> Self {
        Self { stream: Mutex::new(Some(rows.into())) }
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
        let stream = self.stream.lock().ok().and_then(|mut stream| stream.take());
        let stream = stream.ok_or_else(|| PyValueError::new_err("the stream was taken before"))?;
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
