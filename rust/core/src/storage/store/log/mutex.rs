//! A mutex between processes, in memory that they share, which outlives its holder.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

/// A mutex of the C library, on cache lines of its own.
///
/// Invariant: whoever opens the log alone makes it ([`Self::begin`]) before anybody else sees the
/// memory, and what unlocks it stays with the thread that has locked it.
#[repr(C, align(128))]
pub(super) struct MutexSpace(UnsafeCell<MaybeUninit<libc::pthread_mutex_t>>);

impl MutexSpace {
    /// Makes a mutex that works between processes and outlives its holder.
    #[expect(unsafe_code, reason = "the standard library has no mutex between processes")]
    pub(super) fn begin(&self) -> io::Result<()> {
        let mutex = self.0.get().cast::<libc::pthread_mutex_t>();
        let mut kind = MaybeUninit::uninit();
        // SAFETY: `kind` is made before it is used; nobody else uses the space yet, since the
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
        // SAFETY: by the invariant it was made.
        self.locked(unsafe { libc::pthread_mutex_lock(self.0.get().cast()) })
    }

    /// False where another thread holds it.
    #[expect(unsafe_code, reason = "the standard library has no mutex between processes")]
    pub(super) fn try_lock(&self) -> io::Result<bool> {
        // SAFETY: as in `lock`.
        match unsafe { libc::pthread_mutex_trylock(self.0.get().cast()) } {
            libc::EBUSY => Ok(false),
            outcome => self.locked(outcome).map(|()| true),
        }
    }

    #[expect(unsafe_code, reason = "the standard library has no mutex between processes")]
    fn locked(&self, outcome: libc::c_int) -> io::Result<()> {
        match outcome {
            // Its holder died. What the words say of its work is settled by those who read them.
            libc::EOWNERDEAD => {
                // SAFETY: this thread holds it now.
                checked(unsafe { libc::pthread_mutex_consistent(self.0.get().cast()) })
            }
            outcome => checked(outcome),
        }
    }

    /// Gives the mutex up.
    #[expect(unsafe_code, reason = "the standard library has no mutex between processes")]
    pub(super) fn unlock(&self) {
        // SAFETY: by the invariant this thread holds it. Unlocking it cannot fail then.
        unsafe { libc::pthread_mutex_unlock(self.0.get().cast()) };
    }
}

fn checked(outcome: libc::c_int) -> io::Result<()> {
    if outcome == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(outcome)) }
}
