//! Appends to the log: a write under a short lock, then a sync that many writers share.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::file::{CORRUPT, LogFile};
use super::frame::{self, FrameHead};
use super::handle::Log;
use super::shared::SyncGuard;
use super::tail::Tail;
use super::writer::LogWriter;
use crate::model::error::{Error, Result};
use crate::storage::store::byte_locks::locked;
use crate::storage::store::committer::Commit;
use crate::storage::store::entries::NewBlock;

/// When a file has so many bytes, the log continues in another file. Bounds the space that waits
/// for a removal.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// A sync that threads of this process share. Processes sync in turns.
struct SharedSync<'l, F> {
    log: &'l Log,
    /// Position up to which the leader needs the log durable.
    end: u64,
    /// Called after each sync of this process, before the writers learn of the sync.
    touch: F,
}

impl<'l, F: Fn()> Commit<u64, ()> for SharedSync<'l, F> {
    type Turn = Option<SyncGuard<'l>>;

    fn begin(&self) -> Result<Self::Turn> {
        self.log.turn(self.end)
    }

    fn commit(&self, mut turn: Self::Turn, ends: &[u64]) -> Result<()> {
        let end = ends.iter().copied().max().unwrap_or(0);
        while !self.log.is_synced(end)? {
            match turn.take() {
                Some(syncing) => {
                    let gathering = self.log.shared.gathering();
                    self.log.patience.timed(gathering, || self.log.sync_written())?;
                    drop(syncing); // other processes need not wait for the call
                    (self.touch)();
                }
                // Another process made the leader's bytes durable, but not the bytes of all
                // followers.
                None => turn = self.log.turn(end)?,
            }
        }
        Ok(())
    }
}

impl Log {
    /// Appends blocks and their counts, all or none. They are durable when this returns.
    ///
    /// # Errors
    /// Returns [`Error::DiskFull`] if no block is stored. After [`Error::Io`] and
    /// [`Error::Poisoned`] the blocks may be stored.
    pub(in crate::storage::store) fn append(&self, blocks: Vec<NewBlock>) -> Result<()> {
        let end = self.append_unsynced(blocks)?;
        self.sync(end, || ())
    }

    /// Appends as [`Self::append`] does, without the sync. Returns a position; a [`Self::sync`] of
    /// that position makes the blocks durable.
    ///
    /// # Errors
    /// Returns the errors of [`Self::append`].
    pub(in crate::storage::store) fn append_unsynced(&self, blocks: Vec<NewBlock>) -> Result<u64> {
        let bytes = blocks.iter().map(|block| block.sealed.len()).sum();
        self.appends.submit(blocks, bytes, &|groups: &[Vec<NewBlock>]| self.write(groups))
    }

    /// Returns once the log is durable up to `end`. Any process may have synced it. If this thread
    /// syncs it, calls `touch` afterwards.
    ///
    /// # Errors
    /// Returns [`Error::Io`] and [`Error::Poisoned`]. The frame that ends at `end` may be stored
    /// all the same.
    pub(in crate::storage::store) fn sync(&self, end: u64, touch: impl Fn()) -> Result<()> {
        let outcome = match self.is_synced(end) {
            Ok(false) => self.syncs.submit(end, 0, &SharedSync { log: self, end, touch }),
            outcome => outcome.map(drop),
        };
        // Frames that are durable need no mark.
        self.marks.clear(if outcome.is_ok() { self.shared.synced() } else { u64::MAX });
        outcome
    }

    /// Leaves the frame that ends at `end` to other processes. No thread here will sync the frame,
    /// so the next read has to, as if this process were dead.
    pub(in crate::storage::store) fn leave(&self, end: u64) {
        self.marks.clear(end);
    }

