//! Counters in memory that a supervisor shares with its children.

#![expect(unsafe_code, reason = "memory that other processes read")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The words of the shared memory. They must not include the rows that Python counts in, because
/// Python adds without atomic operations.
#[derive(Debug)]
pub struct Counters {
    words: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: only atomic operations touch the words, and the words stay mapped until the drop.
unsafe impl Send for Counters {}
// SAFETY: as above.
unsafe impl Sync for Counters {}

impl Counters {
    /// Maps the first `bytes` of shared memory, which must exist as long as the process lives.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn map(memory: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping touches no other memory.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, memory.as_raw_fd(), 0)
        };
        match NonNull::new(start.cast()) {
            Some(words) if start != libc::MAP_FAILED => {
                Ok(Self { words, count: bytes / size_of::<AtomicU64>() })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Adds to the counter at `index`. An unknown index has no effect.
    pub fn add(&self, index: usize, amount: u64) {
        if let Some(word) = self.words().get(index) {
            word.fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// Takes an amount from a gauge that was added to it.
    pub fn take(&self, index: usize, amount: u64) {
        if let Some(word) = self.words().get(index) {
            word.fetch_sub(amount, Ordering::Relaxed);
        }
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: `count` words are mapped, aligned to a page, and zeros are valid counters.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.count) }
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        let bytes = self.count * size_of::<AtomicU64>();
        // SAFETY: this mapping was made by `map` and has no other owner.
        unsafe { libc::munmap(self.words.as_ptr().cast(), bytes) };
    }
}

/// Durations of one kind, counted by upper bound.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Upper bounds in seconds, ascending.
    pub bounds: Arc<[f64]>,
    /// Index of a counter for each bound, and of a last counter for longer durations.
    pub buckets: Box<[usize]>,
    /// Index of the sum in nanoseconds.
    pub sum: usize,
}

impl Histogram {
    /// Counts one duration.
    pub fn observe(&self, counters: &Counters, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        if let Some(index) = self.buckets.get(bucket) {
            counters.add(*index, 1);
        }
        counters.add(self.sum, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }
}
