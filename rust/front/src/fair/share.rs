//! The amount of a resource that each owner holds, and the amount that each owner may hold.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Owner;

/// Counts an amount by owner against a bound. Safe to share between threads.
///
/// Example: with a bound of 16, a lone owner gets 8. If others hold 8, it gets 4.
#[derive(Debug, Default)]
pub struct Share(Mutex<LocalShare>);

impl Share {
    /// Takes `amount` of `bound`. Takes nothing and returns false if the amount is more than the
    /// owner's share.
    ///
    /// If no owner holds anything, every amount is taken, however large.
    pub fn take(&self, owner: &Owner, amount: u64, bound: u64) -> bool {
        self.with(|holdings| holdings.take(owner, amount, bound))
    }

    /// Takes `more` for a holder that has taken `part`. Takes nothing and returns false if that is
    /// more than the owner's share.
    pub fn grow(&self, owner: &Owner, part: u64, more: u64, bound: u64) -> bool {
        self.with(|holdings| {
            let is_alone = holdings.total == part;
            let fits = more == 0 || is_alone || holdings.fits(owner, more, bound);
            if fits {
                holdings.add(owner, more);
            }
            fits
        })
    }

    /// Counts an amount that is held already, without a check of the owner's share.
    pub fn add(&self, owner: &Owner, amount: u64) {
        self.with(|holdings| holdings.add(owner, amount));
    }

    /// Gives back an amount that was taken.
    pub fn give(&self, owner: &str, amount: u64) {
        self.with(|holdings| holdings.give(owner, amount));
    }

    /// Amount that an owner holds now.
    pub fn held(&self, owner: &str) -> u64 {
        self.with(|holdings| holdings.held(owner))
    }

    /// Amount that all owners hold together.
    pub fn total(&self) -> u64 {
        self.with(|holdings| holdings.total)
    }

    fn with<R>(&self, work: impl FnOnce(&mut LocalShare) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// `Share` without a lock, for a caller that has exclusive access.
#[derive(Debug, Default)]
pub(super) struct LocalShare {
    /// Owners that hold an amount above zero; other owners need no memory.
    held: HashMap<Owner, u64, foldhash::fast::RandomState>,
    total: u64,
}

impl LocalShare {
    pub(super) fn fits(&self, owner: &str, amount: u64, bound: u64) -> bool {
        let needed = match self.held(owner) {
            0 => amount,
            held => held + 2 * amount,
        };
        self.total == 0 || self.total + needed <= bound
    }

    pub(super) fn take(&mut self, owner: &Owner, amount: u64, bound: u64) -> bool {
        let fits = self.fits(owner, amount, bound);
        if fits {
            self.add(owner, amount);
        }
        fits
    }

    pub(super) fn add(&mut self, owner: &Owner, amount: u64) {
        if amount == 0 {
            return;
        }
        self.total += amount;
        if let Some(held) = self.held.get_mut(owner) {
            *held += amount;
        } else {
            self.held.insert(owner.clone(), amount);
        }
    }

    pub(super) fn give(&mut self, owner: &str, amount: u64) {
        let Some(held) = self.held.get_mut(owner) else {
            debug_assert_eq!(amount, 0, "only what was taken is given back");
            return;
        };
        debug_assert!(*held >= amount, "only what was taken is given back");
        let amount = amount.min(*held);
        self.total -= amount;
        *held -= amount;
        if *held == 0 {
            self.held.remove(owner);
        }
    }

    pub(super) fn held(&self, owner: &str) -> u64 {
        self.held.get(owner).copied().unwrap_or(0)
    }
}
