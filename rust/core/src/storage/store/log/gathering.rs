//! A moment before a sync, for those who are about to write again.
//!
//! Writers that one sync has acknowledged write again while the next one is under way, and wait for
//! the one after it: so they fall into two halves, and each waits for two syncs. Whoever is about to
//! sync therefore waits until as many batches are there as the last turn has acknowledged and left
//! behind, for a part of what a sync takes at most. Where as many are there nobody waits, nor where
//! a sync takes no longer than waking somebody up.
//!
//! The words are shared by processes, and may be any number: they only tell how long to wait.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::futex;

/// Batches by which a word may tell of more to come: more have never waited.
const WANTED_MAX: u32 = 4_096;
/// A sync that takes less is not waited before.
const SYNC_MIN: Duration = Duration::from_micros(200);
const PATIENCE_MAX: Duration = Duration::from_millis(5);
/// Turns that are not waited before once nobody came.
const TURNS_SKIPPED: u32 = 16;

/// Words in shared memory.
#[derive(Default)]
#[repr(C, align(64))]
pub(super) struct Gathering {
    /// Batches that were written, modulo 2^32.
    written: AtomicU32,
    /// Their number when the last turn began.
    begun: AtomicU32,
    /// Their number once all have come that are likely to.
    wanted: AtomicU32,
    /// Not 0 while somebody waits for them.
    is_awaited: AtomicU32,
}

impl Gathering {
    /// Notes batches that were written, and wakes who waits for them.
    pub(super) fn note_written(&self, count: u32) {
        let written = self.written.fetch_add(count, Ordering::SeqCst).wrapping_add(count);
        if self.is_awaited.load(Ordering::SeqCst) != 0 && self.missing(written) == 0 {
            futex::wake(&self.written, 1, u32::MAX);
        }
    }

    /// Waits for those who are likely to come; false where nobody did.
    fn wait(&self, patience: Duration) -> bool {
        let first = self.written.load(Ordering::SeqCst);
        if self.missing(first) == 0 {
            return true;
        }
        let began = Instant::now();
        self.is_awaited.store(1, Ordering::SeqCst);
        let last = loop {
            let written = self.written.load(Ordering::SeqCst);
            let left = patience.saturating_sub(began.elapsed());
            if self.missing(written) == 0 || left.is_zero() {
                break written;
            }
            futex::wait(&self.written, written, left, u32::MAX);
        };
        self.is_awaited.store(0, Ordering::SeqCst);
        last != first
    }

    fn missing(&self, written: u32) -> u32 {
        let missing = self.wanted.load(Ordering::Relaxed).wrapping_sub(written);
        if missing > WANTED_MAX { 0 } else { missing }
    }

    /// Begins a turn; returns how many batches it acknowledges.
    pub(super) fn begin(&self) -> u32 {
        let written = self.written.load(Ordering::Relaxed);
        written.wrapping_sub(self.begun.swap(written, Ordering::Relaxed))
    }

    /// Ends a turn that acknowledged some batches, before anybody learns of it.
    pub(super) fn end(&self, acknowledged: u32) {
        let written = self.written.load(Ordering::Relaxed);
        self.wanted.store(written.wrapping_add(acknowledged), Ordering::Relaxed);
    }
}

/// Time that this process found syncs to take, and turns before which it does not wait.
#[derive(Default)]
pub(super) struct Patience {
    sync_ns: AtomicU64,
    skipped: AtomicU32,
}

impl Patience {
    /// Waits before a sync, where that is likely to be worth it.
    pub(super) fn gather(&self, gathering: &Gathering) {
        let sync = Duration::from_nanos(self.sync_ns.load(Ordering::Relaxed));
        if sync < SYNC_MIN {
            return;
        }
        let skipped = self.skipped.load(Ordering::Relaxed);
        let skipped = match skipped.checked_sub(1) {
            Some(left) => left,
            None if gathering.wait((sync / 2).min(PATIENCE_MAX)) => 0,
            None => TURNS_SKIPPED,
        };
        self.skipped.store(skipped, Ordering::Relaxed);
    }

    /// Notes what a sync took.
    pub(super) fn note(&self, sync: Duration) {
        let now = u64::try_from(sync.as_nanos()).unwrap_or(u64::MAX);
        let before = self.sync_ns.load(Ordering::Relaxed);
        let weighed = if before == 0 { now } else { before - before / 4 + now / 4 };
        self.sync_ns.store(weighed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Longer than any test may take.
    const LONG: Duration = Duration::from_millis(999);

    fn after_a_turn_of(batches: u32) -> Gathering {
        let gathering = Gathering::default();
        gathering.note_written(batches);
        let acknowledged = gathering.begin();
        assert_eq!(acknowledged, batches);
        gathering.end(acknowledged);
        gathering
    }

    #[test]
    fn nobody_waits_once_as_many_are_there_as_were_acknowledged() {
        let gathering = after_a_turn_of(3);
        gathering.note_written(3);
        assert!(gathering.wait(LONG) && gathering.is_awaited.load(Ordering::SeqCst) == 0);
        assert_eq!(gathering.begin(), 3);
    }

    /// The wait itself is not what is measured: it ends by the last one that comes.
    #[test]
    fn who_waits_is_woken_by_the_last_one() {
        for _ in 0..50 {
            let gathering = after_a_turn_of(8);
            thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    assert!(gathering.wait(LONG));
                    gathering.missing(gathering.written.load(Ordering::SeqCst))
                });
                for _ in 0..8 {
                    scope.spawn(|| gathering.note_written(1));
                }
                assert_eq!(waiting.join().unwrap(), 0);
            });
        }
    }

    #[test]
    fn those_who_waited_during_a_turn_count_for_the_next() {
        let gathering = Gathering::default();
        gathering.note_written(5);
        let acknowledged = gathering.begin();
        gathering.note_written(3);
        gathering.end(acknowledged);
        assert_eq!(gathering.missing(gathering.written.load(Ordering::SeqCst)), 5);
    }

    #[test]
    fn one_who_waits_in_vain_waits_no_more_for_some_turns() {
        let (gathering, patience) = (after_a_turn_of(2), Patience::default());
        patience.note(2 * SYNC_MIN);
        patience.gather(&gathering);
        assert_eq!(patience.skipped.load(Ordering::Relaxed), TURNS_SKIPPED);
        patience.gather(&gathering);
        assert_eq!(patience.skipped.load(Ordering::Relaxed), TURNS_SKIPPED - 1);
    }

    #[test]
    fn words_of_a_dead_process_may_be_any_number() {
        let gathering = Gathering::default();
        gathering.wanted.store(u32::MAX / 2, Ordering::Relaxed);
        assert!(gathering.wait(LONG));
    }
}
