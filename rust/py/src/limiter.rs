//! `LimiterFile` as Python sees it.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;

use fleetcast_core::model::error::Error;
use fleetcast_limiter::{self as limiter, Client, Limiter, LimiterRules, RetryAfter};
use fleetcast_service::clients;

use crate::gil::{asked, leave};

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct LimiterFile(Arc<clients::LimiterFile>);

impl LimiterFile {
    pub(crate) fn shared(&self) -> Arc<clients::LimiterFile> {
        Arc::clone(&self.0)
    }

    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&Limiter) -> limiter::LimiterResult<R> + Send,
    ) -> PyResult<R> {
        leave(py, || self.0.try_to_ask(question).map_err(engine_error))
    }
}

#[pymethods]
impl LimiterFile {
    #[new]
    #[pyo3(signature = (
        path, on_fault=None, *, requests_per_minute, lockout_failures, lockout_window_seconds,
        lockout_seconds,
    ))]
    fn new(
        path: PathBuf,
        on_fault: Option<Py<PyAny>>,
        requests_per_minute: u32,
        lockout_failures: u32,
        lockout_window_seconds: u32,
        lockout_seconds: u32,
    ) -> Self {
        let rules = LimiterRules {
            requests_per_minute,
            lockout_failures,
            lockout_window_seconds,
            lockout_seconds,
        };
        let on_fault = move |error: &limiter::LimiterError| {
            let Some(call) = &on_fault else { return };
            asked(|py| call.call1(py, (error.to_string(),)));
        };
        Self(Arc::new(clients::LimiterFile::new(path, rules, Arc::new(on_fault))))
    }

    #[pyo3(signature = (address, *, now_ns=None))]
    fn admit(&self, py: Python<'_>, address: &str, now_ns: Option<u64>) -> PyResult<Option<u64>> {
        let wait = self.detached(py, |limiter| limiter.admit(Client::of(address), now_ns))?;
        Ok(wait.map(RetryAfter::get))
    }

    #[pyo3(signature = (address, *, now_ns=None))]
    fn lockout(&self, py: Python<'_>, address: &str, now_ns: Option<u64>) -> PyResult<Option<u64>> {
        let wait = self.detached(py, |limiter| limiter.lockout(Client::of(address), now_ns))?;
        Ok(wait.map(RetryAfter::get))
    }

    #[pyo3(signature = (address, *, now_ns=None))]
    fn record_failure(&self, py: Python<'_>, address: &str, now_ns: Option<u64>) -> PyResult<()> {
        self.detached(py, |limiter| limiter.record_failure(Client::of(address), now_ns))
    }
}

/// Converts an error of the limiter to an error of the engine, so that one table maps both to
/// exceptions.
fn engine_error(error: limiter::LimiterError) -> Error {
    match error {
        limiter::LimiterError::Io { operation, path, source } => {
            Error::io(operation, &path, source)
        }
        limiter::LimiterError::Forked => Error::Forked,
    }
}
