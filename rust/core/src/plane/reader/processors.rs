//! Shares the processors among the reads in progress in this process. Many large reads must not
//! start more threads than can run at once, or all other requests wait behind them.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ON_ONE: Cell<bool> = const { Cell::new(false) };
    static HELPERS_TIME: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Returns the CPU time that other threads have used for reads of this thread since the last call.
#[must_use]
pub fn take_helpers_time() -> Duration {
    HELPERS_TIME.take()
}

/// Does `work`, whose reads use one processor if `is_on_one` is true.
pub fn reading_on_one<R>(is_on_one: bool, work: impl FnOnce() -> R) -> R {
    let before = ON_ONE.replace(is_on_one);
    let result = work();
    ON_ONE.set(before);
    result
}

/// A read in progress, until this value is dropped.
pub(super) struct ReadGuard(());

impl ReadGuard {
    pub(super) fn begin() -> Self {
        UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Returns the number of processors that this read should use: its share, at least 1. Example:
    /// with 8 processors and 3 reads in progress, each read uses 2.
    #[expect(clippy::unused_self, reason = "a read counts itself")]
    fn processors(&self) -> usize {
        if ON_ONE.get() {
            return 1;
        }
        part_of(processors(), UNDER_WAY.load(Ordering::Relaxed))
    }

    /// Returns the number of items in each part of this read. The read has a part for each of its
    /// processors if the product of its items and segments is at least `shared_from`.
    pub(super) fn part_items(&self, items: usize, segments: usize, shared_from: usize) -> usize {
        let parts = if items * segments < shared_from { 1 } else { self.processors() };
        items.div_ceil(parts).max(1)
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the results of `read` on the parts, in their order. Each part but the first is read by a
/// helper, which is a thread of its own.
pub(super) fn in_threads<P: Sync, R: Send>(parts: &[P], read: impl Fn(&P) -> R + Sync) -> Vec<R> {
    let Some((first, others)) = parts.split_first() else { return Vec::new() };
    let help = |part| (read(part), thread_time());
    thread::scope(|scope| {
        let help = &help;
        let helpers: Vec<_> = others.iter().map(|part| scope.spawn(move || help(part))).collect();
        let mut results = vec![read(first)];
        for helper in helpers {
            let (result, used) = helper.join().unwrap_or_else(|panic| resume_unwind(panic));
            HELPERS_TIME.set(HELPERS_TIME.get() + used);
            results.push(result);
        }
        results
    })
}

/// CPU time that this thread has used since it began.
fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

fn part_of(processors: usize, reads: usize) -> usize {
    (processors / reads.max(1)).max(1)
}

/// Returns the processors that this process may use. The system is asked only once, because it
/// reads files for the answer.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_share_the_processors_and_each_has_one() {
        assert_eq!([1, 2, 3, 4, 9].map(|reads| part_of(8, reads)), [8, 4, 2, 2, 1]);
    }

    #[test]
    fn each_part_has_a_result_in_the_order_of_the_parts() {
        let parts = [3_u64, 1, 4, 1, 5];
        assert_eq!(in_threads(&parts, |part| part * 2), [6, 2, 8, 2, 10]);
        assert!(in_threads(&[], |part: &u64| *part).is_empty());
    }

    #[test]
    fn the_time_of_helpers_is_that_of_all_parts_but_the_first_and_is_told_once() {
        let work = |millis: &u64| {
            let until = thread_time() + Duration::from_millis(*millis);
            while thread_time() < until {}
        };
        in_threads(&[0, 3, 4], work);
        in_threads(&[3], work);
        assert!(take_helpers_time() >= Duration::from_millis(7));
        assert_eq!(take_helpers_time(), Duration::ZERO);
    }

    #[test]
    fn a_small_read_has_one_part_and_no_part_is_empty() {
        let read = ReadGuard::begin();
        assert_eq!(read.part_items(7, 1, 8), 7);
        assert_eq!(read.part_items(0, 9, 8), 1);
        assert!((1..=9).contains(&read.part_items(9, 1, 8)));
    }

    #[test]
    fn a_read_on_one_processor_has_one_part() {
        let read = ReadGuard::begin();
        let parts = || read.part_items(64, 64, 8);
        assert_eq!(reading_on_one(true, parts), 64);
        assert!(!ON_ONE.get());
    }

    #[test]
    fn a_read_counts_until_it_ends() {
        // Tests of other modules may read at the same time.
        let many: Vec<ReadGuard> = (0..2 * processors()).map(|_| ReadGuard::begin()).collect();
        assert_eq!(many[0].processors(), 1);
        assert!(UNDER_WAY.load(Ordering::Relaxed) >= many.len());
    }
}
