//! Parts of shares that calls hold.

use std::sync::Arc;

use fleetcast_front::fair::{Owner, Share};

/// A part of a share. It is given back when dropped.
pub(crate) struct SharePart {
    share: Arc<Share>,
    owner: Owner,
    amount: u64,
}

impl SharePart {
    /// Takes `amount` of `bound`. Returns `None` if that is more than the owner's share.
    pub(crate) fn take(share: &Arc<Share>, owner: &Owner, amount: u64, bound: u64) -> Option<Self> {
        let part = || Self { share: Arc::clone(share), owner: owner.clone(), amount };
        share.take(owner, amount, bound).then(part)
    }

    /// Takes `more` too. Returns false if that is more than the owner's share.
    pub(crate) fn grow(&mut self, more: u64, bound: u64) -> bool {
        let fits = self.share.grow(&self.owner, self.amount, more, bound);
        if fits {
            self.amount += more;
        }
        fits
    }
}

impl Drop for SharePart {
    fn drop(&mut self) {
        self.share.give(&self.owner, self.amount);
    }
}
