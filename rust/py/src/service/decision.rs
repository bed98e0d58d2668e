//! The decision about a request, as the application learns it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use fleetcast_service::admission::{self, Grant};

use super::context::raised;
use crate::accounts::Identity;
use crate::plane::Plane;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Decision(Mutex<admission::Decision>);

impl Decision {
    pub(crate) fn new(decision: admission::Decision) -> Self {
        Self(Mutex::new(decision))
    }

    fn lock(&self) -> MutexGuard<'_, admission::Decision> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Decision {
    #[getter]
    fn address(&self) -> String {
        self.lock().address.clone()
    }

    #[getter]
    fn path(&self) -> Option<&'static str> {
        self.lock().route.map(|route| route.path)
    }

    #[getter]
    fn identity(&self) -> Option<Identity> {
        self.lock().identity.as_deref().map(Identity::from)
    }

    #[getter]
    fn plane(&self) -> Option<Plane> {
        self.lock().plane.clone().map(Plane::from)
    }

    #[getter]
    fn events(&self) -> Vec<&'static str> {
        self.lock().events.clone()
    }

    #[getter]
    fn key_id(&self) -> Option<String> {
        self.lock().key_id.clone()
    }

    #[getter]
    fn is_over_share(&self) -> bool {
        self.lock().is_over_share
    }

    #[getter]
    fn fault(&self) -> Option<String> {
        self.lock().fault.as_ref().map(ToString::to_string)
    }

    fn check(&self, py: Python<'_>) -> PyResult<&'static str> {
        match &self.lock().outcome {
            Ok(Grant::Serve) => Ok("serve"),
            Ok(Grant::Options) => Ok("options"),
            Ok(Grant::AwaitBody) => Ok("await body"),
            Err(cause) => Err(raised(py, cause)),
        }
    }
}
