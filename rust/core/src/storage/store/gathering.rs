//! A short wait before a commit, for writers that are about to write again.
//!
//! When a commit acknowledges writers, they write again while the next commit runs, and wait for
//! the commit after it. So the writers fall into two halves, and each half waits for two commits.
//! To join the halves, a leader waits until enough batches have arrived: as many as the last commit
//! has acknowledged and left behind. It waits for half the time of a commit at most. It does not
//! wait if the batches have arrived, or if a commit takes no longer than waking a thread. Example:
//! a commit of 4 ms acknowledges 6 batches and leaves 2 behind. The next leader waits up to 2 ms
//! for 8 batches.
//!
//! Processes may share the words. Any value is safe: the words only tell how long to wait.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::futex;

/// Greatest number of batches that a word may announce. A greater number is not believed.
const WANTED_MAX: u32 = 4_096;
/// Shortest commit that is worth a wait before it.
const COMMIT_MIN: Duration = Duration::from_micros(200);
const PATIENCE_MAX: Duration = Duration::from_millis(5);
/// Number of commits that begin without a wait, after a wait in which no batch arrived.
const COMMITS_SKIPPED: u32 = 16;

/// Counts of batches, in memory that processes may share.
#[derive(Default)]
#[repr(C, align(64))]
pub struct GroupCounts {
    /// Number of batches that were written, modulo 2^32.
    written: AtomicU32,
    /// Value of `written` when the last commit began.
    begun: AtomicU32,
    /// Value of `written` once all likely batches have arrived.
    wanted: AtomicU32,
    /// Not 0 while a leader waits for batches.
    is_awaited: AtomicU32,
}

impl GroupCounts {
    /// Counts batches that were written. Wakes the waiting leader if all likely batches have
    /// arrived.
    pub fn note_written(&self, count: u32) {
        let written = self.written.fetch_add(count, Ordering::SeqCst).wrapping_add(count);
        if self.is_awaited.load(Ordering::SeqCst) != 0 && self.missing(written) == 0 {
            futex::wake(&self.written, 1);
        }
    }

    /// Waits for the batches that are likely to arrive. Returns false if none arrived.
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
            futex::wait(&self.written, written, left);
        };
        self.is_awaited.store(0, Ordering::SeqCst);
        last != first
    }

    fn missing(&self, written: u32) -> u32 {
        let missing = self.wanted.load(Ordering::Relaxed).wrapping_sub(written);
        if missing > WANTED_MAX { 0 } else { missing }
    }

    /// Begins a commit. Returns the number of batches that it will acknowledge.
    fn begin(&self) -> u32 {
        let written = self.written.load(Ordering::Relaxed);
        written.wrapping_sub(self.begun.swap(written, Ordering::Relaxed))
    }

    /// Ends a commit that acknowledges some batches. Called before their writers learn of it.
    fn end(&self, acknowledged: u32) {
        let written = self.written.load(Ordering::Relaxed);
        self.wanted.store(written.wrapping_add(acknowledged), Ordering::Relaxed);
    }
}

/// The duration of a commit as this process measured it, and the number of commits that still begin
/// without a wait.
#[derive(Default)]
pub struct Patience {
    commit_ns: AtomicU64,
    skipped: AtomicU32,
}

impl Patience {
    /// Waits before a commit, if the wait is likely to pay.
    pub fn gather(&self, gathering: &GroupCounts) {
        let commit = Duration::from_nanos(self.commit_ns.load(Ordering::Relaxed));
        if commit < COMMIT_MIN {
            return;
        }
        let skipped = self.skipped.load(Ordering::Relaxed);
        let skipped = match skipped.checked_sub(1) {
            Some(left) => left,
            None if gathering.wait((commit / 2).min(PATIENCE_MAX)) => 0,
            None => COMMITS_SKIPPED,
        };
        self.skipped.store(skipped, Ordering::Relaxed);
    }

    /// Runs a commit. Records its duration, and how many writers are likely to write again.
    ///
    /// # Errors
    /// Returns the errors of `commit`.
    pub fn timed<E>(
        &self,
        gathering: &GroupCounts,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let (acknowledged, began) = (gathering.begin(), Instant::now());
        commit()?;
        self.note(began.elapsed());
        gathering.end(acknowledged);
        Ok(())
    }

    fn note(&self, commit: Duration) {
        let now = u64::try_from(commit.as_nanos()).unwrap_or(u64::MAX);
        let before = self.commit_ns.load(Ordering::Relaxed);
        let weighed = if before == 0 { now } else { before - before / 4 + now / 4 };
        self.commit_ns.store(weighed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Longer than any test may take.
    const LONG: Duration = Duration::from_millis(999);

    fn after_a_commit_of(batches: u32) -> GroupCounts {
        let gathering = GroupCounts::default();
        gathering.note_written(batches);
        let acknowledged = gathering.begin();
        assert_eq!(acknowledged, batches);
        gathering.end(acknowledged);
        gathering
    }

    #[test]
    fn a_leader_does_not_wait_once_as_many_are_there_as_were_acknowledged() {
        let gathering = after_a_commit_of(3);
        gathering.note_written(3);
        assert!(gathering.wait(LONG) && gathering.is_awaited.load(Ordering::SeqCst) == 0);
        assert_eq!(gathering.begin(), 3);
    }

    /// The last batch ends the wait, not the patience.
    #[test]
    fn a_leader_is_woken_by_the_last_batch() {
        for _ in 0..50 {
            let gathering = after_a_commit_of(8);
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
    fn batches_that_came_during_a_commit_count_for_the_next() {
        let gathering = GroupCounts::default();
        gathering.note_written(5);
        let acknowledged = gathering.begin();
        gathering.note_written(3);
        gathering.end(acknowledged);
        assert_eq!(gathering.missing(gathering.written.load(Ordering::SeqCst)), 5);
    }

    #[test]
    fn a_leader_that_waited_in_vain_does_not_wait_for_some_commits() {
        let (gathering, patience) = (after_a_commit_of(2), Patience::default());
        patience.note(2 * COMMIT_MIN);
        patience.gather(&gathering);
        assert_eq!(patience.skipped.load(Ordering::Relaxed), COMMITS_SKIPPED);
        patience.gather(&gathering);
        assert_eq!(patience.skipped.load(Ordering::Relaxed), COMMITS_SKIPPED - 1);
    }

    #[test]
    fn words_of_a_dead_process_may_be_any_number() {
        let gathering = GroupCounts::default();
        gathering.wanted.store(u32::MAX / 2, Ordering::Relaxed);
        assert!(gathering.wait(LONG));
    }
}
