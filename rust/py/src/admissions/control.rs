//! Number of the last change of accounts, which verdicts rest on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

use fleetcast_front::admission::lmdb::{LmdbFile, Span, StoreVersion};

/// Number of the last change that a process knows of, where the accounts are in no file.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct ControlVersion(Arc<AtomicU64>);

#[pymethods]
impl ControlVersion {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    fn put(&self, version: u64) {
        self.0.store(version, Ordering::Release);
    }
}

impl ControlVersion {
    /// The number, for a store to tell its changes.
    pub(crate) fn shared(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0)
    }
}

/// Source of the number.
pub(crate) enum Control {
    /// In the file, which has it with every commit.
    File(Box<LmdbFile>),
    /// Here, as this process noted it last; 0 before that.
    Noted(Arc<AtomicU64>),
}

impl Control {
    /// Greatest age of a verdict. From a file it is short enough that the engine learns in time which
    /// planes are in use, and that a fault in what verdicts are compared with does little; a number
    /// that is noted may be as much older.
    pub(crate) fn lifetime(&self) -> Duration {
        Duration::from_secs(if matches!(self, Self::File(_)) { 10 } else { 1 })
    }

    /// The states of now; `None` where there is none.
    pub(crate) fn span(&self) -> Option<Span> {
        match self {
            Self::File(file) => file.span(),
            Self::Noted(version) => {
                let transaction = version.load(Ordering::Acquire);
                let version =
                    StoreVersion { device: 0, inode: 0, bytes: 0, changed_at: (0, 0), transaction };
                (transaction > 0).then_some(Span::from(version))
            }
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Control {
    type Error = PyErr;

    fn extract(source: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(noted) = source.cast::<ControlVersion>() {
            return Ok(Self::Noted(Arc::clone(&noted.get().0)));
        }
        Ok(Self::File(Box::new(LmdbFile::new(source.extract::<PathBuf>()?))))
    }
}
