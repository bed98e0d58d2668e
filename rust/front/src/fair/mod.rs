//! Turns and shares, so that no owner can take all of a resource that every owner uses.
//!
//! An owner is an account, or an address while no key is known. Bounds are counted by owner. One
//! rule serves every shared resource (threads, calls, requests, bytes): an owner may hold as much
//! as stays free for the others. Example: of 16 threads, a lone owner gets 8, and a second owner
//! gets 4. An owner that holds nothing may take all that is left.
//!
//! The processor is shared by time: of the owners that wait, the owner that has used least CPU time
//! lately is served next.

mod share;

pub mod thread_time;
mod usage;

mod key_owners;
mod queue;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use key_owners::KeyOwners;
pub use queue::{FairQueue, Lane, NoCheck, StartCheck, Work};
pub use share::Share;

/// Name of an owner, cheap to keep in many places.
pub type Owner = Arc<str>;
