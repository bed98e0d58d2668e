//! A lease as a handle knows it.

use std::sync::atomic::AtomicBool;

/// A lease for as long as this handle holds it. The database decides which process holds it.
pub(super) struct Lease {
    pub(super) fence: i64,
    pub(super) is_given_back: AtomicBool,
}
