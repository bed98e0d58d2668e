//! Reading: what is durable, and no later surprise.

use std::sync::{MutexGuard, PoisonError};

use super::handle::Log;
use super::index::Index;
use super::recovery::Taken;
use crate::model::error::{Error, Result};
use crate::storage::store::byte_locks::locked;
use crate::storage::store::cursor::{Cursor, Cursors};
use crate::storage::store::entries::{Counts, LogEntry};

/// Looks at files that are removed meanwhile.
const LOOKS_MAX: u32 = 64;

impl Log {
    /// Takes in all that is durable, or was written by a process that is dead; the sequence of the
    /// last block.
    ///
    /// # Errors
    /// [`Error::Corrupt`], and those of the machine.
    pub(in crate::storage::store) fn follow(&self) -> Result<u64> {
        let mut end = self.visible_end()?;
        let mut index = self.index();
        for _ in 0..LOOKS_MAX {
            let live = self.shared.live();
            match index.follow(&self.files, end, live) {
                Err(Error::Stale) => {}
                outcome => return outcome.map(|()| index.sequence()),
            }
            // Compaction has removed files that were not seen yet.
            *index = Index::new(&self.files)?;
            end = self.shared.synced();
        }
        Err(Error::Stale)
    }

    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        // A panic leaves frames that were not taken in, and those are taken in by the next call.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes files that are no longer needed here, unless the index is in use.
    pub(super) fn close_unused(&self) {
        if let Ok(mut index) = self.index.try_lock() {
            index.close_unused(&self.files);
        }
    }

    /// The position up to which reads see the log.
    fn visible_end(&self) -> Result<u64> {
        loop {
            let (synced, reserved) = (self.shared.synced(), self.shared.reserved());
            // After a failure nothing more is shown before the end was written once more.
            if reserved <= synced || self.shared.is_in_doubt() {
                return Ok(synced);
            }
            let Some(dead) = self.first_dead(synced, reserved)? else { return Ok(synced) };
            // The mark goes after the position was published.
            if self.shared.synced() <= dead && self.shared.reserved() == reserved {
                self.end_work_of_dead(dead)?;
            }
        }
    }

    /// The first position from `start` on that is no living process's.
    fn first_dead(&self, start: u64, end: u64) -> Result<Option<u64>> {
        let mut at = start;
        while at < end {
            if let Some(marked_until) = locked(&self.plane, self.marks.marked_until(at))? {
                at = marked_until;
                continue;
            }
            let synced = self.shared.synced();
            if synced <= at {
                return Ok(Some(at));
            }
            at = synced;
        }
        Ok(None)
    }

    fn end_work_of_dead(&self, position: u64) -> Result<()> {
        if position >= self.shared.written() {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let _appending = self.shared.lock_appending()?;
            self.settle(&mut writer)?;
        }
        // A sync that fails shows in `failures`, and reads go on with what is durable.
        drop(self.sync_written());
        Ok(())
    }

    /// Blocks after `after` up to `last`, some of them; `None` where compaction has taken them meanwhile.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub(in crate::storage::store) fn between(
        &self,
        after: u64,
        last: u64,
    ) -> Result<Option<Vec<LogEntry>>> {
        let runs = self.index().runs_between(&self.files, after, last);
        let mut entries = Vec::new();
        let Some(runs) = runs else { return Ok(None) };
        runs.iter().try_for_each(|run| run.read(&mut entries))?;
        Ok(Some(entries))
    }

    /// These blocks; `None` where one of them is not there.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub(in crate::storage::store) fn get(
        &self,
        sequences: impl Iterator<Item = u64>,
    ) -> Result<Option<Vec<LogEntry>>> {
        let runs = self.index().runs_of(&self.files, sequences);
        let mut entries = Vec::new();
        let Some(runs) = runs else { return Ok(None) };
        runs.iter().try_for_each(|run| run.read(&mut entries))?;
        Ok(Some(entries))
    }

    /// Forgets what was taken over.
    pub(in crate::storage::store) fn forget(&self, taken: Taken) {
        self.index().forget(&self.files, taken.compacted, taken.cursors);
    }

    /// State as of the last [`Self::follow`]: end, sequence of the last block, and counters with the
    /// bytes of all blocks that were ever appended.
    pub(in crate::storage::store) fn seen(&self) -> (u64, u64, Counts) {
        let index = self.index();
        (index.end(), index.sequence(), index.counts())
    }

    /// Sequence of the last block as of the last [`Self::follow`], counters, and moves of cursors
    /// with the positions of their frames, all of one instant.
    pub(in crate::storage::store) fn seen_with_cursors(&self) -> (u64, Counts, Vec<(u64, Cursor)>) {
        let index = self.index();
        (index.sequence(), index.counts(), index.cursors())
    }

    /// Bytes of all blocks up to `sequence` that were ever appended, where it was not forgotten.
    pub(in crate::storage::store) fn bytes_ever(&self, sequence: u64) -> Option<u64> {
        self.index().bytes_ever(sequence)
    }

    /// Moves the cursors of frames from `position` on.
    pub(in crate::storage::store) fn move_cursors(&self, position: u64, cursors: &mut Cursors) {
        let moved = self.index().cursors();
        let moved = moved.iter().filter(|(start, _)| *start >= position);
        moved.for_each(|(_, cursor)| cursors.set(cursor));
    }
}
