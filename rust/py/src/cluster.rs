//! The backend for several machines, which keeps its state in a database.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::gil::leave;
use fleetcast_core::storage::records::RecordStore;
use fleetcast_core::storage::store;

use fleetcast_cluster::{self as backend, ClusterPlanes, Durability, InstallOutcome, Settings};

/// Version, standbys that a commit waits for, standbys that stream, bytes, microseconds since 1970,
/// sessions and their bound, if the collation is the one that the database was made with, and hours
/// of the log.
type Answers = (String, String, i64, i64, i64, (i64, i64), bool, i64);

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Cluster {
    inner: Arc<backend::Cluster>,
}

impl Cluster {
    /// The planes of the installation.
    pub(crate) fn planes(&self) -> Arc<dyn store::Planes> {
        Arc::new(ClusterPlanes::new(Arc::clone(&self.inner)))
    }

    /// Returns the records of the store `name`, which are read and written in the database.
    pub(crate) fn records(&self, name: &str) -> Arc<dyn RecordStore> {
        Arc::new(backend::ClusterRecords::new(Arc::clone(&self.inner), name))
    }

    /// Returns the same records, read from a copy in the memory of this process.
    pub(crate) fn replica(&self, name: &str, follows: bool) -> Arc<dyn RecordStore> {
        Arc::new(backend::Replica::new(Arc::clone(&self.inner), name, follows))
    }
}

#[pymethods]
impl Cluster {
    #[new]
    #[pyo3(signature = (
        database, *, objects = None, cache = None, cache_bytes = 10_737_418_240, connections = 4,
        durability = "quorum"
    ))]
    fn new(
        py: Python<'_>,
        database: String,
        objects: Option<String>,
        cache: Option<PathBuf>,
        cache_bytes: u64,
        connections: usize,
        durability: &str,
    ) -> PyResult<Self> {
        let durability = match durability {
            "quorum" => Durability::Quorum,
            "managed" => Durability::Managed,
            _ => return Err(PyValueError::new_err("durability is quorum or managed")),
        };
        let settings = Settings {
            database,
            connections,
            durability,
            objects,
            cache: cache.map(|folder| (folder, cache_bytes)),
        };
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
        Ok(installed == InstallOutcome::New)
    }

    fn database_now_us(&self, py: Python<'_>) -> PyResult<i64> {
        leave(py, || self.inner.database_now_us())
    }

    fn beat(
        &self,
        py: Python<'_>,
        node: &str,
        place: &str,
        name: &str,
        version: &str,
    ) -> PyResult<bool> {
        leave(py, || self.inner.beat(node, place, name, version))
    }

    fn look(&self, py: Python<'_>, node: &str) -> PyResult<(i64, Option<String>)> {
        leave(py, || self.inner.look(node))
    }

    fn probe_writes(&self, py: Python<'_>, node: &str) -> PyResult<()> {
        leave(py, || self.inner.probe_writes(node))
    }

    fn nodes(&self, py: Python<'_>) -> PyResult<Vec<(String, String, String, f64)>> {
        let nodes = leave(py, || self.inner.nodes())?;
        let answers = |node: backend::Node| (node.id, node.name, node.version, node.silent_seconds);
        Ok(nodes.into_iter().map(answers).collect())
    }

    fn permissions(&self, py: Python<'_>) -> PyResult<(bool, bool, bool)> {
        let found = leave(py, || self.inner.permissions())?;
        Ok((found.makes_tables, found.owns_tables, found.sees_replication))
    }

    fn probe_objects(&self, py: Python<'_>) -> PyResult<bool> {
        leave(py, || self.inner.probe_objects())
    }

    fn facts(&self, py: Python<'_>) -> PyResult<Option<Answers>> {
        let facts = leave(py, || self.inner.facts())?;
        let answers = |facts: backend::PrimaryFacts| {
            let backend::PrimaryFacts { version, standbys_wanted, standbys, bytes, now_us, .. } =
                facts;
            let (sessions, keeps, hours) = (facts.sessions, facts.keeps_collation, facts.log_hours);
            (version, standbys_wanted, standbys, bytes, now_us, sessions, keeps, hours)
        };
        Ok(facts.map(answers))
    }

    fn servers(&self, py: Python<'_>) -> PyResult<Vec<(String, Option<u32>)>> {
        leave(py, || self.inner.servers())
    }

    fn plane_states(&self, py: Python<'_>) -> PyResult<HashMap<String, backend::PlaneRevision>> {
        Ok(leave(py, || self.inner.plane_states())?.into_iter().collect())
    }

    fn damaged(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        leave(py, || self.inner.damaged())
    }

    fn reach_objects(&self, py: Python<'_>) -> PyResult<()> {
        leave(py, || self.inner.reach_objects())
    }

    #[pyo3(signature = (*, keep_seconds = 86_400))]
    fn sweep(&self, py: Python<'_>, keep_seconds: u64) -> PyResult<(u32, u32, Vec<String>)> {
        let swept = leave(py, || self.inner.sweep(Duration::from_secs(keep_seconds)))?;
        Ok((swept.hours, swept.objects, swept.damaged))
    }

    fn check(
        &self,
        py: Python<'_>,
        environment: &str,
        master_key_checks: Vec<PyBackedBytes>,
    ) -> PyResult<()> {
        leave(py, || self.inner.check(environment, &master_key_checks))
    }

    fn handover<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let found = leave(py, || self.inner.handover())?;
        Ok(found.map(|handover| PyBytes::new(py, &handover)))
    }

    fn begin_handover(&self, py: Python<'_>, handover: &[u8], old_check: &[u8]) -> PyResult<bool> {
        leave(py, || self.inner.begin_handover(handover, old_check))
    }

    fn nodes_behind(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        leave(py, || self.inner.nodes_behind())
    }

    fn settle_handover(
        &self,
        py: Python<'_>,
        node: &str,
        new_check: &[u8],
    ) -> PyResult<Vec<String>> {
        leave(py, || self.inner.settle_handover(node, new_check))
    }
}
