//! The log's file, the words that processes share, and the processes.
//!
//! Each frame takes one position. A set of batches is a number with a bit for each.

pub(super) const POSITIONS: usize = 3;

/// Bytes at the position of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Frame {
    #[default]
    None,
    /// A part of a frame, which no checksum fits.
    Part,
    Whole(u8),
}

/// The file as processes read it, and as a power cut leaves it at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct File {
    pub(super) frames: [Frame; POSITIONS],
    pub(super) disk: [Frame; POSITIONS],
    /// Positions that a sync leaves out, since a sync before it failed to write them.
    pub(super) unwritable: u8,
}

impl File {
    pub(super) fn write(&mut self, at: u8, frame: Frame) -> Option<()> {
        *self.frames.get_mut(at as usize)? = frame;
        self.unwritable &= !(1 << at);
        Some(())
    }

    /// `fdatasync`.
    pub(super) fn sync(&mut self) {
        for at in 0..POSITIONS {
            if self.unwritable & 1 << at == 0 {
                self.disk[at] = self.frames[at];
            }
        }
    }

    /// `fdatasync` fails. Later calls do not write these bytes.
    pub(super) fn fail(&mut self) {
        let dirty = (0..POSITIONS).filter(|at| self.disk[*at] != self.frames[*at]);
        self.unwritable |= dirty.fold(0, |all, at| all | 1 << at);
    }

    /// `frame::read`, for the frame at a position.
    pub(super) fn whole(&self, at: u8) -> Option<u8> {
        match self.frames.get(at as usize)? {
            Frame::Whole(batch) => Some(*batch),
            _ => None,
        }
    }

    /// Returns the batches up to a position, or `None` if a frame is not whole.
    pub(super) fn batches(&self, end: u8) -> Option<u8> {
        (0..end).try_fold(0, |all, at| Some(all | 1 << self.whole(at)?))
    }

    /// `recovery::find_end`, from a position on.
    pub(super) fn end(&self, from: u8) -> u8 {
        let positions = POSITIONS as u8;
        (from..positions).find(|at| self.whole(*at).is_none()).unwrap_or(positions)
    }

    /// `recovery::make_durable`: frames that may not be durable are written again, and the bytes
    /// behind them are cleared.
    pub(super) fn recover(&mut self, from: u8) -> u8 {
        let end = self.end(from);
        for at in 0..POSITIONS {
            self.frames[at] = if at < end as usize { self.frames[at] } else { Frame::None };
        }
        self.unwritable = 0;
        self.sync();
        end
    }
}

/// `SharedPage` of `log/shared.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Shared {
    pub(super) synced: u8,
    pub(super) written: u8,
    pub(super) reserved: u8,
    pub(super) failures: u8,
    pub(super) healed: u8,
    /// True while a process syncs. It stays if the process dies.
    pub(super) is_syncing: bool,
}

impl Shared {
    /// `MappedFile::publish_ends`.
    pub(super) fn publish_ends(&mut self, end: u8) {
        (self.synced, self.written, self.reserved) = (end, end, end);
    }
}

/// The step that a process has done last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// The process is dead, or has not opened the log.
    Closed,
    Idle,
    /// Has the right to append.
    Appending,
    Settled,
    Marked,
    Reserved,
    Half,
    Whole,
    /// The frame is published, and the right to append given back.
    Published,
    /// Has the right to sync.
    Syncing,
    /// Knows up to which position its sync counts.
    Target(u8),
    Flushed(u8),
    /// Its sync has failed, which other processes do not know.
    Failed,
    /// The reader has read both positions.
    Looked {
        synced: u8,
        reserved: u8,
    },
    /// The reader has found a frame that no living process has marked.
    FoundDead {
        at: u8,
        reserved: u8,
    },
    /// The reader has settled what was written, and waits for the right to sync.
    ReaderWaiting,
    ReaderTarget(u8),
    ReaderFlushed(u8),
    ReaderFailed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) step: Step,
    /// Count of its batches that ended, acknowledged or not.
    pub(super) batches: u8,
    /// Position of its frame.
    pub(super) start: u8,
    /// `Log::failures`.
    pub(super) failures: u8,
    /// Batches whose process was dead when the read under way began.
    pub(super) dead: u8,
}

impl Process {
    pub(super) fn has_append_lock(self) -> bool {
        use Step::{Appending, Half, Marked, Reserved, Settled, Whole};
        matches!(self.step, Appending | Settled | Marked | Reserved | Half | Whole)
    }

    fn syncs_own(self) -> bool {
        matches!(self.step, Step::Syncing | Step::Target(_) | Step::Flushed(_) | Step::Failed)
    }

    pub(super) fn has_sync_lock(self) -> bool {
        use Step::{ReaderFailed, ReaderFlushed, ReaderTarget};
        self.syncs_own() || matches!(self.step, ReaderTarget(_) | ReaderFlushed(_) | ReaderFailed)
    }

    /// `Marks::marked_until`: the system drops the mark of a process that dies.
    pub(super) fn marks(self, at: u8) -> bool {
        use Step::{Half, Marked, Published, Reserved, Whole};
        let has_mark = matches!(self.step, Marked | Reserved | Half | Whole | Published);
        (has_mark || self.syncs_own()) && self.start == at
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Machine {
    pub(super) file: File,
    pub(super) shared: Shared,
    /// Two writers and a reader.
    pub(super) processes: [Process; 3],
    pub(super) kills: u8,
    pub(super) cuts: u8,
    pub(super) failing_syncs: u8,
    pub(super) acknowledged: u8,
    /// Batches that a read has shown.
    pub(super) shown: u8,
    /// Batches of processes that died before their end.
    pub(super) dead: u8,
    /// Batches that a read did not show although it began after the death.
    pub(super) missed: u8,
    pub(super) has_bad_read: bool,
    pub(super) has_damage: bool,
}
