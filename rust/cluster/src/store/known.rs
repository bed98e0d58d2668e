//! Ids of the data that a handle was shown. The database must still have them.

use fleetcast_core::storage::store::FirstIds;

use crate::identity::Id;

/// The last entry, page and manifest that were shown; `None` if there was none yet.
#[derive(Clone, Copy, Default)]
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
