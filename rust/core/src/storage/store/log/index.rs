//! Index of the blocks of a log that this process has seen: the place of each block.

use std::collections::VecDeque;
use std::sync::Arc;

use super::file::{CORRUPT, LogFile};
use super::files::LogFiles;
use super::frame::{self, LogFrame};
use super::tail::Tail;
use crate::model::error::{Error, Result};
use crate::storage::store::cursor::Cursor;
use crate::storage::store::entries::{LogEntry, READ_BYTES_MAX, StoreCounts};

/// Most attempts to open files while other processes remove them.
const LOOKS_MAX: u32 = 64;

/// Blocks from some sequence on, and the cursors of their frames.
pub(super) struct LogIndex {
    /// State up to which the index has all frames.
    tail: Tail,
    file: Arc<LogFile>,
    /// The live file when the directory was last listed.
    live: Option<u64>,
    /// Sequence of the first item of `blocks`.
    first: u64,
    /// Bytes of all blocks that were ever appended before `first`.
    bytes_before: u64,
    blocks: VecDeque<BlockPlace>,
    /// Moves of cursors in order, with the positions of their frames.
    cursors: VecDeque<(u64, Cursor)>,
}

#[derive(Clone, Copy)]
struct BlockPlace {
    position: u64,
    /// Bytes of all blocks of the log up to this block, and with it.
    bytes_ever: u64,
}

/// A run of neighbouring blocks in one file.
pub(super) struct BlockRun {
    file: Arc<LogFile>,
    position: u64,
    bytes: usize,
    /// Sequence and length of each block.
    blocks: Vec<(u64, usize)>,
}

impl LogIndex {
    /// Makes an index that begins with the oldest file.
    ///
    /// # Errors
    /// Returns [`Error::Stale`] if files are removed faster than they can be opened, and the errors
    /// of the machine.
    pub(super) fn new(files: &LogFiles) -> Result<Self> {
        let mut begun = Err(Error::Stale);
        for _ in 0..LOOKS_MAX {
            begun = Self::begin(files);
            if !matches!(begun, Err(Error::Stale)) {
                break;
            }
        }
        begun
    }

    fn begin(files: &LogFiles) -> Result<Self> {
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

    /// Adds all frames before `end`, a position up to which the log is durable.
    ///
    /// # Errors
    /// Returns [`Error::Stale`] if files were removed before they were seen, [`Error::Corrupt`] if
    /// a frame is missing, and the errors of the machine.
    pub(super) fn follow(&mut self, files: &LogFiles, end: u64, live: u64) -> Result<()> {
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
                    // Only a store that is being loaded skips sequences.
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
                // The file of the frame may have been removed before the next file was opened.
                None if files.bases()?.first().is_some_and(|first| *first > self.tail.end) => {
                    return Err(Error::Stale);
                }
                None => return Err(CORRUPT),
            }
        }
        Ok(())
    }

    fn add(&mut self, frame: LogFrame) {
        let mut position = frame.blocks_at;
        let mut bytes_ever = self.tail.counts.log_bytes;
        for length in frame.lengths.iter().copied().map(u64::from) {
            bytes_ever += length;
            self.blocks.push_back(BlockPlace { position, bytes_ever });
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

    /// Returns the counters, with the bytes of all blocks that were ever appended.
    pub(super) fn counts(&self) -> StoreCounts {
        self.tail.counts
    }

    /// Returns the moves of cursors in order, with the positions of their frames.
    pub(super) fn cursors(&self) -> Vec<(u64, Cursor)> {
        self.cursors.iter().cloned().collect()
    }

    /// Returns the bytes of all blocks that were ever appended up to `sequence`, or `None` if the
    /// index does not know.
    pub(super) fn bytes_ever(&self, sequence: u64) -> Option<u64> {
        if sequence.checked_add(1)? == self.first {
            return Some(self.bytes_before);
        }
        self.place(sequence).map(|(place, _)| place.bytes_ever)
    }

    /// Returns place and length of a block.
    fn place(&self, sequence: u64) -> Option<(BlockPlace, usize)> {
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        let place = *self.blocks.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.blocks.get(before));
        let bytes_before = before.map_or(self.bytes_before, |place| place.bytes_ever);
        Some((place, usize::try_from(place.bytes_ever - bytes_before).ok()?))
    }

    /// Returns the places of the blocks after `after` up to `last`, as many as one read returns.
    /// Returns `None` if some of these blocks were forgotten.
    pub(super) fn runs_between(
        &self,
        files: &LogFiles,
        after: u64,
        last: u64,
    ) -> Option<Vec<BlockRun>> {
        let (mut runs, mut bytes) = (Vec::new(), 0);
        for sequence in after.saturating_add(1)..=last.min(self.tail.sequence) {
            bytes += self.add_run(files, sequence, &mut runs)?;
            if bytes >= READ_BYTES_MAX {
                break;
            }
        }
        Some(runs)
    }

    /// Returns the places of these blocks, or `None` if the index lacks a block.
    pub(super) fn runs_of(
        &self,
        files: &LogFiles,
        sequences: impl Iterator<Item = u64>,
    ) -> Option<Vec<BlockRun>> {
        let mut runs = Vec::new();
        for sequence in sequences {
            self.add_run(files, sequence, &mut runs)?;
        }
        Some(runs)
    }

    /// Adds a block to the last run, or as a new run. Returns the length of the block.
    fn add_run(&self, files: &LogFiles, sequence: u64, runs: &mut Vec<BlockRun>) -> Option<usize> {
        let (BlockPlace { position, .. }, length) = self.place(sequence)?;
        match runs.last_mut() {
            Some(last) if last.position + last.bytes as u64 == position => {
                last.bytes += length;
                last.blocks.push((sequence, length));
            }
            _ => {
                let file = files.at(position)?;
                runs.push(BlockRun {
                    file,
                    position,
                    bytes: length,
                    blocks: vec![(sequence, length)],
                });
            }
        }
        Some(length)
    }

    /// Closes files without blocks of the index. They are opened again when the index reads them.
    pub(super) fn close_unused(&mut self, files: &LogFiles) {
        files.close_before(self.blocks.front().map_or(u64::MAX, |place| place.position));
        self.live = None;
    }

    /// Forgets blocks up to `sequence`, and moves of cursors before `position`.
    pub(super) fn forget(&mut self, files: &LogFiles, sequence: u64, position: u64) {
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

impl BlockRun {
    /// # Errors
    /// Returns [`crate::model::error::Error::Corrupt`] if the file is too short, and the errors of
    /// the machine.
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
