//! Reads of the log. A read sees durable frames only, so no failure can take them back.

use std::sync::{MutexGuard, PoisonError};

use super::handle::Log;
use super::index::LogIndex;
use super::recovery::CompactedLog;
use crate::model::error::{Error, Result};
use crate::storage::store::byte_locks::locked;
use crate::storage::store::cursor::{Cursor, Cursors};
use crate::storage::store::entries::{LogEntry, StoreCounts};

/// Most attempts to open files while other processes remove them.
const LOOKS_MAX: u32 = 64;

impl Log {
    /// Reads the new frames that are durable. Makes frames of dead processes durable first. Returns
    /// the sequence of the last block.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the log is damaged, and the errors of the machine.
    pub(in crate::storage::store) fn follow(&self) -> Result<u64> {
        let mut end = self.visible_end()?;
        let mut index = self.index();
        for _ in 0..LOOKS_MAX {
            let live = self.shared.live();
            match index.follow(&self.files, end, live) {
                Err(Error::Stale) => {}
                outcome => return outcome.map(|()| index.sequence()),
            }
            // Compaction has removed files that the index had not read.
            *index = LogIndex::new(&self.files)?;
            end = self.shared.synced();
        }
        Err(Error::Stale)
    }

    pub(super) fn index(&self) -> MutexGuard<'_, LogIndex> {
        // A panic may leave frames that the index lacks. The next call adds them.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes files that the index does not need, unless the index is in use.
    pub(super) fn close_unused(&self) {
        if let Ok(mut index) = self.index.try_lock() {
            index.close_unused(&self.files);
        }
    }

    /// Returns the position up to which reads see the log.
    fn visible_end(&self) -> Result<u64> {
        loop {
            let (synced, reserved) = (self.shared.synced(), self.shared.reserved());
            // After a failed sync, reads see no further until the end was written again.
            if reserved <= synced || self.shared.is_in_doubt() {
                return Ok(synced);
            }
            let Some(dead) = self.first_dead(synced, reserved)? else {
                // Others may have synced frames of the dead since, which this read has to show.
                return Ok(self.shared.synced());
            };
            // A writer removes its mark after it publishes the position, so the position is read
            // again.
            if self.shared.synced() <= dead && self.shared.reserved() == reserved {
                self.end_work_of_dead(dead)?;
            }
        }
    }

    /// Returns the first position from `start` on that no living process has marked.
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
        let syncing = self.shared.lock_syncing()?;
        if self.shared.is_sync_cut_off() {
            drop(syncing);
            return self.heal();
        }
        // A failed sync shows in `failures`. Reads continue with the durable frames.
        drop(self.sync_written());
        Ok(())
    }

    /// Returns blocks after `after` up to `last`, as many as one read returns. Returns `None` if
    /// compaction has removed a block.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
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

    /// Returns these blocks, or `None` if a block is missing.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
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

    /// Forgets the blocks and cursors that are stored elsewhere.
    pub(in crate::storage::store) fn forget(&self, taken: CompactedLog) {
        self.index().forget(&self.files, taken.compacted, taken.cursors);
    }

    /// Returns the state as of the last [`Self::follow`]: end, sequence of the last block, and
    /// counters. The counters have the bytes of all blocks that were ever appended.
    pub(in crate::storage::store) fn seen(&self) -> (u64, u64, StoreCounts) {
        let index = self.index();
        (index.end(), index.sequence(), index.counts())
    }

    /// Returns the state as of the last [`Self::follow`]: sequence of the last block, counters, and
    /// moves of cursors with the positions of their frames. All are of one instant.
    pub(in crate::storage::store) fn seen_with_cursors(
        &self,
    ) -> (u64, StoreCounts, Vec<(u64, Cursor)>) {
        let index = self.index();
        (index.sequence(), index.counts(), index.cursors())
    }

    /// Returns the bytes of all blocks that were ever appended up to `sequence`, unless they were
    /// forgotten.
    pub(in crate::storage::store) fn bytes_ever(&self, sequence: u64) -> Option<u64> {
        self.index().bytes_ever(sequence)
    }

    /// Moves the cursors, by the frames from `position` on.
    pub(in crate::storage::store) fn move_cursors(&self, position: u64, cursors: &mut Cursors) {
        let moved = self.index().cursors();
        let moved = moved.iter().filter(|(start, _)| *start >= position);
        moved.for_each(|(_, cursor)| cursors.set(cursor));
    }
}
