//! An answer on its way to its client, and the time that the client may take to receive it.

use std::fmt;
use std::io;
use std::iter;
use std::time::{Duration, Instant};

use crate::limits::ConnectionLimits;
use crate::socket::Socket;

/// Bytes that are sent without a copy, and kept until the client has taken them.
pub type Piece = Box<dyn AsRef<[u8]> + Send>;

/// The part of a long answer that is made while its client takes it.
pub trait AnswerRest: Send {
    /// Returns the next bytes of the body, and `None` after the last bytes. If it panics, the
    /// connection ends without the end of the body.
    fn next(&mut self) -> Option<Piece>;

    /// Bytes of memory that this part holds until the answer ends.
    fn held_bytes(&self) -> u64;
}

/// The body of an answer.
pub enum OutgoingBody {
    /// The whole body.
    Pieces(Vec<Piece>),
    /// A source that makes the body piece by piece.
    Rest(Box<dyn AnswerRest>),
}

/// Bytes below which a piece is copied after the head. Such a copy costs less than keeping the
/// piece.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// An answer; only its `rest` is still to be made.
#[derive(Default)]
pub struct Answer {
    /// The head, and the pieces of the body that were small enough to be copied.
    pub head: Vec<u8>,
    /// The pieces of the body that are not in `head`.
    pub pieces: Vec<Piece>,
    /// The source of the body of a long answer. Such an answer has only its head here.
    pub rest: Option<Box<dyn AnswerRest>>,
}

impl Answer {
    /// Appends a piece of the body.
    pub(crate) fn push(&mut self, piece: Piece) {
        let bytes = (*piece).as_ref();
        if self.pieces.is_empty() && bytes.len() < COPIED_BYTES_MAX {
            self.head.extend_from_slice(bytes);
        } else {
            self.pieces.push(piece);
        }
    }

    /// Bytes of the answer without its `rest`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().map(<[u8]>::len).sum()
    }

    /// Returns true if the answer has neither a head nor a body.
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

/// Speed of a client since its answer began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    began_at: Instant,
    taken_bytes: u64,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { began_at: now, taken_bytes: 0 }
    }

    /// Leaves out a time during which the client had no bytes to take.
    pub(crate) fn pause(&mut self, pause: Duration) {
        self.began_at += pause;
    }
}

/// The part of an answer that the client has not taken.
#[derive(Debug)]
pub(crate) struct OutgoingAnswer {
    answer: Answer,
    /// Count of the parts that were sent whole: the head, then the pieces.
    sent_pieces: usize,
    /// Bytes that were sent of the next part.
    sent_of_piece: usize,
    unsent_bytes: usize,
    pub(crate) pace: Pace,
    /// Instant at which the connection is closed, unless the client takes more bytes before.
    pub(crate) deadline: Instant,
}

impl OutgoingAnswer {
    pub(crate) fn new(answer: Answer, pace: Pace, limits: &ConnectionLimits, now: Instant) -> Self {
        Self {
            unsent_bytes: answer.len(),
            answer,
            sent_pieces: 0,
            sent_of_piece: 0,
            pace,
            deadline: now + limits.answer,
        }
    }

    /// Bytes that the client has not taken.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Sends as much as the socket takes at once. Returns the count of the bytes sent.
    ///
    /// # Errors
    /// Returns `WouldBlock` if the socket takes no bytes, and other errors if the peer is gone.
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
        self.pace.taken_bytes += sent as u64;
        let rate = limits.answer_bytes_per_second_min.max(1);
        let slowest = Duration::from_millis(self.pace.taken_bytes.saturating_mul(1000) / rate);
        // The kernel takes some megabytes at once, so the slowest rate alone would be generous.
        self.deadline = now.min(self.pace.began_at + slowest) + limits.answer;
        Ok(sent)
    }

    /// Drops the pieces that were sent whole.
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
