//! Turns at syncing. In each process at most one thread takes part, for all of its threads.
//!
//! Processes share the words, and any of them may be killed at any instant. So no process relies on
//! being woken: a waiting process looks again after a moment.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::storage::store::futex;

/// Time until a waiting process looks again, in case the process whose turn it is has died.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Words in shared memory. Any value is safe: the words only tell when to look.
#[derive(Default)]
#[repr(C)]
pub(super) struct Turns {
    unused: [AtomicU32; 2],
    /// Number of turns that have ended, modulo 2^32.
    ended: AtomicU32,
    unused_end: AtomicU32,
}

impl Turns {
    /// Returns the number of turns that have ended.
    pub(super) fn ended(&self) -> u32 {
        self.ended.load(Ordering::Acquire)
    }

    /// Ends a turn, and wakes all waiting processes.
    pub(super) fn end(&self) {
        self.ended.fetch_add(1, Ordering::AcqRel);
        futex::wake(&self.ended, i32::MAX);
    }

    /// Waits until a turn ends after `ended` was read.
    pub(super) fn wait(&self, ended: u32) {
        futex::wait(&self.ended, ended, LOOK_AGAIN);
    }
}
