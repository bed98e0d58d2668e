//! `Planes` as Python sees them: all that needs a plane by its name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;

use fleetcast_core::model::error::Result;
use fleetcast_core::plane;
use fleetcast_core::storage::store::{self, Directory, Link};

use crate::arguments::{key_of, saved_files};
use crate::cluster::Cluster;
use crate::door::leave;
use crate::plane::Plane;
use crate::results::{Saved, SavedFile, Stats, Verified};

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Planes(Arc<dyn store::Planes>);

impl Planes {
    /// Runs `work` without the GIL.
    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn store::Planes) -> Result<R> + Send,
    ) -> PyResult<R> {
        leave(py, || work(&*self.0))
    }
}

#[pymethods]
impl Planes {
    #[staticmethod]
    fn in_directory(directory: PathBuf) -> Self {
        Self(Arc::new(Directory::new(directory)))
    }

    #[staticmethod]
    fn in_cluster(cluster: &Cluster) -> Self {
        Self(cluster.planes())
    }

    fn create(&self, py: Python<'_>, plane: &str, master_key: &[u8]) -> PyResult<()> {
        let master_key = key_of(master_key)?;
        self.detached(py, |planes| plane::Plane::create(planes, plane, master_key))
    }

    fn open(
        &self,
        py: Python<'_>,
        plane: &str,
        master_key: &[u8],
        tenant_key: &str,
    ) -> PyResult<Plane> {
        let master_key = key_of(master_key)?;
        self.detached(py, |planes| plane::Plane::open(planes, plane, master_key, tenant_key))
            .map(Plane::from)
    }

    fn destroy(&self, py: Python<'_>, plane: &str) -> PyResult<()> {
        self.detached(py, |planes| planes.destroy(plane))
    }

    fn counts(&self, py: Python<'_>, plane: &str) -> PyResult<Stats> {
        self.detached(py, |planes| plane::Plane::peek(planes, plane)).map(Stats::from)
    }

    fn verify(&self, py: Python<'_>, plane: &str, master_key: &[u8]) -> PyResult<Verified> {
        let master_key = key_of(master_key)?;
        self.detached(py, |planes| plane::Plane::verify(planes, plane, master_key))
            .map(Verified::from)
    }

    fn save(
        &self,
        py: Python<'_>,
        plane: &str,
        master_key: &[u8],
        backup: &str,
        number: u64,
        before: Vec<SavedFile>,
    ) -> PyResult<Option<Saved>> {
        let (master_key, before) = (key_of(master_key)?, saved_files(before));
        self.detached(py, |planes| {
            plane::Plane::save((planes, plane), master_key, Path::new(backup), number, &before)
        })
        .map(|saved| saved.map(Saved::from))
    }

    fn bind(&self, py: Python<'_>, plane: &str, master_key: &[u8]) -> PyResult<bool> {
        let master_key = key_of(master_key)?;
        self.detached(py, |planes| plane::Plane::bind(planes, plane, master_key))
    }

    #[pyo3(signature = (plane, new_master_key, saved_as, master_key, backup, files, content, *, borrow=false))]
    #[expect(clippy::too_many_arguments, reason = "what is restored, from where and to where")]
    fn restore(
        &self,
        py: Python<'_>,
        plane: &str,
        new_master_key: &[u8],
        saved_as: &str,
        master_key: &[u8],
        backup: &str,
        files: Vec<SavedFile>,
        content: [u8; 32],
        borrow: bool,
    ) -> PyResult<()> {
        let (saved, new_master_key) = ((saved_as, key_of(master_key)?), key_of(new_master_key)?);
        let files = saved_files(files);
        let link = if borrow { Link::Symbolic } else { Link::Hard };
        self.detached(py, |planes| {
            let backup = Path::new(backup);
            let new = (planes, plane);
            plane::Plane::restore(new, saved, new_master_key, backup, &files, &content, link)
        })
    }
}
