//! The version of the settings in force, in memory that the supervisor shares with its children.

#![expect(unsafe_code, reason = "memory that another process writes to")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

const BYTES: usize = size_of::<AtomicU64>();

/// The first word of the shared memory. It grows with every publication.
pub struct SettingsVersion {
    word: NonNull<AtomicU64>,
    /// The version that the last check saw.
    seen: AtomicU64,
}

// SAFETY: the word is only read, atomically, and stays mapped until the drop.
unsafe impl Send for SettingsVersion {}
// SAFETY: as above.
unsafe impl Sync for SettingsVersion {}

impl SettingsVersion {
    /// Maps the word at the beginning of shared memory.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn map(memory: &OwnedFd) -> io::Result<Self> {
        // SAFETY: a new mapping touches no other memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                BYTES,
                libc::PROT_READ,
                libc::MAP_SHARED,
                memory.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast()) {
            Some(word) if start != libc::MAP_FAILED => Ok(Self { word, seen: AtomicU64::new(0) }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The version in force.
    #[must_use]
    pub fn now(&self) -> u64 {
        // SAFETY: the word is mapped, aligned to a page, and written as one word.
        unsafe { self.word.as_ref() }.load(Ordering::Acquire)
    }

    /// Returns true if the version has changed since the last call.
    pub(crate) fn has_changed(&self) -> bool {
        let now = self.now();
        self.seen.swap(now, Ordering::Relaxed) != now
    }
}

impl Drop for SettingsVersion {
    fn drop(&mut self) {
        // SAFETY: this mapping was made by `map` and has no other owner.
        unsafe { libc::munmap(self.word.as_ptr().cast(), BYTES) };
    }
}
