//! A lease as a handle knows it.

use std::sync::atomic::AtomicBool;

/// A lease as long as it is held here; the database knows who holds it truly.
pub(super) struct Lease {
    pub(super) fence: i64,
    pub(super) is_given_back: AtomicBool,
}
