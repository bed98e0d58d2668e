//! A frame handed to Python as the Arrow `PyCapsule` interface asks.

use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use fleetcast_arrow::ArrowArrayStream;
use fleetcast_core::query::Frame;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct ArrowStream {
    frame: Mutex<Option<Frame>>,
}

impl From<Frame> for ArrowStream {
    fn from(frame: Frame) -> Self {
        Self { frame: Mutex::new(Some(frame)) }
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
        let frame = self.frame.lock().ok().and_then(|mut frame| frame.take());
        let frame = frame.ok_or_else(|| PyValueError::new_err("the stream was taken before"))?;
        PyCapsule::new_with_value(py, ArrowArrayStream::new(frame), c"arrow_array_stream")
    }
}
