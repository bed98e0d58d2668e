//! Requests of a worker that are served without the interpreter.

use std::sync::Arc;

use pyo3::prelude::*;

use fleetcast_service::renewed::Renewed;
use fleetcast_service::serving;

use super::books::{Books, asked};
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
    fn new(renew: Py<PyAny>, books: Books) -> PyResult<Self> {
        let renew = move || {
            let rules = asked(|py| Ok(renew.call0(py)?.extract::<Py<Service>>(py)?))?;
            Some(rules.get().shared())
        };
        let rules = Renewed::new(Box::new(renew));
        Ok(Self(Arc::new(serving::Serving::new(rules, books.open()?))))
    }
}
