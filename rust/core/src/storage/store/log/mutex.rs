//! A mutex in memory that processes share. It survives the death of its holder.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

/// A mutex of the C library, alone on its cache lines.
///
/// Invariant: the process that opens the log alone makes the mutex ([`Self::begin`]) before any
/// other process sees the memory. The guard that unlocks the mutex stays with the thread that
/// locked it.
#[repr(C, align(128))]
pub(super) struct MutexSpace(UnsafeCell<MaybeUninit<libc::pthread_mutex_t>>);

impl MutexSpace {
    /// Makes a mutex that works between processes and survives the death of its holder.
    #[expect(unsafe_code, reason = "the standard library has no mutex between processes")]
    pub(super) fn begin(&self) -> io::Result<()> {
        let mutex = self.0.get().cast::<libc::pthread_mutex_t>();
        let mut kind = MaybeUninit::uninit();
        // SAFETY: `kind` is made before it is used. No other process uses the space yet, since the
        // caller is alone with the log.
        unsafe {
            checked(libc::pthread_mutexattr_init(kind.as_mut_ptr()))?;
            let shared = libc::PTHREAD_PROCESS_SHARED;
            checked(libc::pthread_mutexattr_setpshared(kind.as_mut_ptr(), shared))?;
            let robust = libc::PTHREAD_MUTEX_ROBUST;
            checked(libc::pthread_mutexattr_setrobust(kind.as_mut_ptr(), robust))?;
            mutex.write_bytes(0, 1);
            checked(libc::pthread_mutex_init(mutex, kind.as_ptr()))?;
            checked(libc::pthread_mutexattr_destroy(kind.as_mut_ptr()))
        }
    }

    /// Takes the mutex, also from a holder that died.
    #[expect(unsafe_code, reason = "the standard library has no mutex between processes")]
    pub(super) fn lock(&self) -> io::Result<()> {
        // SAFETY: by the invariant the mutex was made.
        self.locked(unsafe { libc::pthread_mutex_lock(self.0.get().cast()) })
    }

    /// Tries to take the mutex. Returns false if another thread holds it.
    #[expect(unsafe_code, reason = "the standard library has no mutex between processes")]
    pub(super) fn try_lock(&self) -> io::Result<bool> {
        // SAFETY: by the invariant the mutex was made.
        match unsafe { libc::pthread_mutex_trylock(self.0.get().cast()) } {
            libc::EBUSY => Ok(false),
            outcome => self.locked(outcome).map(|()| true),
        }
    }

    #[expect(unsafe_code, reason = "the standard library has no mutex between processes")]
    fn locked(&self, outcome: libc::c_int) -> io::Result<()> {
        match outcome {
            // The holder died. Readers of the shared words complete the work that the words
            // describe.
            libc::EOWNERDEAD => {
                // SAFETY: this thread holds the mutex now.
                checked(unsafe { libc::pthread_mutex_consistent(self.0.get().cast()) })
            }
            outcome => checked(outcome),
        }
    }

    /// Releases the mutex.
    #[expect(unsafe_code, reason = "the standard library has no mutex between processes")]
    pub(super) fn unlock(&self) {
        // SAFETY: by the invariant this thread holds the mutex, so unlocking cannot fail.
        unsafe { libc::pthread_mutex_unlock(self.0.get().cast()) };
    }
}

fn checked(outcome: libc::c_int) -> io::Result<()> {
    if outcome == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(outcome)) }
}
