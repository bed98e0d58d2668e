//! The open log of one plane.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::file::{self, DIRECTORY, LogFile};
use super::files::LogFiles;
use super::index::LogIndex;
use super::marks::{self, Marks};
use super::recovery::{self, CompactedLog, LogEnd};
use super::shared::{self, LOCK_FILE, MappedFile, ends};
use super::tail::Tail;
use super::writer::LogWriter;
use crate::model::error::{Error, Result};
use crate::storage::store::byte_locks::{ByteLocks, locked};
use crate::storage::store::committer::Committer;
use crate::storage::store::entries::NewBlock;
use crate::storage::store::gathering::Patience;

/// The log of one plane. Several processes may have it open at the same time, each process once.
pub(in crate::storage::store) struct Log {
    pub(super) files: LogFiles,
    pub(super) shared: Arc<MappedFile>,
    pub(super) marks: Marks,
    pub(super) writer: Mutex<LogWriter>,
    pub(super) index: Mutex<LogIndex>,
    /// Batches that wait for their write. Each gets the end of the frame that has it.
    pub(super) appends: Committer<Vec<NewBlock>, u64>,
    /// Positions that threads of this process wait for to be durable.
    pub(super) syncs: Committer<u64>,
    pub(super) patience: Patience,
    /// Number of failed syncs when the log was opened. If the number grows, this handle can promise
    /// no more writes.
    pub(super) failures: u64,
    pub(super) is_poisoned: AtomicBool,
    pub(super) plane: PathBuf,
    /// The lock is held while the log is open. The field is last, so the file is closed last.
    _lock_file: File,
}

/// The right to open the log of a plane. If the process is alone, it may also make the log.
pub(in crate::storage::store) struct OpenPermit {
    plane: PathBuf,
    lock_file: File,
    pub(in crate::storage::store) shared: Arc<MappedFile>,
    pub(in crate::storage::store) is_alone: bool,
}

impl OpenPermit {
    /// Waits until no other process is opening the log of `plane` alone.
    ///
    /// # Errors
    /// Returns the errors of the machine.
    pub(in crate::storage::store) fn begin(plane: &Path) -> Result<Self> {
        let path = plane.join(LOCK_FILE);
        let lock_file = shared::open_file(&path)?;
        let is_alone = locked(plane, marks::enter(&lock_file))?;
        let shared = Arc::new(MappedFile::map(&lock_file, &path)?);
        Ok(Self { plane: plane.to_owned(), lock_file, shared, is_alone })
    }

    /// Makes an empty log, which is durable when this returns. The caller is alone. Files that an
    /// earlier attempt left were never used.
    ///
    /// # Errors
    /// Returns the errors of the machine.
    pub(in crate::storage::store) fn create(&self, log: u64) -> Result<()> {
        let directory = self.plane.join(DIRECTORY);
        file::make_directory(&directory)?;
        LogFile::create(&directory, log, &Tail::default(), || ()).map(drop)
    }

    /// Opens the log with the id `log`.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the log is damaged, and the errors of the machine.
    pub(in crate::storage::store) fn finish(
        self,
        log: u64,
        taken: CompactedLog,
        locks: &Arc<ByteLocks>,
    ) -> Result<Log> {
        let files = LogFiles::of(self.plane.join(DIRECTORY), log);
        let shared = self.shared;
        if self.is_alone {
            let LogEnd { tail, last, live, .. } =
                recovery::recover(&files, taken, shared.witnessed(log))?;
            shared.begin(log, ends(live, last, &tail))?;
            locked(&self.plane, marks::share(&self.lock_file))?;
        } else {
            shared.join(log)?;
        }
        let opened = Log {
            writer: Mutex::default(),
            index: Mutex::new(LogIndex::new(&files)?),
            failures: shared.failures(),
            files,
            shared,
            marks: Marks::on(Arc::clone(locks)),
            appends: Committer::default(),
            syncs: Committer::default(),
            patience: Patience::default(),
            is_poisoned: AtomicBool::new(false),
            plane: self.plane,
            _lock_file: self.lock_file,
        };
        if opened.shared.is_in_doubt() {
            opened.heal()?;
            opened.check_sound()?;
        }
        Ok(opened)
    }
}

impl Log {
    /// Writes the end of the log again if a sync of it has failed, or if a process has died in its
    /// sync.
    pub(super) fn heal(&self) -> Result<()> {
        let _appending = self.shared.lock_appending()?;
        let _syncing = self.shared.lock_syncing()?;
        // In the meantime, other processes may have failed or healed the log.
        let is_needed = self.shared.is_in_doubt() || self.shared.is_sync_cut_off();
        if is_needed { self.write_end_again() } else { Ok(()) }
    }

    /// Writes the end of the log again. The caller has the rights to append and to sync.
    pub(super) fn write_end_again(&self) -> Result<()> {
        self.settle_rotation()?;
        let (live, synced) = (self.shared.live(), self.shared.synced());
        let LogEnd { tail, last, .. } = recovery::heal(&self.files, live, synced)?;
        self.shared.publish_ends(ends(live, last, &tail));
        self.shared.note_healed();
        Ok(())
    }

    pub(super) fn poisoned(&self) -> Error {
        self.is_poisoned.store(true, Ordering::Release);
        Error::Poisoned
    }

    /// Makes all written frames durable. A failure poisons the handles of all processes. The caller
    /// has the right to sync, so no other thread can take a sync that failed for a success.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the sync fails, and [`Error::Poisoned`] if a sync before has failed.
    pub(super) fn sync_written(&self) -> Result<()> {
        if self.shared.is_in_doubt() {
            return Err(Error::Poisoned);
        }
        // The order matters: if another file became the live file in between, the rotation synced
        // this position.
        let written = self.shared.written();
        let file = self.live_file()?;
        self.shared.begin_sync();
        let synced = file.sync();
        if synced.is_ok() {
            self.shared.publish_synced(written);
        } else {
            self.shared.note_failure();
            self.is_poisoned.store(true, Ordering::Release);
        }
        self.shared.end_sync();
        synced
    }

    /// Returns the file that appends go to.
    pub(super) fn live_file(&self) -> Result<Arc<LogFile>> {
        loop {
            let live = self.shared.live();
            match self.files.get(live) {
                // Another file became the live file, and this file was removed.
                Err(Error::Stale) if self.shared.live() != live => {}
                outcome => return outcome,
            }
        }
    }

    /// Returns the number of syncs of all processes.
    #[cfg(test)]
    pub(in crate::storage::store) fn syncs(&self) -> u64 {
        self.shared.syncs()
    }

    /// Returns the id of the log.
    pub(super) fn id(&self) -> u64 {
        self.files.log
    }
}
