//! Turns and shares, so that no owner can take all of what all use.
//!
//! An owner is whoever a bound is counted for: an account, or an address where no key is known yet.
//! One rule serves all that is shared (threads, calls, requests, bytes): an owner may hold as much
//! as stays free for the others. One alone gets half, a second one half of what is left, and so on;
//! who holds nothing gets what is left.

mod share;

mod key_owners;
mod queue;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use key_owners::KeyOwners;
pub use queue::{Always, FairQueue, Lane, Starts, Turn};
pub use share::Share;

/// Name of an owner, cheap to keep in many places.
pub type Owner = Arc<str>;

/// The name of an owner, kept or not.
pub trait OwnerName {
    /// The name in text.
    fn text(&self) -> &str;

    /// The name to be kept.
    fn kept(&self) -> Owner;
}

impl OwnerName for Owner {
    fn text(&self) -> &str {
        self
    }

    fn kept(&self) -> Owner {
        self.clone()
    }
}

impl OwnerName for str {
    fn text(&self) -> &str {
        self
    }

    fn kept(&self) -> Owner {
        self.into()
    }
}
