//! Calls of the engine without the GIL, the interpreter's lock, and calls back with it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use fleetcast_core::model::error::{Result, catching};

use crate::errors::store_error;

/// Runs `work` without the GIL. A panic of `work` becomes a `StoreError`, like any other fault. The
/// exception that pyo3 would raise is no `Exception`, and would end threads that serve every
/// tenant.
pub(crate) fn leave<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    py.detach(|| catching(work)).map_err(|error| store_error(&error))
}

/// Calls Python from a thread of the engine. If the call raises, reports the exception as
/// unraisable and returns `None`.
pub(crate) fn asked<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
    Python::attach(|py| call(py).map_err(|error| error.write_unraisable(py, None)).ok())
}

/// A value of the engine that a Python object holds until a caller takes it.
pub(crate) struct TakeCell<T>(Mutex<Option<T>>);

impl<T> TakeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(Some(value)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.lock().take()
    }
}
