//! Serves a worker's requests without the interpreter.

use std::sync::Arc;

use pyo3::prelude::*;

use fleetcast_service::renewed::RenewedValue;
use fleetcast_service::serving;

use super::accounting::open_accounting;
use super::rules::Service;
use crate::gil::asked;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Serving(Arc<serving::RequestServer>);

impl Serving {
    pub(crate) fn shared(&self) -> Arc<serving::RequestServer> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Serving {
    #[new]
    fn new(renew: Py<PyAny>, accounting: &Bound<'_, PyAny>) -> PyResult<Self> {
        let renew = move || {
            let rules = asked(|py| Ok(renew.call0(py)?.extract::<Py<Service>>(py)?))?;
            Some(rules.get().shared())
        };
        let rules = RenewedValue::new(Box::new(renew));
        Ok(Self(Arc::new(serving::RequestServer::new(rules, open_accounting(accounting)?))))
    }
}
