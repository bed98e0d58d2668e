//! `Planes` as Python sees them: every call that needs a plane by its name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::plane;
use fleetcast_core::storage::seal::{self, MasterKey, MasterKeys};
use fleetcast_core::storage::store::{self, DirectoryPlanes, Link};
use fleetcast_service::planes;

use crate::arguments::{self, duration};
#[cfg(feature = "cluster")]
use crate::cluster::Cluster;
use crate::gil::{asked, leave};
use crate::master_keys::MasterKeyArgument;
use crate::plane::Plane;
use crate::results::{Saved, SavedFileParts, Stats, Verified, saved_files};

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Planes {
    planes: Arc<dyn store::Planes>,
    /// `None` if the planes are in a database.
    folder: Option<PathBuf>,
}

impl Planes {
    /// Runs `work` without the GIL.
    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn store::Planes) -> Result<R> + Send,
    ) -> PyResult<R> {
        leave(py, || work(&*self.planes))
    }
}

#[pymethods]
impl Planes {
    #[staticmethod]
    fn in_directory(directory: PathBuf) -> Self {
        Self { planes: Arc::new(DirectoryPlanes::new(&directory)), folder: Some(directory) }
    }

    #[cfg(feature = "cluster")]
    #[staticmethod]
    fn in_cluster(cluster: &Cluster) -> Self {
        Self { planes: cluster.planes(), folder: None }
    }

    fn create(&self, py: Python<'_>, plane: &str, master_key: MasterKeyArgument) -> PyResult<()> {
        let master_key = master_key.keys()?.newest();
        self.detached(py, |planes| plane::Plane::create(planes, plane, &master_key))
    }

    fn open(
        &self,
        py: Python<'_>,
        plane: &str,
        master_key: MasterKeyArgument,
        tenant_key: &str,
    ) -> PyResult<Plane> {
        let keys = master_key.keys()?;
        self.detached(py, |planes| {
            let open = |key: &[u8; 32]| plane::Plane::open(planes, plane, key, tenant_key);
            let opened = keys.open(|| planes.wrapped_key(plane), open)?;
            let file = plane::KeyFile::new(Arc::clone(&self.planes), plane, keys.clone());
            opened.follow_key_file(file);
            Ok(opened)
        })
        .map(Plane::from)
    }

    fn destroy(&self, py: Python<'_>, plane: &str) -> PyResult<()> {
        self.detached(py, |planes| planes.destroy(plane))
    }

    fn counts(&self, py: Python<'_>, plane: &str) -> PyResult<Stats> {
        self.detached(py, |planes| plane::Plane::peek(planes, plane)).map(Stats::from)
    }

    fn verify(
        &self,
        py: Python<'_>,
        plane: &str,
        master_key: MasterKeyArgument,
    ) -> PyResult<Verified> {
        let keys = master_key.keys()?;
        self.detached(py, |planes| {
            plane::Plane::verify(planes, plane, &key_of(planes, plane, &keys))
        })
        .map(Verified::from)
    }

    fn save(
        &self,
        py: Python<'_>,
        plane: &str,
        master_key: MasterKeyArgument,
        backup: &str,
        number: u64,
        before: Vec<SavedFileParts>,
    ) -> PyResult<Option<Saved>> {
        let keys = master_key.keys()?;
        let before = saved_files(before);
        self.detached(py, |planes| {
            let save = |key: &[u8; 32]| {
                plane::Plane::save((planes, plane), key, Path::new(backup), number, &before)
            };
            keys.open(|| planes.wrapped_key(plane), save)
        })
        .map(|saved| saved.map(Saved::from))
    }

    fn bind(&self, py: Python<'_>, plane: &str, master_key: MasterKeyArgument) -> PyResult<bool> {
        let keys = master_key.keys()?;
        self.detached(py, |planes| {
            keys.open(|| planes.wrapped_key(plane), |key| plane::Plane::bind(planes, plane, key))
        })
    }

    fn rewrap(&self, py: Python<'_>, plane: &str, master_key: MasterKeyArgument) -> PyResult<bool> {
        let keys = master_key.keys()?;
        self.detached(py, |planes| plane::Plane::rewrap(planes, plane, &keys))
    }

