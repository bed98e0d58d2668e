//! `Limiter` as Python sees it.

use std::path::Path;

use pyo3::prelude::*;

use fleetcast_core::limiter::{self, Client, RetryAfter, Rules};
use fleetcast_core::model::error::Result;

use crate::door::leave;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Limiter(limiter::Limiter);

impl Limiter {
    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&limiter::Limiter) -> Result<R> + Send,
    ) -> PyResult<R> {
        leave(py, || work(&self.0))
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
        leave(py, || limiter::Limiter::open(Path::new(path), rules)).map(Self)
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
