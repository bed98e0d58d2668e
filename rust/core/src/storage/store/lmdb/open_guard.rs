//! The stores that are open in this process. LMDB must not have a file open twice in a process.
//!
//! When a process closes a descriptor of a file, the system drops all locks of the process on the
//! file. So closing a second environment would drop the locks of the first environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::error::{Error, Result};

/// Longest wait of an opening for calls in progress on the same store, which was closed before.
const CLOSING_MAX: Duration = Duration::from_secs(2);

type OpenPaths = BTreeMap<PathBuf, Arc<AtomicBool>>;

static OPEN_PATHS: Mutex<OpenPaths> = Mutex::new(BTreeMap::new());
static GIVEN_UP: Condvar = Condvar::new();

/// The right to have a file open. Dropping it gives up the right.
pub(in crate::storage) struct OpenGuard {
    path: PathBuf,
    is_closed: Arc<AtomicBool>,
}

impl OpenGuard {
    /// Takes `path`, a file in a directory that exists. If the file was closed while calls were in
    /// progress, waits a short time for these calls.
    ///
    /// # Errors
    /// Returns [`Error::Database`] if this process has the file open, and [`Error::Io`] if the
    /// directory cannot be found.
    pub(in crate::storage) fn on(path: &Path) -> Result<Self> {
        let refused = |message: &str| {
            let message = format!("{} {message} in this process", path.display());
            Error::Database { what: "open the store", message }
        };
        let (directory, name) = path.parent().zip(path.file_name()).unwrap_or((path, "".as_ref()));
        let directory = directory.canonicalize();
        let path = directory.map_err(|error| Error::io("find", path, error))?.join(name);
        let is_closing = |open_paths: &mut OpenPaths| {
            open_paths.get(&path).is_some_and(|is_closed| is_closed.load(Ordering::Acquire))
        };
        let waited = GIVEN_UP.wait_timeout_while(open_paths(), CLOSING_MAX, is_closing);
        let (mut open_paths, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if open_paths.contains_key(&path) {
            let closing = timeout.timed_out();
            return Err(refused(if closing { "is still being closed" } else { "is open already" }));
        }
        let is_closed = Arc::new(AtomicBool::new(false));
        open_paths.insert(path.clone(), Arc::clone(&is_closed));
        Ok(Self { path, is_closed })
    }

    /// Announces that the file will be closed soon.
    pub(in crate::storage) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    pub(in crate::storage) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        open_paths().remove(&self.path);
        GIVEN_UP.notify_all();
    }
}

fn open_paths() -> MutexGuard<'static, OpenPaths> {
    OPEN_PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}
