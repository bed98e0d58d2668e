//! Locks and waits of the standard library for [`super::committer`]. The model of
//! `rust/core/tests/committer.rs` uses `loom`'s instead.

pub(super) use std::sync::{Mutex, MutexGuard};
pub(super) use std::thread::{Thread, current};

use std::thread;
use std::time::Duration;

/// Sleeps until another thread unparks this thread, or until `limit` has passed.
pub(super) fn park(limit: Option<Duration>) {
    limit.map_or_else(thread::park, thread::park_timeout);
}
