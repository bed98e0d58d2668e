//! The decision about a request, as the application sees it.

use pyo3::prelude::*;

use fleetcast_service::admission::{self, Grant};

use crate::accounts::Identity;
use crate::errors::not_served;
use crate::plane::Plane;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Decision(pub(crate) admission::Decision);

#[pymethods]
impl Decision {
    #[getter]
    fn address(&self) -> &str {
        &self.0.address
    }

    #[getter]
    fn path(&self) -> Option<&'static str> {
        self.0.route.map(|route| route.path)
    }

    #[getter]
    fn identity(&self) -> Option<Identity> {
        self.0.identity.as_deref().map(Identity::from)
    }

    #[getter]
    fn plane(&self) -> Option<Plane> {
        self.0.plane.clone().map(Plane::from)
    }

    #[getter]
    fn events(&self) -> &[&'static str] {
        &self.0.events
    }

    #[getter]
    fn key_id(&self) -> Option<&str> {
        self.0.key_id.as_deref()
    }

    #[getter]
    fn is_over_share(&self) -> bool {
        self.0.is_over_share
    }

    #[getter]
    fn fault(&self) -> Option<String> {
        self.0.fault.as_ref().map(ToString::to_string)
    }

    fn check(&self, py: Python<'_>) -> PyResult<&'static str> {
        match &self.0.outcome {
            Ok(Grant::Serve) => Ok("serve"),
            Ok(Grant::Options) => Ok("options"),
            Ok(Grant::AwaitBody) => Ok("await body"),
            Err(cause) => Err(not_served(py, cause)),
        }
    }
}
