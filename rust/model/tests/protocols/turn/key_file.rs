//! Statements that change the key file, or the keys under which the database takes bytes. Each
//! returns `None` if it cannot happen now.
//!
//! `KeyFile::change` reads the file and compares-and-swaps it, until that succeeds. So the file
//! changes in one step here, whatever the process knew of it before.

use super::state::{Compactor, KeyFile, TurningTenant};
use super::{Flaw, Turn};

impl Turn {
    /// One of the two writes of `KeyFile::turn`: the new key becomes known, and then it seals. Any
    /// compactor goes on where another compactor died. `TURN_KEY` opens the keys of the file, and no
    /// other key. The comparison with the file is enough: the statement asks for no fence.
    pub(super) fn turn_key(&self, state: &mut TurningTenant, compactor: usize) -> Option<()> {
        let Compactor::Ready(known) = state.compactors[compactor] else { return None };
        let is_compared = self.flaw != Some(Flaw::TurnWithoutCompare);
        let file = if is_compared { state.file } else { known };
        let next = if file.newest() == file.sealing { file.with_new() } else { file.turned() };
        (file.old().is_none() && next.newest() <= self.turns).then_some(())?;
        (state.file, state.open) = (next, next.keys);
        state.compactors[compactor] = Compactor::Ready(next);
        Some(())
    }

    /// `CLOSE`: only the key that seals stays open. Without the fence, a compactor that slept
    /// through a turn would open the key of its time again.
    pub(super) fn close(
        &self,
        state: &mut TurningTenant,
        known: KeyFile,
        compactor: usize,
    ) -> Option<Compactor> {
        self.ask_fence(state, compactor, Flaw::CloseWithoutFence)?;
        if self.flaw != Some(Flaw::ClosedByDrop) {
            state.open = 1 << known.sealing;
        }
        Some(Compactor::Closed(known))
    }

    /// `DROP_KEY`. The key file tells keys by their slots, which a later key takes again. So the
    /// drop asks for the fence, too.
    pub(super) fn drop_old(
        &self,
        state: &mut TurningTenant,
        known: KeyFile,
        compactor: usize,
    ) -> Option<()> {
        self.ask_fence(state, compactor, Flaw::DropBySlot)?;
        let (old, known) = (state.file.old()?, known.old()?);
        (old % 2 == known % 2).then_some(())?;
        state.file = KeyFile::of(state.file.sealing);
        if self.flaw == Some(Flaw::ClosedByDrop) {
            state.open = state.file.keys;
        }
        Some(())
    }

    /// `Plane::rewrap`: the same keys under a new master key, which the model does not have.
    /// `REPLACE_KEY` leaves the open keys as they are, so that a closed key stays closed.
    pub(super) fn rewrap(&self, state: &mut TurningTenant) -> Option<()> {
        (self.flaw == Some(Flaw::RewrapOpens)).then_some(())?;
        state.open = state.file.keys;
        Some(())
    }

    /// Returns `None` if the statement is refused because another compactor has taken the lease.
    pub(super) fn ask_fence(
        &self,
        state: &TurningTenant,
        compactor: usize,
        left_out: Flaw,
    ) -> Option<()> {
        (self.flaw == Some(left_out) || state.holder == Some(compactor)).then_some(())
    }
}
