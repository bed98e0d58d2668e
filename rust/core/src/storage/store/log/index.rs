//! Index of the blocks of a log that this process has seen: where each lies.

use std::collections::VecDeque;
use std::sync::Arc;

use super::file::{CORRUPT, LogFile};
use super::files::Files;
use super::frame::{self, Frame};
use super::tail::Tail;
use crate::model::error::{Error, Result};
use crate::storage::store::cursor::Cursor;
use crate::storage::store::entries::{Counts, LogEntry, READ_BYTES_MAX};

/// Looks at files that are removed meanwhile.
const LOOKS_MAX: u32 = 64;

/// Blocks from some sequence on, and what else their frames say.
pub(super) struct Index {
    /// State up to which everything is in here.
    tail: Tail,
    file: Arc<LogFile>,
    /// The live file as of the last look at the directory.
    live: Option<u64>,
    /// Sequence of the first of `blocks`.
    first: u64,
    /// Bytes of all blocks before it that were ever appended.
    bytes_before: u64,
    blocks: VecDeque<Place>,
    /// Position of the frame that each came with, in order.
    cursors: VecDeque<(u64, Cursor)>,
}

#[derive(Clone, Copy)]
struct Place {
    position: u64,
    /// Bytes of all blocks of the log up to this one.
    bytes_ever: u64,
}

/// A run of blocks side by side in one file.
pub(super) struct Run {
    file: Arc<LogFile>,
    position: u64,
    bytes: usize,
    /// Sequence and length of each.
    blocks: Vec<(u64, usize)>,
}

impl Index {
    /// An index that begins with the first of the files there are.
    ///
    /// # Errors
    /// [`Error::Stale`] where files are removed faster than they can be opened, and those of the
    /// machine.
    pub(super) fn new(files: &Files) -> Result<Self> {
        let mut begun = Err(Error::Stale);
        for _ in 0..LOOKS_MAX {
            begun = Self::begin(files);
            if !matches!(begun, Err(Error::Stale)) {
                break;
            }
        }
        begun
    }

    fn begin(files: &Files) -> Result<Self> {
        let first = files.bases()?.into_iter().next().ok_or(CORRUPT)?;
        let file = files.get(first)?;
        let tail = file.start;
        Ok(Self {
            tail,
            file,
            live: None,
            first: tail.sequence + 1,
            bytes_before: tail.counts.log_bytes,
            blocks: VecDeque::new(),
            cursors: VecDeque::new(),
        })
    }

    /// Takes in all frames before `end`, a position up to which the log is durable.
    ///
    /// # Errors
    /// [`Error::Stale`] where files were removed before they were seen, [`Error::Corrupt`], and
    /// those of the machine.
    pub(super) fn follow(&mut self, files: &Files, end: u64, live: u64) -> Result<()> {
        if self.tail.end < end {
            files.keep(&self.file);
        }
        while self.tail.end < end {
            if self.live != Some(live) {
                for base in files.bases()?.into_iter().filter(|base| *base >= self.tail.end) {
                    files.get(base)?;
                }
                self.live = Some(live);
            }
            if let Some(next) = files.at(self.tail.end).filter(|file| file.base == self.tail.end) {
                if next.start.sequence != self.tail.sequence {
                    // Only a store that is being loaded leaves positions out.
                    self.blocks.clear();
                    self.first = next.start.sequence + 1;
                    self.bytes_before = next.start.counts.log_bytes;
                }
                self.tail = next.start;
                self.file = next;
                continue;
            }
            match frame::read(&self.file, &self.tail, false)? {
                Some(frame) => self.add(frame),
                // Its file may have been removed and the next one not been seen.
                None if files.bases()?.first().is_some_and(|first| *first > self.tail.end) => {
                    return Err(Error::Stale);
                }
                None => return Err(CORRUPT),
            }
        }
        Ok(())
    }

    fn add(&mut self, frame: Frame) {
        let mut position = frame.blocks_at;
        let mut bytes_ever = self.tail.counts.log_bytes;
        for length in frame.lengths.iter().copied().map(u64::from) {
            bytes_ever += length;
            self.blocks.push_back(Place { position, bytes_ever });
            position += length;
        }
        self.cursors.extend(frame.cursors.into_iter().map(|cursor| (frame.start, cursor)));
        self.tail = frame.tail;
    }

