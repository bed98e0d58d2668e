//! Asks for memory that is read soon. A processor guesses the next address of reads in order. It waits
//! for every other read of memory that is in none of its caches.

/// Asks for the line of the caches that `item` lies in.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "there is no safe call for it")]
#[inline]
pub(crate) fn prefetch_line<T>(item: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 has the instruction, and it has no effect that a program can see.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) }
}

/// Does nothing: the standard library has no call for this processor.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch_line<T>(_: &T) {}
