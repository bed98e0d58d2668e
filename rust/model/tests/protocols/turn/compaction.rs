//! Steps of compactors, which turn the key. Each returns `None` if it cannot happen now.

use super::state::{Compactor, KeyFile, TurningTenant, Work};
use super::{Flaw, Turn};

impl Turn {
    /// `ClusterStore::take_lease`, and the keys of the key file.
    pub(super) fn take_lease(&self, state: &mut TurningTenant, compactor: usize) -> Option<()> {
        let is_needed = state.file.old().is_some() || state.file.sealing < self.turns;
        let is_asleep = state.compactors[compactor] != Compactor::Idle;
        (is_needed && !is_asleep).then_some(())?;
        if state.holder.is_some() {
            state.pauses = state.pauses.checked_sub(1)?;
        }
        (state.fence, state.holder) = (state.fence + 1, Some(compactor));
        let work = Work { fence: state.fence, file: state.file };
        state.compactors[compactor] = Compactor::Leased(work);
        Some(())
    }

    /// Does the next step of a compactor.
    pub(super) fn compact(&self, state: &mut TurningTenant, compactor: usize) -> Option<()> {
        let next = match state.compactors[compactor] {
            Compactor::Idle => return None,
            Compactor::Leased(work) => self.begin(state, work),
            Compactor::Closed(work) => Some(Compactor::Written(work, state.log)),
            Compactor::Written(work, rows) => self.replace_manifest(state, work, rows),
            Compactor::Merged(work) => Some(Compactor::Opened(work)),
            Compactor::Opened(work) => self.replace_page(state, work),
            Compactor::Resealed(work) => look(state, work),
            Compactor::Looked(work) => {
                self.drop_old(state, work);
                None
            }
        };
        if next.is_none() && state.holder == Some(compactor) {
            state.holder = None;
        }
        state.compactors[compactor] = next.unwrap_or(Compactor::Idle);
        Some(())
    }

    /// Brings a new key, or closes the old key if there is one. The statement changes key file and
    /// open keys together.
    fn begin(&self, state: &mut TurningTenant, work: Work) -> Option<Compactor> {
        (state.fence == work.fence).then_some(())?;
        let Some(old) = work.file.old() else {
            let sealing = work.file.sealing + 1;
            state.file = KeyFile { keys: state.file.keys | 1 << sealing, sealing };
            state.open |= 1 << sealing;
            return None;
        };
        if self.flaw != Some(Flaw::ClosedByDrop) {
            state.open &= !(1 << old);
        }
        Some(Compactor::Closed(work))
    }

    /// `REPLACE`: the segment has all rows of the last segment, too.
    fn replace_manifest(
        &self,
        state: &mut TurningTenant,
        work: Work,
        rows: [u8; 2],
    ) -> Option<Compactor> {
        let is_fenced = self.flaw != Some(Flaw::ManifestWithoutFence);
        (!is_fenced || state.fence == work.fence).then_some(())?;
        state.segment = work.file.sealing;
        for (log, rows) in state.log.iter_mut().zip(rows) {
            *log &= !rows;
        }
        Some(Compactor::Merged(work))
    }

    /// `REPLACE_PAGES`, with the fence as a condition.
    fn replace_page(&self, state: &mut TurningTenant, work: Work) -> Option<Compactor> {
        let is_fenced = self.flaw != Some(Flaw::PageWithoutFence);
        (!is_fenced || state.fence == work.fence).then_some(())?;
        state.page = work.file.sealing;
        Some(Compactor::Resealed(work))
    }

    /// `KeyFile::drop_old`, with the fence as a condition.
    fn drop_old(&self, state: &mut TurningTenant, work: Work) {
        let Some(old) = state.file.old() else { return };
        let is_same = match self.flaw {
            Some(Flaw::DropBySlot) => work.file.old().is_some_and(|known| known % 2 == old % 2),
            _ => state.fence == work.fence,
        };
        if is_same {
            state.file.keys &= !(1 << old);
            state.open &= !(1 << old);
        }
    }
}

/// `Compactor::old_blocks`, and the heads of segments and pages.
fn look(state: &TurningTenant, work: Work) -> Option<Compactor> {
    let old = work.file.old()?;
    (state.sealing_keys() & 1 << old == 0).then_some(Compactor::Looked(work))
}
