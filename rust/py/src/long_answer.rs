//! Answers that are made as their clients take them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use fleetcast_core::model::chunks::LongPieces;
use fleetcast_service as service;

use crate::pieces::views;

/// A long answer as Python sees it: an iterator, or something to hand over to the front.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct LongAnswer(Mutex<Option<service::LongAnswer>>);

impl LongAnswer {
    pub(crate) fn new(pieces: Box<dyn LongPieces>) -> Self {
        Self(Mutex::new(Some(service::LongAnswer::new(pieces))))
    }

    /// Takes it out, so that nothing is left here.
    pub(crate) fn take(&self) -> Option<service::LongAnswer> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<service::LongAnswer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl LongAnswer {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(mut answer) = self.take() else { return Ok(None) };
        let Some(piece) = py.detach(|| answer.next_piece()) else { return Ok(None) };
        *self.lock() = Some(answer);
        Ok(views(py, vec![piece])?.pop())
    }

    #[pyo3(signature = (call, /))]
    fn when_over(&self, call: Py<PyAny>) {
        let called = move |bytes: u64| {
            Python::attach(|py| {
                if let Err(error) = call.call1(py, (bytes,)) {
                    error.write_unraisable(py, None);
                }
            });
        };
        if let Some(answer) = &mut *self.lock() {
            answer.when_over(Box::new(called));
        }
    }
}
