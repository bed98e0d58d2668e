//! Readiness of many descriptors, by epoll, and a way to end the wait from any thread.

#![expect(unsafe_code, reason = "epoll and eventfd have no form in the standard library")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Event that a descriptor is armed for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Interest {
    /// Input to read, once; the descriptor must then be armed again.
    ReadOnce,
    /// Room to write, once.
    WriteOnce,
    /// Input to read, reported for as long as it is there.
    Read,
}

impl Interest {
    const fn bits(self) -> u32 {
        let bits = match self {
            Self::ReadOnce => libc::EPOLLIN | libc::EPOLLONESHOT,
            Self::WriteOnce => libc::EPOLLOUT | libc::EPOLLONESHOT,
            Self::Read => libc::EPOLLIN,
        };
        bits.cast_unsigned()
    }
}

/// An epoll instance. Each descriptor has a token, which names it in events.
#[derive(Debug)]
pub(crate) struct Poll(OwnedFd);

impl Poll {
    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no memory is involved.
        descriptor(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(Self)
    }

    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn arm(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, Interest::Read)
    }

    /// Waits for `patience` at most. Appends events to `events`, up to its capacity.
    ///
    /// # Errors
    /// Returns the error of the system call, and `Interrupted` if a signal arrives.
    pub(crate) fn wait(
        &self,
        events: &mut Vec<libc::epoll_event>,
        patience: Duration,
    ) -> io::Result<()> {
        // Rounded up, so that a deadline has passed when the wait ends.
        let milliseconds = patience.as_micros().div_ceil(1000).try_into().unwrap_or(i32::MAX);
        let room = events.spare_capacity_mut();
        let length = i32::try_from(room.len()).unwrap_or(i32::MAX);
        let start = room.as_mut_ptr().cast();
        // SAFETY: the call writes `length` events at most, into spare capacity.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), start, length, milliseconds) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the kernel has written `count` events behind the old end.
        unsafe { events.set_len(events.len() + count) };
        Ok(())
    }

    fn control(
        &self,
        operation: libc::c_int,
        fd: impl AsFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.bits(), u64: token };
        let raw = fd.as_fd().as_raw_fd();
        // SAFETY: the call reads one event.
        let outcome =
            unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, raw, &raw mut event) };
        if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// An eventfd. It is readable from the first [`Self::wake`] until it is read.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no memory is involved.
        descriptor(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) }).map(Self)
    }

    pub(crate) fn wake(&self) {
        let one = 1_u64;
        // SAFETY: the call reads eight bytes. It fails only if the count is full: the loop is awake
        // then.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads and discards the input of a descriptor that does not block: an eventfd or a pipe.
pub(crate) fn quiet(fd: impl AsFd) {
    let mut bytes = [0_u8; 4096];
    // SAFETY: the call writes into `bytes`.
    unsafe { libc::read(fd.as_fd().as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
}

fn descriptor(raw: libc::c_int) -> io::Result<OwnedFd> {
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
