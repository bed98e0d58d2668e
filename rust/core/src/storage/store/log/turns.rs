//! Turns at syncing: whoever waits is woken once, when it has no more to wait for, or to sync itself.
//!
//! The words are shared by processes, any of which may be killed at any instant. So nobody relies on
//! being woken: who waits looks again after a moment.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::futex;

/// Time until somebody who waits looks if the other died of his turn.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Words in shared memory. All may be any number: they only tell who is to be woken.
#[derive(Default)]
#[repr(C)]
pub(super) struct Turns {
    /// Position up to which the turn that has begun syncs.
    until: AtomicU64,
    /// Turns that have ended, modulo 2^32.
    ended: AtomicU32,
    unused: AtomicU32,
}

impl Turns {
    /// Begins a turn that syncs up to `until`.
    pub(super) fn begin(&self, until: u64) {
        self.until.store(until, Ordering::Release);
    }

    /// Turns that have ended.
    pub(super) fn ended(&self) -> u32 {
        self.ended.load(Ordering::Acquire)
    }

    /// Ends a turn: wakes all for whom it was enough, and one of the others, to take the next.
    pub(super) fn end(&self) {
        let turn = self.ended.fetch_add(1, Ordering::AcqRel);
        self.wake(i32::MAX, turn);
        self.pass_on(turn.wrapping_add(1));
    }

    /// Waits for the end of the turn that has begun, the one after `ended` others, or where that
    /// does not sync up to `end`, for the next, or to take that. Returns which it was.
    pub(super) fn wait(&self, ended: u32, end: u64) -> u32 {
        let is_enough = self.until.load(Ordering::Acquire) >= end;
        let turn = if is_enough { ended } else { ended.wrapping_add(1) };
        futex::wait(&self.ended, ended, LOOK_AGAIN, bit_of(turn));
        turn
    }

    /// Wakes another one to take `turn`, for one who may have been woken for that and needs it no
    /// more.
    pub(super) fn pass_on(&self, turn: u32) {
        if self.ended() == turn {
            self.wake(1, turn);
        }
    }

    fn wake(&self, count: i32, turn: u32) {
        futex::wake(&self.ended, count, bit_of(turn));
    }
}

/// Those who wait for a turn, as the system tells them from others.
fn bit_of(turn: u32) -> u32 {
    1 << (turn % u32::BITS)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn who_comes_after_the_end_of_a_turn_does_not_wait_for_it() {
        let turns = Turns::default();
        let ended = turns.ended();
        turns.end();
        assert_eq!(turns.wait(ended, 1), ended + 1, "a turn that began before may not be enough");
        assert_eq!(turns.ended(), 1);
    }

    #[test]
    fn each_waits_for_the_turn_that_is_enough() {
        let turns = Turns::default();
        turns.begin(100);
        assert_eq!(turns.wait(0, 100), 0);
        assert_eq!(turns.wait(0, 101), 1);
    }

    /// Turns of many threads, each of which is to see that its number is synced.
    #[test]
    fn nobody_is_left_waiting() {
        let turns = Turns::default();
        let (written, synced) = (AtomicU64::new(0), AtomicU64::new(0));
        let turn = std::sync::Mutex::new(());
        let write = || {
            let end = written.fetch_add(1, Ordering::SeqCst) + 1;
            loop {
                let ended = turns.ended();
                if synced.load(Ordering::SeqCst) >= end {
                    return turns.pass_on(ended);
                }
                let Ok(held) = turn.try_lock() else {
                    turns.wait(ended, end);
                    continue;
                };
                let until = written.load(Ordering::SeqCst);
                turns.begin(until);
                thread::yield_now();
                synced.fetch_max(until, Ordering::SeqCst);
                drop(held);
                turns.end();
            }
        };
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..500).for_each(|_| write()));
            }
        });
        assert_eq!(synced.load(Ordering::SeqCst), 8 * 500);
    }
}
