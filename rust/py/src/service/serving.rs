//! Requests of a worker that are served without the interpreter.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use pyo3::prelude::*;

use fleetcast_service::books::{Books, Counters};
use fleetcast_service::serving;

use super::books::PyIndexes;
use super::rules::Service;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Serving(Arc<serving::Serving>);

impl Serving {
    pub(crate) fn shared(&self) -> Arc<serving::Serving> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Serving {
    #[new]
    #[pyo3(signature = (
        renew, *, process, counters, counters_bytes, bounds_seconds, requests, writes, answered,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    #[expect(unsafe_code, reason = "descriptors are numbers in Python")]
    fn new(
        renew: Py<PyAny>,
        process: &str,
        counters: i32,
        counters_bytes: usize,
        bounds_seconds: Vec<f64>,
        requests: Py<PyAny>,
        writes: Py<PyAny>,
        answered: usize,
    ) -> PyResult<Self> {
        // SAFETY: it is borrowed for one call, which fails if it is not open.
        let memory = unsafe { BorrowedFd::borrow_raw(counters) };
        let counters = Counters::map(memory, counters_bytes)?;
        let indexes =
            PyIndexes { of_requests: requests, of_writes: writes, bounds: bounds_seconds.into() };
        let books = Arc::new(Books::new(counters, Box::new(indexes), answered, process));
        let renew = move || {
            Python::attach(|py| {
                let rules = renew.call0(py).and_then(|rules| Ok(rules.extract::<Py<Service>>(py)?));
                let rules = rules.map_err(|error| error.write_unraisable(py, None)).ok()?;
                Some(rules.get().shared())
            })
        };
        Ok(Self(Arc::new(serving::Serving::new(Box::new(renew), books))))
    }
}
