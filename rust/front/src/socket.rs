//! Sockets that never block: the few system calls for which the standard library has no safe form.

#![expect(unsafe_code, reason = "system calls that write into memory without clearing it first")]

use std::io;
use std::mem;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;

/// Bound on the pieces of an answer that one call sends; the kernel takes at most 1,024.
const PIECES_MAX: usize = 64;

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The address without its port; empty if the socket has no address. Example: Unix sockets.
    pub address: Arc<str>,
    /// The port; 0 if the socket has no port.
    pub port: u16,
}

/// A connected stream.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl Socket {
    /// Receives the input that has arrived, as much as fits. Returns 0 at the end of the stream.
    ///
    /// # Errors
    /// Returns `WouldBlock` if no input has arrived.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: `buffer` is writable for its length.
        size(unsafe {
            libc::recv(self.raw(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
        })
    }

    /// Receives input to the end of `buffer`, at most `bytes_max`. The buffer must have room for
    /// these bytes. Returns 0 at the end of the stream.
    ///
    /// # Errors
    /// Returns the errors of [`Self::receive`].
    pub(crate) fn receive_into(&self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        let room = buffer.spare_capacity_mut();
        let room_bytes = room.len().min(bytes_max);
        // SAFETY: the spare capacity is writable for `room_bytes`, and is not read.
        let count = size(unsafe {
            libc::recv(self.raw(), room.as_mut_ptr().cast(), room_bytes, libc::MSG_DONTWAIT)
        })?;
        // SAFETY: the kernel has written `count` bytes behind the old end.
        unsafe { buffer.set_len(buffer.len() + count) };
        Ok(count)
    }

    /// Sends the beginning of `pieces`, as much as the socket takes at once.
    ///
    /// # Errors
    /// Returns `WouldBlock` if the socket takes no bytes.
    pub(crate) fn send<'a>(&self, pieces: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; PIECES_MAX];
        let mut count = 0;
        for (vector, piece) in vectors.iter_mut().zip(pieces) {
            vector.iov_base = piece.as_ptr().cast_mut().cast();
            vector.iov_len = piece.len();
            count += 1;
        }
        // SAFETY: zeros are a valid message.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = vectors.as_mut_ptr();
        message.msg_iovlen = count;
        // SAFETY: the first `count` vectors name memory that is borrowed for the call, and is only read.
        size(unsafe {
            libc::sendmsg(self.raw(), &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
        })
    }

    /// Count of the bytes that have arrived and are not yet received.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn waiting_bytes(&self) -> io::Result<usize> {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the call writes one integer.
        let outcome = unsafe { libc::ioctl(self.raw(), libc::FIONREAD, &raw mut bytes) };
        if outcome < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(bytes.unsigned_abs() as usize)
        }
    }

    /// Makes the socket readable only when `bytes` have arrived, the peer is gone or no more fits.
    /// If the system refuses, the loop only wakes more often.
    pub(crate) fn wake_at(&self, bytes: usize) {
        let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        let length = length_of(&bytes);
        let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVLOWAT);
        // SAFETY: the call reads one integer.
        unsafe { libc::setsockopt(self.raw(), level, name, (&raw const bytes).cast(), length) };
    }

    /// Tells the peer that no more bytes will be sent.
    ///
    /// # Errors
    /// Returns the error of the system call if the peer is gone.
    pub(crate) fn end_output(&self) -> io::Result<()> {
        // SAFETY: no memory is involved.
        let outcome = unsafe { libc::shutdown(self.raw(), libc::SHUT_WR) };
        if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn raw(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Socket {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

/// A listening socket, which the processes of a service share.
#[derive(Debug)]
pub(crate) struct Listener(OwnedFd);

impl Listener {
    /// Takes a listening socket over, and makes it non-blocking.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let raw = descriptor.as_raw_fd();
        // SAFETY: no memory is involved.
        let flags = unsafe { libc::fcntl(raw, libc::F_GETFL) };
        // SAFETY: as above.
        if flags < 0 || unsafe { libc::fcntl(raw, libc::F_SETFL, flags | libc::O_NONBLOCK) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(descriptor))
    }

    /// Accepts the next connection.
    ///
    /// # Errors
    /// Returns `WouldBlock` if no connection waits, and other errors if the peer is gone again or
    /// no descriptor is left.
    pub(crate) fn accept(&self) -> io::Result<(Socket, Peer)> {
        // SAFETY: zeros are a valid address, of no family.
        let mut address: libc::sockaddr_storage = unsafe { mem::zeroed() };
        let mut length = length_of(&address);
        // SAFETY: the call writes an address of at most `length` bytes.
        let raw = unsafe {
            libc::accept4(
                self.0.as_raw_fd(),
                (&raw mut address).cast(),
                &raw mut length,
                libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
            )
        };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        let socket = Socket(unsafe { OwnedFd::from_raw_fd(raw) });
        Ok((socket, peer_of(&address)))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn peer_of(address: &libc::sockaddr_storage) -> Peer {
    let known = match libc::c_int::from(address.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says the type of the address; the storage is larger and aligned.
            let of = unsafe { &*(&raw const *address).cast::<libc::sockaddr_in>() };
            let ip = u32::from_be(of.sin_addr.s_addr).into();
            SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(of.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let of = unsafe { &*(&raw const *address).cast::<libc::sockaddr_in6>() };
            let ip = of.sin6_addr.s6_addr.into();
            SocketAddr::V6(SocketAddrV6::new(ip, u16::from_be(of.sin6_port), 0, 0))
        }
        _ => return Peer { address: "".into(), port: 0 },
    };
    Peer { address: known.ip().to_string().into(), port: known.port() }
}

fn length_of<T>(value: &T) -> libc::socklen_t {
    mem::size_of_val(value).try_into().unwrap_or(libc::socklen_t::MAX)
}

fn size(outcome: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(outcome).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_peer_has_the_address_and_the_port_that_it_speaks_from() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                assert!(address.starts_with('['), "a machine without IPv6 has IPv4");
                continue;
            };
            let port = listener.local_addr().unwrap();
            let ours = Listener::new(listener.into()).unwrap();
            assert_eq!(ours.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
            let client = TcpStream::connect(port).unwrap();
            let (_, peer) = ours.accept().unwrap();
            let local = client.local_addr().unwrap();
            assert_eq!((&*peer.address, peer.port), (&*local.ip().to_string(), local.port()));
        }
    }
}
