//! An answer on its way to its client, and how long the client may take for it.

use std::fmt;
use std::io;
use std::iter;
use std::time::{Duration, Instant};

use crate::limits::ConnectionLimits;
use crate::socket::Socket;

/// Bytes that are sent from where they lie, and kept until the client has taken them.
pub type Piece = Box<dyn AsRef<[u8]> + Send>;

/// A whole answer.
#[derive(Default)]
pub struct Answer {
    /// The head, and as much of the body as is better copied than kept.
    pub head: Vec<u8>,
    /// The rest of the body.
    pub pieces: Vec<Piece>,
}

impl Answer {
    /// Bytes of it all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().map(<[u8]>::len).sum()
    }

    /// True of no answer at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn all(&self) -> impl Iterator<Item = &[u8]> {
        iter::once(&*self.head).chain(self.pieces.iter().map(|piece| (**piece).as_ref()))
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer of {} bytes", self.len())
    }
}

/// The part of an answer that the client has not taken.
#[derive(Debug)]
pub(crate) struct Outgoing {
    answer: Answer,
    /// Count of the head and the pieces that were sent whole.
    sent_pieces: usize,
    /// Bytes sent of the next.
    sent_of_piece: usize,
    unsent_bytes: usize,
    began_at: Instant,
    taken_bytes: u64,
    /// Instant at which the client loses its connection, unless it takes more until then.
    pub(crate) deadline: Instant,
}

impl Outgoing {
    pub(crate) fn new(answer: Answer, limits: &ConnectionLimits, now: Instant) -> Self {
        Self {
            unsent_bytes: answer.len(),
            answer,
            sent_pieces: 0,
            sent_of_piece: 0,
            began_at: now,
            taken_bytes: 0,
            deadline: now + limits.answer,
        }
    }

    /// Bytes that the client has not taken.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Sends as much as the socket takes at once, and counts it in bytes.
    ///
    /// # Errors
    /// `WouldBlock` where it takes nothing, others where the peer is gone.
    pub(crate) fn send(
        &mut self,
        socket: &Socket,
        limits: &ConnectionLimits,
        now: Instant,
    ) -> io::Result<usize> {
        let mut rest = self.answer.all().skip(self.sent_pieces);
        let first = rest.next().map(|piece| &piece[self.sent_of_piece..]);
        let sent = socket.send(first.into_iter().chain(rest).filter(|piece| !piece.is_empty()))?;
        self.forget(sent);
        self.taken_bytes += sent as u64;
        let rate = limits.answer_bytes_per_second_min.max(1);
        let slowest = Duration::from_millis(self.taken_bytes.saturating_mul(1000) / rate);
        // The kernel takes some megabytes at once, so the slowest rate alone would be generous.
        self.deadline = now.min(self.began_at + slowest) + limits.answer;
        Ok(sent)
    }

    /// Lets go of pieces that were sent whole.
    fn forget(&mut self, sent: usize) {
        self.unsent_bytes -= sent;
        let mut left = self.sent_of_piece + sent;
        loop {
            let piece = match self.sent_pieces.checked_sub(1) {
                None => self.answer.head.len(),
                Some(index) => match self.answer.pieces.get(index) {
                    Some(piece) => (**piece).as_ref().len(),
                    None => break,
                },
            };
            if left < piece {
                break;
            }
            left -= piece;
            match self.sent_pieces.checked_sub(1) {
                None => self.answer.head = Vec::new(),
                Some(index) => self.answer.pieces[index] = Box::new([]),
            }
            self.sent_pieces += 1;
        }
        self.sent_of_piece = left;
    }
}