    /// Writes a frame. Returns the position of its end.
    fn write(&self, groups: &[Vec<NewBlock>]) -> Result<u64> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let appending = self.shared.lock_appending()?;
        self.check_sound()?;
        let file = self.settle(&mut writer).inspect_err(|_| drop(self.poisoned()))?;
        let file = if file.offset(writer.tail.end) >= FILE_BYTES_MAX {
            self.rotate(&mut writer)?
        } else {
            file
        };
        let (mut bytes, tail) =
            frame::encode(self.id(), &writer.tail, self.shared.synced(), groups);
        let (needed, start) = (bytes.len(), writer.tail.end);
        bytes.resize(needed + writer.space_after(&file, &tail), 0);
        locked(&self.plane, self.marks.mark(&(start..tail.end)))?;
        self.shared.reserve(tail.end);
        match file.write(start, &bytes, needed) {
            Ok(()) => {}
            Err(Error::DiskFull) => {
                self.shared.reserve(start);
                self.marks.clear(tail.end);
                return Err(Error::DiskFull);
            }
            Err(error) => {
                // The whole frame may be in the file. The next process to append looks for it.
                self.poisoned();
                self.marks.clear(u64::MAX);
                return Err(error);
            }
        }
        self.shared.publish_written(start, tail.end);
        drop(appending);
        self.shared.gathering().note_written(u32::try_from(groups.len()).unwrap_or(u32::MAX));
        writer.tail = tail;
        writer.space_end = writer.space_end.max(start + bytes.len() as u64);
        Ok(tail.end)
    }

    pub(super) fn check_sound(&self) -> Result<()> {
        let is_sound =
            !self.is_poisoned.load(Ordering::Acquire) && self.shared.failures() == self.failures;
        if is_sound { Ok(()) } else { Err(self.poisoned()) }
    }

    /// Returns true if the log is durable up to `end`.
    fn is_synced(&self, end: u64) -> Result<bool> {
        let is_synced = self.shared.synced() >= end;
        // The order matters: after a failure another frame may be at the same position.
        self.check_sound().map(|()| is_synced)
    }

    /// Waits for the right to sync, and for writers that are likely to append soon. Returns `None`
    /// once another process has made the log durable up to `end`.
    fn turn(&self, end: u64) -> Result<Option<SyncGuard<'_>>> {
        let turns = self.shared.turns();
        loop {
            // Read before the check, so that a turn that ends after the check ends the wait.
            let ended = turns.ended();
            if self.is_synced(end)? {
                return Ok(None);
            }
            if let Some(syncing) = self.shared.try_lock_syncing()? {
                if self.shared.is_sync_cut_off() {
                    drop(syncing);
                    self.heal()?;
                    continue;
                }
                if !self.is_synced(end)? {
                    self.patience.gather(self.shared.gathering());
                }
                return Ok(Some(syncing));
            }
            turns.wait(ended);
        }
    }

    /// Completes the work of a process that died while it appended, and brings `writer` up to date.
    /// The caller has the right to append.
    pub(super) fn settle(&self, writer: &mut LogWriter) -> Result<Arc<LogFile>> {
        self.settle_rotation()?;
        let (live, written) = (self.shared.live(), self.shared.written());
        let file = match &writer.file {
            Some(file) if file.base == live && writer.tail.end == written => Arc::clone(file),
            _ => {
                let file = self.files.get(live)?;
                writer.tail = tail_at(&file, self.shared.last())?;
                writer.space_end = live + file.bytes()?;
                writer.file = Some(Arc::clone(&file));
                self.close_unused();
                file
            }
        };
        if writer.tail.end != written {
            return Err(CORRUPT);
        }
        if self.shared.reserved() != written {
            // A whole frame is taken in. The next frame overwrites any other bytes.
            if let Some(frame) = frame::read(&file, &writer.tail, true)? {
                self.shared.publish_written(frame.start, frame.tail.end);
                writer.tail = frame.tail;
                writer.space_end = live + file.bytes()?;
            }
            self.shared.reserve(writer.tail.end);
        }
        Ok(file)
    }
}

/// Returns the state behind the frame at `last`, or behind the head of `file`.
fn tail_at(file: &LogFile, last: u64) -> Result<Tail> {
    if last == file.base {
        return Ok(file.start);
    }
    FrameHead::read(file, last)?.map(|head| head.tail).ok_or(CORRUPT)
}
