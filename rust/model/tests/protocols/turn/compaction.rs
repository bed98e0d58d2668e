//! Steps of compactors, which seal again what the old key sealed. Each returns `None` if it cannot
//! happen now.

use super::state::{Compactor, KeyFile, TurningTenant};
use super::{Flaw, Turn};

impl Turn {
    /// `TAKE`, the statement of `ClusterStore::take_lease`. Each earlier fence is refused from here
    /// on.
    pub(super) fn take_lease(&self, state: &mut TurningTenant, compactor: usize) -> Option<()> {
        let is_early = self.flaw == Some(Flaw::KeysBeforeLease);
        let next = match state.compactors[compactor] {
            Compactor::Idle if !is_early => Compactor::Leased,
            Compactor::Early(known) => Compactor::Ready(known),
            _ => return None,
        };
        if state.holder.is_some() {
            state.pauses = state.pauses.checked_sub(1)?;
        }
        state.holder = Some(compactor);
        state.compactors[compactor] = next;
        Some(())
    }

    /// `SealedStore::lock_compaction` reads the key file, for all statements under this lease. The
    /// database compares only fences. So a compactor that read the file before its lease could store
    /// bytes under a dropped key.
    pub(super) fn learn_keys(&self, state: &mut TurningTenant, compactor: usize) -> Option<()> {
        let is_early = self.flaw == Some(Flaw::KeysBeforeLease);
        let next = match state.compactors[compactor] {
            Compactor::Leased => Compactor::Ready(state.file),
            Compactor::Idle if is_early => Compactor::Early(state.file),
            _ => return None,
        };
        state.compactors[compactor] = next;
        Some(())
    }

    /// Does the next step of a compactor. Each compaction merges the log, and then goes on with the
    /// turn if it knows an old key.
    pub(super) fn compact(&self, state: &mut TurningTenant, compactor: usize) -> Option<()> {
        let next = match state.compactors[compactor] {
            Compactor::Idle | Compactor::Early(_) | Compactor::Leased => return None,
            Compactor::Ready(known) => Some(Compactor::Written(known, state.log)),
            Compactor::Written(known, rows) => self.replace_manifest(state, known, rows, compactor),
            Compactor::Merged(known) => self.close(state, known, compactor),
            Compactor::Closed(known) => search(state, known),
            Compactor::Searched(known) if state.page == known.old() => {
                Some(Compactor::Opened(known))
            }
            Compactor::Searched(known) => Some(Compactor::Looked(known)),
            Compactor::Opened(known) => self.replace_page(state, known, compactor),
            Compactor::Looked(known) => {
                self.drop_old(state, known, compactor);
                None
            }
        };
        if next.is_none() && state.holder == Some(compactor) {
            state.holder = None;
        }
        state.compactors[compactor] = next.unwrap_or(Compactor::Idle);
        Some(())
    }

    /// `REPLACE`: the segment has all rows of the last segment, too.
    fn replace_manifest(
        &self,
        state: &mut TurningTenant,
        known: KeyFile,
        rows: [u8; 2],
        compactor: usize,
    ) -> Option<Compactor> {
        self.ask_fence(state, compactor, Flaw::ManifestWithoutFence)?;
        state.segment = known.sealing;
        for (log, rows) in state.log.iter_mut().zip(rows) {
            *log &= !rows;
        }
        known.old().map(|_| Compactor::Merged(known))
    }

    /// `REPLACE_PAGES`.
    fn replace_page(
        &self,
        state: &mut TurningTenant,
        known: KeyFile,
        compactor: usize,
    ) -> Option<Compactor> {
        self.ask_fence(state, compactor, Flaw::PageWithoutFence)?;
        state.page = Some(known.sealing);
        Some(Compactor::Looked(known))
    }
}

/// `Compactor::old_blocks`, and the heads of segments. Rows that came between the merge and the
/// close are left to the next compaction.
fn search(state: &TurningTenant, known: KeyFile) -> Option<Compactor> {
    let old = known.old()?;
    (state.row_keys() & 1 << old == 0).then_some(Compactor::Searched(known))
}
