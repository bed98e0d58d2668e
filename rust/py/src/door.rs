//! The one door between the interpreter and the engine, in both directions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use fleetcast_core::model::error::{Result, catching};

use crate::errors::store_error;

/// Runs `work` without the GIL. A panic in there is a `StoreError` like any other fault: what pyo3
/// would raise is no `Exception`, and ends threads that serve every tenant.
pub(crate) fn leave<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    py.detach(|| catching(work)).map_err(|error| store_error(&error))
}

/// The result of a call of Python by a thread of the engine; a fault is shown, and there is none.
pub(crate) fn asked<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
    Python::attach(|py| call(py).map_err(|error| error.write_unraisable(py, None)).ok())
}

/// A value of the engine that objects of Python hold until it is taken.
pub(crate) struct Held<T>(Mutex<Option<T>>);

impl<T> Held<T> {
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
