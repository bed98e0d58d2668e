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
    /// Makes a file with one key.
    pub(super) fn of(key: u8) -> Self {
        Self { keys: 1 << key, sealing: key }
    }

    /// `DataKeys::newest`.
    pub(super) fn newest(self) -> u8 {
        self.keys.ilog2() as u8
    }

    /// `DataKeys::old`.
    pub(super) fn old(self) -> Option<u8> {
        let oldest = self.keys.trailing_zeros() as u8;
        (oldest != self.sealing).then_some(oldest)
    }

    /// `DataKeys::with_new`.
    pub(super) fn with_new(self) -> Self {
        Self { keys: self.keys | 2 << self.newest(), ..self }
    }

    /// `DataKeys::turned`.
    pub(super) fn turned(self) -> Self {
        Self { sealing: self.newest(), ..self }
    }
}

/// A process with one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Writer {
    /// Seals with this key, as it read the key file last.
    Idle(u8),
    /// Its batch is sealed with this key, and not sent or without an answer.
    Sealed {
        key: u8,
        /// True if the answer to an attempt was lost.
        is_in_doubt: bool,
    },
    /// Its client was told that the batch is not stored, and will send it again.
    Absent,
    Acknowledged,
    /// Its client was told that the batch may be stored.
    Unknown,
}

/// A process that compacts, with the key file as it read it under its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Compactor {
    Idle,
    /// Has read the key file before it has the lease, which is a flaw.
    Early(KeyFile),
    /// Has the lease, and has not read the key file.
    Leased,
    Ready(KeyFile),
    /// A segment has these rows of the log, and no manifest names it.
    Written(KeyFile, [u8; 2]),
    Merged(KeyFile),
    /// No process stores bytes under the old key from here on.
    Closed(KeyFile),
    /// Has found no rows under the old key.
    Searched(KeyFile),
    /// Has read a page of names that the old key sealed.
    Opened(KeyFile),
    /// Has found no bytes under the old key.
    Looked(KeyFile),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TurningTenant {
    pub(super) file: KeyFile,
    /// Keys under which the database takes bytes of writers.
    pub(super) open: u8,
    /// For each batch, the keys of its rows in the log that no manifest has compacted.
    pub(super) log: [u8; 2],
    /// For each batch, the keys of all its rows in the log, compacted or not.
    pub(super) stored: [u8; 2],
    /// Key of the segment that the manifest names, and of the manifest.
    pub(super) segment: u8,
    /// Key of the page of names.
    pub(super) page: Option<u8>,
    /// The compactor whose fence is the fence in `plane`. It has the lease until it is idle, or
    /// until another compactor takes the lease.
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
    /// Returns the keys that opened rows need.
    pub(super) fn row_keys(&self) -> u8 {
        self.log[0] | self.log[1] | 1 << self.segment
    }

    /// Returns the keys that opened bytes need.
    pub(super) fn sealing_keys(&self) -> u8 {
        self.row_keys() | self.page.map_or(0, |key| 1 << key)
    }
}
