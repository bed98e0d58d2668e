//! Turns at syncing. In each process one thread at most takes part, for all of its threads.
//!
//! The words are shared by processes, any of which may be killed at any instant. So no process relies
//! on being woken: a process that waits looks again after a moment.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::storage::store::futex;

/// Time until a process that waits looks if the process whose turn it is has died.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Words in shared memory. All may be any number: they only tell when to look.
#[derive(Default)]
#[repr(C)]
pub(super) struct Turns {
    unused: [AtomicU32; 2],
    /// Turns that have ended, modulo 2^32.
    ended: AtomicU32,
    unused_end: AtomicU32,
}

impl Turns {
    /// Turns that have ended.
    pub(super) fn ended(&self) -> u32 {
        self.ended.load(Ordering::Acquire)
    }

    /// Ends a turn, and wakes each process that waits.
    pub(super) fn end(&self) {
        self.ended.fetch_add(1, Ordering::AcqRel);
        futex::wake(&self.ended, i32::MAX);
    }

    /// Waits for the end of the turn that follows `ended` others.
    pub(super) fn wait(&self, ended: u32) {
        futex::wait(&self.ended, ended, LOOK_AGAIN);
    }
}
