//! Shares the processors among the reads in progress in this process. Many large reads must not
//! start more threads than can run at once, or all other requests wait behind them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

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
    pub(super) fn processors(&self) -> usize {
        part_of(processors(), UNDER_WAY.load(Ordering::Relaxed))
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    }
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
    fn a_read_counts_until_it_ends() {
        // Tests of other modules may read at the same time.
        let many: Vec<ReadGuard> = (0..2 * processors()).map(|_| ReadGuard::begin()).collect();
        assert_eq!(many[0].processors(), 1);
        assert!(UNDER_WAY.load(Ordering::Relaxed) >= many.len());
    }
}
