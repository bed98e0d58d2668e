//! Serves a worker's requests without the interpreter.

use std::sync::Arc;

use pyo3::prelude::*;

use fleetcast_service::renewed::Renewed;
use fleetcast_service::serving;

use super::books::open_books;
use super::rules::Service;
use crate::door::asked;

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
    fn new(renew: Py<PyAny>, books: &Bound<'_, PyAny>) -> PyResult<Self> {
        let renew = move || {
            let rules = asked(|py| Ok(renew.call0(py)?.extract::<Py<Service>>(py)?))?;
            Some(rules.get().shared())
        };
        let rules = Renewed::new(Box::new(renew));
        Ok(Self(Arc::new(serving::Serving::new(rules, open_books(books)?))))
    }
}
