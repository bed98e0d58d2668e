//! The standard library's means by which [`super::committer`] locks and waits. The model of
//! `rust/core/tests/committer.rs` puts `loom`'s in their place.

pub(super) use std::sync::{Mutex, MutexGuard};
pub(super) use std::thread::{Thread, current};

use std::thread;
use std::time::Duration;

/// Sleeps until another thread unparks this thread, or until `limit` has passed.
pub(super) fn park(limit: Option<Duration>) {
    limit.map_or_else(thread::park, thread::park_timeout);
}
