//! The one door for leaving the GIL.

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
