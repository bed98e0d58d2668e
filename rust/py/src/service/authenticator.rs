//! `Authenticator` as Python sees it.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use fleetcast_service::accounts::{self, Rejection};

use crate::accounts::Identity;
use crate::errors::{InvalidKey, not_served};
use crate::records::Records;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Authenticator(Arc<accounts::Authenticator>);

impl Authenticator {
    pub(crate) fn shared(&self) -> Arc<accounts::Authenticator> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Authenticator {
    #[new]
    fn new(records: &Records, pepper: &str, environment: &str) -> Self {
        Self(Arc::new(accounts::Authenticator::of_store(records.shared(), pepper, environment)))
    }

    #[pyo3(signature = (key, *, now))]
    fn identify(&self, py: Python<'_>, key: Option<&str>, now: i64) -> PyResult<Identity> {
        match py.detach(|| self.0.identify(key, now)) {
            Ok(identity) => Ok(Identity::from(&*identity)),
            Err(Rejection::InvalidKey) => {
                Err(InvalidKey::new_err(("auth_failed", PyDict::new(py).unbind())))
            }
            Err(rejection) => Err(not_served(py, &rejection.into())),
        }
    }
}
