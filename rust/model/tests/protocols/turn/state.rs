//! The rows of the database about a plane, and the processes.
//!
//! Keys have the numbers 0, 1, 2 in the order of their turns. The slot of a key is its number
//! modulo two. A set of keys is a number with a bit for each.

/// The content of `plane.wrapped_key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyFile {
    pub(super) keys: u8,
    pub(super) sealing: u8,
}

impl KeyFile {
    /// `DataKeys::old`.
    pub(super) fn old(self) -> Option<u8> {
        let old = self.keys & !(1 << self.sealing);
        (old != 0).then(|| old.trailing_zeros() as u8)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WriterStep {
    Idle,
    /// Its batch is sealed with this key, and not sent or without an answer.
    Sealed(u8),
    /// The database has refused its batch under this key.
    Refused(u8),
    /// Its batch is certainly not stored.
    Absent,
    Acknowledged,
}

/// A process with one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Writer {
    /// The key file as the process read it last.
    pub(super) file: KeyFile,
    pub(super) step: WriterStep,
    /// True if the answer to an attempt under the present key was lost.
    pub(super) is_in_doubt: bool,
}

/// Fence and keys of a compactor, as they were when it took the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Work {
    pub(super) fence: u8,
    pub(super) file: KeyFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Compactor {
    Idle,
    Leased(Work),
    /// No process stores bytes under the old key from here on.
    Closed(Work),
    /// A segment has these rows of the log, and no manifest names it.
    Written(Work, [u8; 2]),
    Merged(Work),
    /// Has read the page of names.
    Opened(Work),
    Resealed(Work),
    /// Has found no bytes under the old key.
    Looked(Work),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TurningTenant {
    pub(super) file: KeyFile,
    /// Keys under which the database takes bytes.
    pub(super) open: u8,
    /// For each batch, the keys of its rows in the log that no manifest has compacted.
    pub(super) log: [u8; 2],
    /// For each batch, the keys of all its rows in the log, compacted or not.
    pub(super) stored: [u8; 2],
    /// Key of the segment that the manifest names, and of the manifest.
    pub(super) segment: u8,
    /// Key of the page of names.
    pub(super) page: u8,
    pub(super) fence: u8,
    pub(super) holder: Option<usize>,
    pub(super) writers: [Writer; 2],
    pub(super) compactors: [Compactor; 2],
    /// An append that may take effect although its answer was lost: batch and key.
    pub(super) late: Option<(usize, u8)>,
    pub(super) losses: u8,
    pub(super) pauses: u8,
    /// True if the database has refused a batch.
    pub(super) has_refused: bool,
}

impl TurningTenant {
    /// Returns the keys that opened bytes need.
    pub(super) fn sealing_keys(&self) -> u8 {
        self.log[0] | self.log[1] | 1 << self.segment | 1 << self.page
    }
}
