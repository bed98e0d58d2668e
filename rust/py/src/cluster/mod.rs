//! The backend of many machines: a database, and the records in it.

#[cfg(not(feature = "cluster"))]
mod absent;
#[cfg(not(feature = "cluster"))]
use absent as backend;
#[cfg(feature = "cluster")]
use fleetcast_cluster as backend;

mod records;

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub(crate) use self::records::{Records, RecordsTransaction};
use crate::door::leave;
use backend::{Durability, Installed, Settings};

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Cluster {
    inner: Arc<backend::Cluster>,
}

#[pymethods]
impl Cluster {
    #[new]
    #[pyo3(signature = (database, *, connections = 4, durability = "quorum"))]
    fn new(
        py: Python<'_>,
        database: String,
        connections: usize,
        durability: &str,
    ) -> PyResult<Self> {
        let durability = match durability {
            "quorum" => Durability::Quorum,
            "managed" => Durability::Managed,
            _ => return Err(PyValueError::new_err("durability is quorum or managed")),
        };
        let settings = Settings { database, connections, durability };
        let inner = leave(py, || backend::Cluster::new(settings))?;
        Ok(Self { inner: Arc::new(inner) })
    }

    fn install(
        &self,
        py: Python<'_>,
        environment: &str,
        master_key_check: &[u8],
    ) -> PyResult<bool> {
        let installed = leave(py, || self.inner.install(environment, master_key_check))?;
        Ok(installed == Installed::New)
    }

    fn database_now_us(&self, py: Python<'_>) -> PyResult<i64> {
        leave(py, || self.inner.database_now_us())
    }

    fn check(&self, py: Python<'_>, environment: &str, master_key_check: &[u8]) -> PyResult<()> {
        leave(py, || self.inner.check(environment, master_key_check))
    }
}
