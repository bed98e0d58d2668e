//! `Limiter` as Python sees it.

use std::path::Path;

use pyo3::prelude::*;

use fleetcast_core::model::error::Error;
use fleetcast_limiter::{self as shared, Client, RetryAfter, Rules};

use crate::door::leave;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Limiter(shared::Limiter);

impl Limiter {
    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&shared::Limiter) -> shared::Result<R> + Send,
    ) -> PyResult<R> {
        leave(py, || work(&self.0).map_err(engine_error))
    }
}

#[pymethods]
impl Limiter {
    #[staticmethod]
    #[pyo3(signature = (
        path,
        *,
        requests_per_minute,
        lockout_failures,
        lockout_window_seconds,
        lockout_seconds,
    ))]
    fn open(
        py: Python<'_>,
        path: &str,
        requests_per_minute: u32,
        lockout_failures: u32,
        lockout_window_seconds: u32,
        lockout_seconds: u32,
    ) -> PyResult<Self> {
        let rules = Rules {
            requests_per_minute,
            lockout_failures,
            lockout_window_seconds,
            lockout_seconds,
        };
        leave(py, || {
            let limiter = shared::Limiter::open(Path::new(path), rules).map_err(engine_error)?;
            Ok(Self(limiter))
        })
    }

    #[pyo3(signature = (address, *, now_ns=None))]
    fn admit(&self, py: Python<'_>, address: &str, now_ns: Option<u64>) -> PyResult<Option<u64>> {
        let client = Client::of(address);
        let wait = self.detached(py, |limiter| limiter.admit(client, now_ns))?;
        Ok(wait.map(RetryAfter::get))
    }

    #[pyo3(signature = (address, *, now_ns=None))]
    fn lockout(&self, py: Python<'_>, address: &str, now_ns: Option<u64>) -> PyResult<Option<u64>> {
        let client = Client::of(address);
        let wait = self.detached(py, |limiter| limiter.lockout(client, now_ns))?;
        Ok(wait.map(RetryAfter::get))
    }

    #[pyo3(signature = (address, *, now_ns=None))]
    fn record_failure(&self, py: Python<'_>, address: &str, now_ns: Option<u64>) -> PyResult<()> {
        let client = Client::of(address);
        self.detached(py, |limiter| limiter.record_failure(client, now_ns))
    }

    #[getter]
    fn clients_max(&self) -> u64 {
        self.0.clients_max()
    }
}

/// The error of the engine for one of the limiter, so that one table makes exceptions of both.
fn engine_error(error: shared::Error) -> Error {
    match error {
        shared::Error::Io { operation, path, source } => Error::io(operation, &path, source),
        shared::Error::Forked => Error::Forked,
    }
}
