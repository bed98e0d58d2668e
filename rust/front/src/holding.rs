//! The share of its worker that one request or answer holds.

use std::sync::Arc;

use crate::fair::Owner;
use crate::shared::{Amount, WorkerState};

/// A part of an amount that an owner holds. It is given back when dropped.
pub(crate) struct SharePermit {
    shared: Arc<WorkerState>,
    amount: Amount,
    owner: Owner,
    held: u64,
}

impl SharePermit {
    /// Counts an amount that is held already, without a check of the owner's share.
    pub(crate) fn add(shared: &Arc<WorkerState>, amount: Amount, owner: &Owner, held: u64) -> Self {
        shared.share(amount).add(owner, held);
        Self { shared: Arc::clone(shared), amount, owner: owner.clone(), held }
    }

    /// Takes the amount if the owner's share of `bound` allows it.
    pub(crate) fn take(
        shared: &Arc<WorkerState>,
        amount: Amount,
        owner: &Owner,
        held: u64,
        bound: u64,
    ) -> Option<Self> {
        let fits = shared.share(amount).take(owner, held, bound);
        fits.then(|| Self { shared: Arc::clone(shared), amount, owner: owner.clone(), held })
    }

    /// Takes more of `bound`, until `held` is reached. Takes nothing and returns false if the
    /// owner's share does not allow it.
    pub(crate) fn grow_to(&mut self, held: u64, bound: u64) -> bool {
        let more = held.saturating_sub(self.held);
        let fits = self.shared.share(self.amount).grow(&self.owner, self.held, more, bound);
        if fits {
            self.held += more;
        }
        fits
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Gives back `part`, or the whole amount if that is less.
    pub(crate) fn give(&mut self, part: u64) {
        let part = part.min(self.held);
        if part == 0 {
            return;
        }
        self.held -= part;
        self.shared.share(self.amount).give(&self.owner, part);
        if self.held == 0 && self.amount == Amount::Unsent {
            self.shared.room_is_made();
        }
    }

    /// Moves the amount to another owner.
    pub(crate) fn move_to(&mut self, owner: &Owner) {
        let share = self.shared.share(self.amount);
        share.add(owner, self.held);
        share.give(&self.owner, self.held);
        self.owner = owner.clone();
    }
}

impl Drop for SharePermit {
    fn drop(&mut self) {
        self.give(self.held);
    }
}
