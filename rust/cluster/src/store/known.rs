//! Ids of the data that a handle was shown. The database must still have them.

use std::collections::VecDeque;

use fleetcast_core::storage::store::FirstIds;

use crate::identity::Id;

/// Bound on the ids of a handle, 64 KiB. If the log has more entries that are not compacted, the
/// handle is opened again after a promotion.
pub(super) const IDS_MAX: usize = 4096;

/// The last entry, page and manifest that were shown; `None` if there was none yet.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Watermarks {
    /// Entry of the log: position and id.
    pub(super) entry: Option<(u64, Id)>,
    /// Page of names: position and id.
    pub(super) page: Option<(u64, Id)>,
    /// A page, and the first ids of the names in the next page.
    pub(super) next_ids: Option<(u64, FirstIds)>,
    /// Manifest: generation and id.
    pub(super) manifest: Option<(u64, Id)>,
}

impl Watermarks {
    pub(super) fn note_entry(&mut self, sequence: u64, id: Id) {
        if self.entry.is_none_or(|(known, _)| known < sequence) {
            self.entry = Some((sequence, id));
        }
    }

    pub(super) fn note_page(&mut self, page: u64, id: Id) {
        if self.page.is_none_or(|(known, _)| known < page) {
            self.page = Some((page, id));
        }
    }

    pub(super) fn note_manifest(&mut self, generation: u64, id: Id) {
        if self.manifest.is_none_or(|(known, _)| known < generation) {
            self.manifest = Some((generation, id));
        }
    }
}

/// The present state of the data that a handle was shown before.
pub(super) struct ShownState {
    pub(super) generation: u64,
    pub(super) manifest: Option<Id>,
    /// Id of the last page that was shown.
    pub(super) page: Option<Id>,
    pub(super) last: u64,
    pub(super) compacted: u64,
    /// The reader's position, and the id of the entry there.
    pub(super) after: u64,
    pub(super) entry: Option<Id>,
}

impl ShownState {
    /// Returns true if no data that was shown has been undone or replaced.
    pub(super) fn continues(&self, known: &Watermarks) -> bool {
        let is_manifest = known.manifest.is_none_or(|(generation, id)| {
            generation < self.generation
                || (generation == self.generation && self.manifest == Some(id))
        });
        let is_page = known.page.is_none_or(|(_, id)| self.page == Some(id));
        let is_entry = known.entry.is_none_or(|(sequence, id)| {
            // The statement does not read entries before the reader's own position, nor compacted
            // entries.
            sequence <= self.compacted
                || (sequence <= self.last && (sequence != self.after || self.entry == Some(id)))
        });
        is_manifest && is_page && is_entry
    }
}

/// Ids of the entries that a handle was shown and that are not compacted, without a gap.
#[derive(Default)]
pub(super) struct ShownEntries {
    /// The timeline whose history has all of them.
    pub(super) timeline: u32,
    /// Position of the first id.
    pub(super) first: u64,
    ids: VecDeque<Id>,
}

impl ShownEntries {
    pub(super) fn note(&mut self, sequence: u64, id: Id) {
        let next = self.first + self.ids.len() as u64;
        if self.ids.is_empty() || sequence > next {
            self.ids.clear();
            self.first = sequence;
        } else if sequence < next {
            return;
        }
        self.ids.push_back(id);
        if self.ids.len() > IDS_MAX {
            self.forget_until(self.first);
        }
    }

    /// Forgets the entries up to a position.
    pub(super) fn forget_until(&mut self, sequence: u64) {
        while self.first <= sequence && self.ids.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Returns true if a log has all entries. Rows of compacted entries come with the manifest. `log`
    /// is in the order of positions, and begins at the first entry or before it.
    pub(super) fn are_in(&self, log: &[(u64, Id)], compacted: u64) -> bool {
        let is_whole = self.ids.is_empty() || self.first <= compacted + 1;
        let own = (self.first..).zip(self.ids.iter().copied());
        let mut needed = own.filter(|(sequence, _)| *sequence > compacted);
        let found = |(sequence, id)| {
            log.binary_search_by_key(&sequence, |(at, _)| *at).is_ok_and(|at| log[at].1 == id)
        };
        is_whole && needed.all(found)
    }
}
