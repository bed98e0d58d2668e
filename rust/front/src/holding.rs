//! The share of its worker that one request or answer holds.

use std::sync::Arc;

use crate::fair::Owner;
use crate::shared::{Amount, Shared};

/// A part of an amount that an owner holds; dropped, it is given back.
pub(crate) struct Holding {
    shared: Arc<Shared>,
    amount: Amount,
    owner: Owner,
    held: u64,
}

impl Holding {
    /// Counts what is there already, whatever the owner holds.
    pub(crate) fn add(shared: &Arc<Shared>, amount: Amount, owner: &Owner, held: u64) -> Self {
        shared.share(amount).add(owner, held);
        Self { shared: Arc::clone(shared), amount, owner: owner.clone(), held }
    }

    /// Takes so much of `bound`, if the owner's share allows.
    pub(crate) fn take(
        shared: &Arc<Shared>,
        amount: Amount,
        owner: &Owner,
        held: u64,
        bound: u64,
    ) -> Option<Self> {
        let fits = shared.share(amount).take(owner, held, bound);
        fits.then(|| Self { shared: Arc::clone(shared), amount, owner: owner.clone(), held })
    }

    /// Takes more of `bound`, until it is so much; returns false and takes nothing if the owner's
    /// share does not allow it.
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

    /// Gives back a part, or all where that is less.
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

    /// Has another owner hold it.
    pub(crate) fn move_to(&mut self, owner: &Owner) {
        let share = self.shared.share(self.amount);
        share.add(owner, self.held);
        share.give(&self.owner, self.held);
        self.owner = owner.clone();
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.give(self.held);
    }
}
