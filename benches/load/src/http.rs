//! HTTP/1.1 over a connection that stays open.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::drive::Connection;
use crate::recorded::Recorded;

const READ_BYTES: usize = 65_536;

/// A connection, and whole requests for it.
pub(crate) struct Http {
    socket: mio::net::TcpStream,
    requests: Recorded,
    /// Bytes of the current request that were sent.
    sent: usize,
    answer: Vec<u8>,
}

impl Http {
    /// # Errors
    ///
    /// An address where nobody listens.
    pub(crate) fn open(address: SocketAddr, requests: Recorded) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let socket = mio::net::TcpStream::from_std(socket);
        Ok(Self { socket, requests, sent: 0, answer: Vec::new() })
    }

    /// Its requests, to go on with on another connection.
    pub(crate) fn into_requests(self) -> Recorded {
        self.requests
    }

    fn send(&mut self) -> io::Result<()> {
        let request = self.requests.current();
        while self.sent < request.len() {
            match self.socket.write(&request[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<()> {
        loop {
            let filled = self.answer.len();
            self.answer.resize(filled + READ_BYTES, 0);
            let outcome = self.socket.read(&mut self.answer[filled..]);
            self.answer.truncate(filled + outcome.as_ref().map_or(0, |count| *count));
            match outcome {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(READ_BYTES) => {}
                Ok(_) => return Ok(()), // no more than that was there
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Connection for Http {
    fn socket(&mut self) -> &mut mio::net::TcpStream {
        &mut self.socket
    }

    fn begin(&mut self) -> io::Result<()> {
        self.requests.turn();
        self.sent = 0;
        self.answer.clear();
        self.send()
    }

    fn go_on(&mut self) -> io::Result<Option<u16>> {
        self.send()?;
        self.receive()?;
        answered(&self.answer)
    }
}

/// The status of an answer that is whole.
fn answered(answer: &[u8]) -> io::Result<Option<u16>> {
    let Some(head_end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = str::from_utf8(&answer[..head_end]).map_err(io::Error::other)?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok());
    let (Some(status), Some(length)) = (status, length) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    Ok((answer.len() >= head_end + 4 + length).then_some(status))
}

#[cfg(test)]
mod tests {
    use super::answered;

    #[test]
    fn an_answer_is_whole_with_the_last_byte_of_its_body() {
        let answer = b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}";
        for end in 0..answer.len() {
            assert_eq!(answered(&answer[..end]).unwrap(), None);
        }
        assert_eq!(answered(answer).unwrap(), Some(202));
        answered(b"HTTP/1.1 200 OK\r\n\r\n").unwrap_err();
    }
}
