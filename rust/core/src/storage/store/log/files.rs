//! The open files of a log in this process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::file::{self, LogFile};
use crate::model::error::Result;

/// Files by position. A file is opened when it is needed.
pub(super) struct LogFiles {
    pub(super) directory: PathBuf,
    pub(super) log: u64,
    open: Mutex<BTreeMap<u64, Arc<LogFile>>>,
}

impl LogFiles {
    pub(super) fn of(directory: PathBuf, log: u64) -> Self {
        Self { directory, log, open: Mutex::default() }
    }

    /// Returns the file that begins at `base`.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Stale`] if the file was removed, and the errors of the
    /// machine.
    pub(super) fn get(&self, base: u64) -> Result<Arc<LogFile>> {
        let mut open = self.open();
        if let Some(file) = open.get(&base) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(LogFile::open(&self.directory, self.log, base)?);
        open.insert(base, Arc::clone(&file));
        Ok(file)
    }

    pub(super) fn add(&self, file: LogFile) -> Arc<LogFile> {
        let file = Arc::new(file);
        self.keep(&file);
        file
    }

    /// Adds a file that is already open.
    pub(super) fn keep(&self, file: &Arc<LogFile>) {
        self.open().insert(file.base, Arc::clone(file));
    }

    /// Returns the open file that has `position`.
    pub(super) fn at(&self, position: u64) -> Option<Arc<LogFile>> {
        self.open().range(..=position).next_back().map(|(_, file)| Arc::clone(file))
    }

    /// Returns the positions of all files of the log, ascending.
    ///
    /// # Errors
    /// Returns the errors of the machine.
    pub(super) fn bases(&self) -> Result<Vec<u64>> {
        Ok(file::list(&self.directory)?.into_iter().map(|(base, _)| base).collect())
    }

    /// Closes all files before the file that has `position`. A reader of a file keeps it open until
    /// the read ends.
    pub(super) fn close_before(&self, position: u64) {
        let mut open = self.open();
        if let Some((&first, _)) = open.range(..=position).next_back() {
            *open = open.split_off(&first);
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<LogFile>>> {
        // The map is complete before any code under the lock can panic.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
