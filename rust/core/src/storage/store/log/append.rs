//! Appending: a write under a short lock, then a sync that many share.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::file::{CORRUPT, LogFile};
use super::flaw::{self, Part};
use super::frame::{self, Head};
use super::handle::Log;
use super::tail::Tail;
use super::writer::Writer;
use crate::model::error::{Error, Result};
use crate::storage::store::byte_locks::locked;
use crate::storage::store::entries::NewBlock;

/// Bytes of a file from which on the log goes on in another.
const FILE_BYTES_MAX: u64 = 32 << 20;

impl Log {
    /// Appends blocks and their counts, all or none of them; on return they are durable. `touch` is
    /// called once they are written.
    ///
    /// # Errors
    /// [`Error::DiskFull`] where nothing is stored. After [`Error::Io`] and [`Error::Poisoned`] they
    /// may be.
    pub(in crate::storage::store) fn append(
        &self,
        blocks: Vec<NewBlock>,
        touch: impl Fn(),
    ) -> Result<()> {
        let end = self.append_unsynced(blocks, touch)?;
        self.sync(end)
    }

    /// As [`Self::append`], but they are durable no later than with a [`Self::sync`] of the position
    /// that is returned.
    ///
    /// # Errors
    /// Those of [`Self::append`].
    pub(in crate::storage::store) fn append_unsynced(
        &self,
        blocks: Vec<NewBlock>,
        touch: impl Fn(),
    ) -> Result<u64> {
        let bytes = blocks.iter().map(|block| block.sealed.len()).sum();
        self.appends.submit(blocks, bytes, |groups| {
            let end = self.write(groups);
            touch();
            end
        })
    }

    /// Returns once the log is durable up to `end`, whoever has synced it.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Poisoned`]; what ends there may be stored.
    pub(in crate::storage::store) fn sync(&self, end: u64) -> Result<()> {
        let outcome = self.sync_in_turn(end);
        // Nothing that is durable needs a mark.
        self.marks.clear(if outcome.is_ok() { self.shared.synced() } else { u64::MAX });
        outcome
    }

    /// Leaves what ends at `end` to others: nobody here will sync it any more, so that the next read
    /// has to, as if this process were dead.
    pub(in crate::storage::store) fn leave(&self, end: u64) {
        self.marks.clear(end);
    }

    /// Writes a frame; returns its end.
    fn write(&self, groups: &[Vec<NewBlock>]) -> Result<u64> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let appending = self.shared.lock_appending()?;
        self.check_sound()?;
        let file = self.settle(&mut writer).inspect_err(|_| drop(self.poisoned()))?;
        let file = if file.offset(writer.tail.end) >= flaw::bound(FILE_BYTES_MAX, 1 << 10) {
            self.rotate(&mut writer, &file)?
        } else {
            file
        };
        let (mut bytes, tail) =
            frame::encode(self.id(), &writer.tail, self.shared.synced(), groups);
        let (needed, start) = (bytes.len(), writer.tail.end);
        bytes.resize(needed + writer.space_after(&file, &tail), 0);
        locked(&self.plane, self.marks.mark(&(start..tail.end)))?;
        if flaw::has(Part::Reservation) {
            self.shared.reserve(tail.end);
        }
        match file.write(start, &bytes, needed) {
            Ok(()) => {}
            Err(Error::DiskFull) => {
                self.shared.reserve(start);
                self.marks.clear(tail.end);
                return Err(Error::DiskFull);
            }
            Err(error) => {
                // All of it may be there: whoever comes next looks.
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

    /// True where the log is durable up to `end`.
    fn is_synced(&self, end: u64) -> Result<bool> {
        let is_synced = self.shared.synced() >= end;
        // In this order: after a failure the same position may be another frame's.
        self.check_sound().map(|()| is_synced)
    }

    fn sync_in_turn(&self, end: u64) -> Result<()> {
        let turns = self.shared.turns();
        let mut awaited = None;
        let outcome = loop {
            // Before the look: a turn that ends after it ends the wait.
            let ended = turns.ended();
            match self.is_synced(end) {
                Ok(false) => {}
                outcome => break outcome.map(drop),
            }
            match self.shared.try_lock_syncing() {
                Ok(Some(_syncing)) => {
                    // Whoever comes meanwhile waits for this turn.
                    turns.begin(u64::MAX);
                    if matches!(self.is_synced(end), Ok(false)) {
                        self.patience.gather(self.shared.gathering());
                    }
                    turns.begin(self.shared.written());
                    if matches!(self.is_synced(end), Ok(false))
                        && let Err(error) = self.sync_gathered()
                    {
                        break Err(error);
                    }
                }
                Ok(None) => awaited = Some(turns.wait(ended, end)),
                Err(error) => break Err(error),
            }
        };
        if let Some(turn) = awaited {
            turns.pass_on(turn);
        }
        outcome
    }

    /// Syncs all that was written, and says how many are likely to write again.
    fn sync_gathered(&self) -> Result<()> {
        let (gathering, began) = (self.shared.gathering(), Instant::now());
        let acknowledged = gathering.begin();
        self.sync_written()?;
        self.patience.note(began.elapsed());
        gathering.end(acknowledged);
        Ok(())
    }

    /// Ends what a process has left that died while it appended, and brings `writer` up to date.
    /// The caller has the right to append.
    pub(super) fn settle(&self, writer: &mut Writer) -> Result<Arc<LogFile>> {
        self.settle_rotation()?;
        let (live, written) = (self.shared.live(), self.shared.written());
        let file = match &writer.file {
            Some(file) if file.base == live && writer.tail.end == written => Arc::clone(file),
            Some(file) if !flaw::has(Part::WriterLooks) => Arc::clone(file),
            _ => {
                let file = self.files.get(live)?;
                writer.tail = tail_at(&file, self.shared.last())?;
                writer.space_end = live + file.bytes()?;
                writer.file = Some(Arc::clone(&file));
                self.close_unused();
                file
            }
        };
        if writer.tail.end != written && flaw::has(Part::WriterLooks) {
            return Err(CORRUPT);
        }
        if self.shared.reserved() != written {
            // A frame that is whole is taken in, any other is written over.
            let left = frame::read(&file, &writer.tail, true)?;
            if let Some(frame) = left.filter(|_| flaw::has(Part::WriterSettles)) {
                self.shared.publish_written(frame.start, frame.tail.end);
                writer.tail = frame.tail;
                writer.space_end = live + file.bytes()?;
            }
            self.shared.reserve(writer.tail.end);
        }
        Ok(file)
    }
}

/// State behind the frame at `last`, or behind the head of `file`.
fn tail_at(file: &LogFile, last: u64) -> Result<Tail> {
    if last == file.base {
        return Ok(file.start);
    }
    Head::read(file, last)?.map(|head| head.tail).ok_or(CORRUPT)
}
