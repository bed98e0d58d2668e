//! The log of one plane, opened.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::file::{self, DIRECTORY, LogFile};
use super::files::Files;
use super::index::Index;
use super::marks::{self, Marks};
use super::recovery::{self, End, Taken};
use super::shared::{self, LOCK_FILE, Shared, ends};
use super::tail::Tail;
use super::writer::Writer;
use crate::model::error::{Error, Result};
use crate::storage::store::byte_locks::{ByteLocks, locked};
use crate::storage::store::committer::Committer;
use crate::storage::store::entries::NewBlock;
use crate::storage::store::gathering::Patience;

/// The log of one plane. Several processes may have it open at once, each once.
pub(in crate::storage::store) struct Log {
    pub(super) files: Files,
    pub(super) shared: Arc<Shared>,
    pub(super) marks: Marks,
    pub(super) writer: Mutex<Writer>,
    pub(super) index: Mutex<Index>,
    /// Batches on their way into the file, with the end of the frame that has them.
    pub(super) appends: Committer<Vec<NewBlock>, u64>,
    /// Positions that threads of this process want to be durable.
    pub(super) syncs: Committer<u64>,
    pub(super) patience: Patience,
    /// Failed syncs when this was opened: one more, and nothing can be promised from here.
    pub(super) failures: u64,
    pub(super) is_poisoned: AtomicBool,
    pub(super) plane: PathBuf,
    /// Locked for as long as this is open, and closed last.
    _lock_file: File,
}

/// The right to open the log of a plane, and to make it, for whoever holds it alone.
pub(in crate::storage::store) struct Opening {
    plane: PathBuf,
    lock_file: File,
    pub(in crate::storage::store) shared: Arc<Shared>,
    pub(in crate::storage::store) is_alone: bool,
}

impl Opening {
    /// Waits until nobody else is about to open the log of `plane` alone.
    ///
    /// # Errors
    /// Those of the machine.
    pub(in crate::storage::store) fn begin(plane: &Path) -> Result<Self> {
        let path = plane.join(LOCK_FILE);
        let lock_file = shared::open_file(&path)?;
        let is_alone = locked(plane, marks::enter(&lock_file))?;
        let shared = Arc::new(Shared::map(&lock_file, &path)?);
        Ok(Self { plane: plane.to_owned(), lock_file, shared, is_alone })
    }

    /// Makes an empty log that goes on behind block `sequence`; it is durable on return. The caller
    /// is alone, and nothing that an earlier attempt has left was ever used.
    ///
    /// # Errors
    /// Those of the machine.
    pub(in crate::storage::store) fn create(&self, log: u64) -> Result<()> {
        let directory = self.plane.join(DIRECTORY);
        file::make_directory(&directory)?;
        LogFile::create(&directory, log, &Tail::default(), || ()).map(drop)
    }

    /// Opens the log that has this id.
    ///
    /// # Errors
    /// [`Error::Corrupt`], and those of the machine.
    pub(in crate::storage::store) fn finish(
        self,
        log: u64,
        taken: Taken,
        locks: &Arc<ByteLocks>,
    ) -> Result<Log> {
        let files = Files::of(self.plane.join(DIRECTORY), log);
        let shared = self.shared;
        if self.is_alone {
            let End { tail, last, live, .. } =
                recovery::recover(&files, taken, shared.witnessed(log))?;
            shared.begin(log, ends(live, last, &tail))?;
            locked(&self.plane, marks::share(&self.lock_file))?;
        } else {
            shared.join(log)?;
        }
        let opened = Log {
            writer: Mutex::default(),
            index: Mutex::new(Index::new(&files)?),
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
        opened.heal()?;
        Ok(opened)
    }
}

impl Log {
    /// Writes the end of the log once more where a sync of it has failed.
    pub(super) fn heal(&self) -> Result<()> {
        if !self.shared.is_in_doubt() {
            return Ok(());
        }
        let _appending = self.shared.lock_appending()?;
        let _syncing = self.shared.lock_syncing()?;
        // Others may have failed meanwhile, or healed it.
        let failures = self.shared.failures();
        if self.shared.is_in_doubt() {
            self.settle_rotation()?;
            let (live, synced) = (self.shared.live(), self.shared.synced());
            let End { tail, last, .. } = recovery::heal(&self.files, live, synced)?;
            self.shared.publish_ends(ends(live, last, &tail));
            self.shared.note_healed(failures);
        }
        if failures == self.failures { Ok(()) } else { Err(Error::Poisoned) }
    }

    pub(super) fn poisoned(&self) -> Error {
        self.is_poisoned.store(true, Ordering::Release);
        Error::Poisoned
    }

    /// Makes durable all that was written. A failure is everybody's.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn sync_written(&self) -> Result<()> {
        // In this order: had another file become the live one in between, then this was synced.
        let written = self.shared.written();
        self.shared.note_sync();
        let file = self.live_file()?;
        let synced = file.sync();
        if synced.is_ok() {
            self.shared.publish_synced(written);
        } else {
            self.shared.note_failure();
            self.is_poisoned.store(true, Ordering::Release);
        }
        synced
    }

    /// The file that is appended to.
    pub(super) fn live_file(&self) -> Result<Arc<LogFile>> {
        loop {
            let live = self.shared.live();
            match self.files.get(live) {
                // Another one has become the live one, and this one was removed.
                Err(Error::Stale) if self.shared.live() != live => {}
                outcome => return outcome,
            }
        }
    }

    /// Syncs of all processes.
    #[cfg(test)]
    pub(in crate::storage::store) fn syncs(&self) -> u64 {
        self.shared.syncs()
    }

    /// Id of the log.
    pub(super) fn id(&self) -> u64 {
        self.files.log
    }
}
