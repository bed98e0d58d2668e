//! One tenant in the database and the object store, and the processes that work on it.
//!
//! A set of sequences or of segments is a number with a bit for each.

/// Count of the sequences of a batch, which is one statement.
pub(super) const BLOCKS: u8 = 2;
pub(super) const SEGMENTS: usize = 3;

/// A row of `segment`, and its object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Segment {
    /// Fence of the compactor that registered it; 0 for none.
    pub(super) fence: u8,
    /// `removed_at` is set.
    pub(super) is_retired: bool,
    /// Sequences in its object; 0 without an object.
    pub(super) rows: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) writer: u8,
    pub(super) hour: u8,
}

/// Rows of the database, each set of rows with its statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Tables {
    /// Entries by their sequence, those of dropped hours too.
    pub(super) entries: [Option<Entry>; 6],
    /// Sequences in the table `log`.
    pub(super) log: u8,
    pub(super) compacted: u8,
    pub(super) generation: u8,
    /// Segments that the manifest names.
    pub(super) manifest: u8,
    pub(super) fence: u8,
    /// True while `held_until` is to come.
    pub(super) is_held: bool,
    /// Pages of names. Each has the same name, so there must be one.
    pub(super) pages: u8,
    pub(super) segments: [Segment; SEGMENTS],
}

impl Tables {
    pub(super) fn last(&self) -> u8 {
        self.entries.iter().flatten().count() as u8
    }

    /// Returns the rows of these segments.
    pub(super) fn rows_of(&self, segments: u8) -> u8 {
        let rows = (0..SEGMENTS).filter(|id| segments & 1 << id != 0);
        rows.fold(0, |rows, id| rows | self.segments[id].rows)
    }

    /// Returns the sequences of a writer's batch.
    pub(super) fn batch(&self, writer: u8) -> u8 {
        let entries = self.entries.iter().enumerate();
        let own = entries.filter(|(_, entry)| entry.is_some_and(|entry| entry.writer == writer));
        own.fold(0, |rows, (at, _)| rows | 1 << at)
    }
}

/// Returns the sequences up to a position.
pub(super) fn up_to(position: u8) -> u8 {
    (1 << position) - 1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Writer {
    /// Knows this many pages of names.
    Start {
        pages: u8,
    },
    Named,
    /// The answer to the first attempt, in this hour, is lost.
    Doubtful {
        hour: u8,
    },
    Acknowledged,
    /// The outcome is unknown.
    GivenUp,
}

/// A compactor, as far as it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Compactor {
    Idle,
    /// Holds the lease, and has followed the manifest.
    Leased {
        fence: u8,
        generation: u8,
        manifest: u8,
        is_clean: bool,
    },
    Begun {
        fence: u8,
        generation: u8,
        manifest: u8,
        segment: u8,
    },
    Written {
        fence: u8,
        generation: u8,
        manifest: u8,
        segment: u8,
        compacted: u8,
    },
    Replaced {
        fence: u8,
        replaced: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reader {
    Idle,
    /// Has the numbers and the manifest; only a flawed reader asks for the entries apart.
    Manifest {
        expected: u8,
        segments: u8,
        compacted: u8,
    },
    View {
        expected: u8,
        segments: u8,
        compacted: u8,
        entries: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sweeper {
    Idle,
    /// The hour has no entry that is needed. Its segments are looked for.
    Checked {
        hour: u8,
        segments: u8,
    },
    /// No segment is missing, or entries are held.
    Found {
        hour: u8,
        is_damaged: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tenant {
    pub(super) tables: Tables,
    pub(super) writers: [Writer; 2],
    pub(super) compactors: [Compactor; 2],
    pub(super) reader: Reader,
    pub(super) sweeper: Sweeper,
    pub(super) hour: u8,
    /// Answers that may still be lost, leases that may still end, objects that may still be lost.
    pub(super) losses: u8,
    pub(super) pauses: u8,
    pub(super) damages: u8,
    /// Sequences whose object the store has lost.
    pub(super) damaged: u8,
    pub(super) has_stale_read: bool,
    pub(super) has_double_read: bool,
    pub(super) has_early_trim: bool,
}
