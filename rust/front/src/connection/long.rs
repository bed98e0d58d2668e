//! A long answer between its parts.

use std::io::Write;
use std::time::Instant;

use super::outgoing::{Answer, Pace, Rest};
use crate::holding::Holding;
use crate::message::Message;

const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const CHUNK_END: &[u8] = b"\r\n";

/// A request whose answer has begun. It is with its connection while a part of the answer is being
/// sent, and with a thread, or waits for one, while the next part is made.
pub(crate) struct Long {
    pub(crate) message: Box<Message>,
    pub(crate) under_way: Option<Holding>,
    /// Share of unsent bytes that the rest takes.
    pub(crate) unsent_held: Option<Holding>,
    pub(crate) body: LongBody,
}

/// The body of a long answer.
pub(crate) struct LongBody {
    rest: Box<dyn Rest>,
    /// In chunks (RFC 9112, 7.1), else up to the end of the connection.
    is_chunked: bool,
    pub(crate) keep: bool,
    pub(crate) pace: Pace,
    /// Instant at which its client had taken all that there was.
    pub(crate) paused_at: Instant,
}

impl LongBody {
    pub(crate) fn new(rest: Box<dyn Rest>, is_chunked: bool, keep: bool, now: Instant) -> Self {
        Self { rest, is_chunked, keep, pace: Pace::new(now), paused_at: now }
    }

    /// Bytes of memory that its rest takes.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.rest.held_bytes()
    }

    /// Makes the part that is to be sent next, behind `head`; `None` at the end.
    pub(crate) fn next(&mut self, mut head: Vec<u8>) -> Option<Answer> {
        let mut pieces = vec![self.rest.next()?];
        if self.is_chunked {
            let bytes: usize = pieces.iter().map(|piece| (**piece).as_ref().len()).sum();
            // Writing to memory cannot fail.
            let _ = write!(head, "{bytes:x}\r\n");
            pieces.push(Box::new(CHUNK_END));
        }
        Some(Answer { head, pieces, rest: None })
    }

    /// The end of the body, which is to be sent behind all parts.
    pub(crate) fn end(self) -> Answer {
        let head = if self.is_chunked { LAST_CHUNK.to_vec() } else { Vec::new() };
        Answer { head, ..Answer::default() }
    }
}
