//! Counters and sizes of a log, read from its files without the shared state.

use std::path::Path;

use super::file::{self, CORRUPT, DIRECTORY};
use super::files::LogFiles;
use super::frame::{self, FrameHead};
use super::handle::Log;
use super::recovery::{self, CompactedLog};
use super::shared::{self, LOCK_FILE};
use crate::model::error::{Error, Result};
use crate::storage::store::entries::StoreCounts;

/// Most attempts to open files while other processes remove them.
const LOOKS_MAX: u32 = 64;

/// Returns the bytes of all files of the log of `plane`.
///
/// # Errors
/// Returns the errors of the machine.
pub(in crate::storage::store) fn file_bytes(plane: &Path) -> Result<u64> {
    Ok(file::list(&plane.join(DIRECTORY))?.iter().map(|(_, bytes)| bytes).sum())
}

/// Returns the counters of the log of `plane`, with the bytes of all blocks that were ever
/// appended.
///
/// # Errors
/// Returns [`Error::Corrupt`] if the log is damaged, and the errors of the machine.
pub(in crate::storage::store) fn peek(plane: &Path, log: u64) -> Result<StoreCounts> {
    let mut found = Err(Error::Stale);
    for _ in 0..LOOKS_MAX {
        let files = LogFiles::of(plane.join(DIRECTORY), log);
        let newest = files.bases()?.last().copied().ok_or(CORRUPT)?;
        found = files.get(newest).and_then(|file| {
            let last = shared::last_at(&plane.join(LOCK_FILE), log).unwrap_or(0);
            if last > newest
                && let Some(head) = FrameHead::read(&file, last)?
            {
                return Ok(head.tail.counts);
            }
            let mut tail = file.start;
            while let Some(frame) = frame::read(&file, &tail, false)? {
                tail = frame.tail;
            }
            Ok(tail.counts)
        });
        if !matches!(found, Err(Error::Stale)) {
            break;
        }
    }
    found
}

impl Log {
    /// Reads all of the log that is needed. Returns the sequence of its last block, and its
    /// counters.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the log is damaged, [`Error::Stale`] if compaction removed
    /// files during the read, and the errors of the machine.
    pub(in crate::storage::store) fn verify(
        &self,
        taken: CompactedLog,
    ) -> Result<(u64, StoreCounts)> {
        let files = LogFiles::of(self.files.directory.clone(), self.id());
        let synced = self.shared.synced();
        let tail = recovery::verify(&files, taken, synced)?;
        Ok((tail.sequence, tail.counts))
    }
}