    fn is_wrapped_by(&self, py: Python<'_>, plane: &str, master_key: &[u8]) -> PyResult<bool> {
        let key = arguments::key_of(master_key)?;
        self.detached(py, |planes| plane::Plane::is_wrapped_by(planes, plane, key))
    }

    #[pyo3(signature = (plane, new_master_key, saved_as, master_key, backup, files, content, *, borrow=false))]
    fn restore(
        &self,
        py: Python<'_>,
        plane: &str,
        new_master_key: MasterKeyArgument,
        saved_as: &str,
        master_key: MasterKeyArgument,
        backup: &str,
        files: Vec<SavedFileParts>,
        content: [u8; 32],
        borrow: bool,
    ) -> PyResult<()> {
        let (master_key, new_master_key) = (master_key.keys()?.newest(), new_master_key.keys()?);
        let files = saved_files(files);
        let link = if borrow { Link::Symbolic } else { Link::Hard };
        self.detached(py, |planes| {
            let backup = Path::new(backup);
            let (new, saved) = ((planes, plane), (saved_as, &*master_key));
            let new_key = new_master_key.newest();
            plane::Plane::restore(new, saved, &new_key, backup, &files, &content, link)
        })
    }
}

/// `service::planes::OpenPlanes` as Python sees it.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct OpenPlanes(Arc<planes::OpenPlanes>);

impl OpenPlanes {
    /// Returns the planes, for callers that need no interpreter.
    pub(crate) fn shared(&self) -> Arc<planes::OpenPlanes> {
        self.0.clone()
    }
}

#[pymethods]
impl OpenPlanes {
    #[new]
    #[pyo3(signature = (planes, master_key, *, open_max, idle_seconds))]
    fn new(
        planes: &Planes,
        master_key: MasterKeyArgument,
        open_max: usize,
        idle_seconds: f64,
    ) -> PyResult<Self> {
        let key = master_key.keys()?;
        let idle = duration(idle_seconds)?;
        let all = planes.planes.clone();
        Ok(Self(Arc::new(match &planes.folder {
            Some(folder) => planes::OpenPlanes::in_folder(all, folder, key, open_max, idle),
            None => planes::OpenPlanes::in_database(all, key, open_max, idle),
        })))
    }

    fn plane(&self, py: Python<'_>, account_id: &str, tenant_key: &str) -> PyResult<Plane> {
        leave(py, || self.0.open(account_id, tenant_key)).map(Plane::from)
    }

    #[pyo3(signature = (account_id, plane=None))]
    fn release(&self, py: Python<'_>, account_id: &str, plane: Option<&Plane>) -> PyResult<()> {
        leave(py, || self.0.release(account_id, plane.map(Plane::shared)))
    }

    fn close_unused(&self, py: Python<'_>, accounts: Option<Py<PyAny>>) -> PyResult<Vec<String>> {
        let known = || {
            let accounts = accounts.as_ref()?;
            asked(|py| accounts.call0(py)?.extract(py)).flatten()
        };
        leave(py, || Ok(texts(&self.0.close_unused(known))))
    }

    fn waiting(&self, py: Python<'_>) -> PyResult<HashMap<String, (Plane, usize)>> {
        let waiting = leave(py, || Ok(self.0.waiting()))?;
        Ok(waiting
            .into_iter()
            .map(|(account, plane, bytes)| (account, (plane.into(), bytes)))
            .collect())
    }

    fn flush(&self, py: Python<'_>, account_id: &str, plane: &Plane) -> PyResult<()> {
        leave(py, || self.0.flush(account_id, plane.shared()))
    }

    fn close(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        leave(py, || Ok(texts(&self.0.close())))
    }
}

/// Returns the key that opens the key file of a plane, or any key for a damaged file.
fn key_of(planes: &dyn store::Planes, plane: &str, keys: &MasterKeys) -> MasterKey {
    let key_file = || planes.wrapped_key(plane);
    let found = keys.open(key_file, |key| {
        seal::unwrap(key, plane, &key_file()?)?;
        Ok(MasterKey::new(*key))
    });
    found.unwrap_or_else(|_| keys.newest())
}

fn texts(errors: &[Error]) -> Vec<String> {
    errors.iter().map(Error::to_string).collect()
}
