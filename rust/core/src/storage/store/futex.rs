//! Waits for changes of a word in memory that processes share.

use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Waits until another thread calls [`wake`], for less than a second. Returns at once if the word
/// is not `value`. May also return early without a cause.
pub(super) fn wait(word: &AtomicU32, value: u32, patience: Duration) {
    let until = instant_in(patience);
    let none = ptr::null::<u32>();
    // SAFETY: the call reads the word and `until`, both of which outlive it.
    #[expect(unsafe_code, reason = "the standard library waits within a process only")]
    unsafe {
        let (word, wait) = (word.as_ptr(), libc::FUTEX_WAIT_BITSET);
        libc::syscall(libc::SYS_futex, word, wait, value, &raw const until, none, u32::MAX);
    }
}

/// Wakes `count` of the threads that wait for the word.
pub(super) fn wake(word: &AtomicU32, count: i32) {
    let none = ptr::null::<u32>();
    // SAFETY: the call uses the address of the word, which is mapped as long as it is borrowed.
    #[expect(unsafe_code, reason = "the standard library waits within a process only")]
    unsafe {
        let (word, wake) = (word.as_ptr(), libc::FUTEX_WAKE);
        libc::syscall(libc::SYS_futex, word, wake, count, none, none, 0);
    }
}

/// Returns the instant after `patience`, less than a second ahead, by the clock that the system
/// uses for the wait.
fn instant_in(patience: Duration) -> libc::timespec {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes `at`, and every system has this clock.
    #[expect(unsafe_code, reason = "the standard library does not tell the number")]
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut at);
    }
    at.tv_nsec += libc::c_long::from(patience.subsec_nanos());
    if at.tv_nsec >= 1_000_000_000 {
        at.tv_nsec -= 1_000_000_000;
        at.tv_sec += 1;
    }
    at
}