    pub(super) fn end(&self) -> u64 {
        self.tail.end
    }

    pub(super) fn sequence(&self) -> u64 {
        self.tail.sequence
    }

    /// Counters; the bytes of all blocks that were ever appended.
    pub(super) fn counts(&self) -> Counts {
        self.tail.counts
    }

    /// Moves of cursors, in order, with the positions of their frames.
    pub(super) fn cursors(&self) -> Vec<(u64, Cursor)> {
        self.cursors.iter().cloned().collect()
    }

    /// Bytes of all blocks that were ever appended up to `sequence`, `None` where that is not in here.
    pub(super) fn bytes_ever(&self, sequence: u64) -> Option<u64> {
        if sequence.checked_add(1)? == self.first {
            return Some(self.bytes_before);
        }
        self.place(sequence).map(|(place, _)| place.bytes_ever)
    }

    /// Place of a block and its length.
    fn place(&self, sequence: u64) -> Option<(Place, usize)> {
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        let place = *self.blocks.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.blocks.get(before));
        let bytes_before = before.map_or(self.bytes_before, |place| place.bytes_ever);
        Some((place, usize::try_from(place.bytes_ever - bytes_before).ok()?))
    }

    /// Places of the blocks after `after` up to `last`, as many as one read returns; `None` where some of them
    /// were forgotten.
    pub(super) fn runs_between(&self, files: &Files, after: u64, last: u64) -> Option<Vec<Run>> {
        let (mut runs, mut bytes) = (Vec::new(), 0);
        for sequence in after.saturating_add(1)..=last.min(self.tail.sequence) {
            bytes += self.add_run(files, sequence, &mut runs)?;
            if bytes >= READ_BYTES_MAX {
                break;
            }
        }
        Some(runs)
    }

    /// Places of these blocks; `None` where one of them is not in here.
    pub(super) fn runs_of(
        &self,
        files: &Files,
        sequences: impl Iterator<Item = u64>,
    ) -> Option<Vec<Run>> {
        let mut runs = Vec::new();
        for sequence in sequences {
            self.add_run(files, sequence, &mut runs)?;
        }
        Some(runs)
    }

    /// Adds a block to the last run, or as a new one; returns its length.
    fn add_run(&self, files: &Files, sequence: u64, runs: &mut Vec<Run>) -> Option<usize> {
        let (Place { position, .. }, length) = self.place(sequence)?;
        match runs.last_mut() {
            Some(last) if last.position + last.bytes as u64 == position => {
                last.bytes += length;
                last.blocks.push((sequence, length));
            }
            _ => {
                let file = files.at(position)?;
                runs.push(Run { file, position, bytes: length, blocks: vec![(sequence, length)] });
            }
        }
        Some(length)
    }

    /// Closes files that nothing in here lies in: they are opened again when they are followed.
    pub(super) fn close_unused(&mut self, files: &Files) {
        files.close_before(self.blocks.front().map_or(u64::MAX, |place| place.position));
        self.live = None;
    }

    /// Forgets blocks up to `sequence`, and moves of cursors before `position`.
    pub(super) fn forget(&mut self, files: &Files, sequence: u64, position: u64) {
        let count = sequence.saturating_add(1).saturating_sub(self.first);
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(self.blocks.len());
        let last = self.blocks.drain(..count).next_back();
        if let Some(last) = last {
            self.bytes_before = last.bytes_ever;
            self.first += count as u64;
            let oldest = self.blocks.front().map_or(self.tail.end, |place| place.position);
            files.close_before(oldest.min(self.file.base));
        }
        while self.cursors.front().is_some_and(|(start, _)| *start < position) {
            self.cursors.pop_front();
        }
    }
}

impl Run {
    /// # Errors
    /// [`crate::model::error::Error::Corrupt`], and those of the machine.
    pub(super) fn read(&self, entries: &mut Vec<LogEntry>) -> Result<()> {
        let bytes = self.file.read_up_to(self.position, self.bytes)?;
        if bytes.len() < self.bytes {
            return Err(CORRUPT);
        }
        let mut rest = &*bytes;
        for (sequence, length) in &self.blocks {
            let (sealed, after) = rest.split_at(*length);
            entries.push(LogEntry { sequence: *sequence, sealed: sealed.to_vec() });
            rest = after;
        }
        Ok(())
    }
}
