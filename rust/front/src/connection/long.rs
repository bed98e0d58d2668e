//! A long answer between its parts.

use std::io::Write;
use std::time::Instant;

use super::outgoing::{Answer, AnswerRest, Pace};
use crate::holding::SharePermit;
use crate::message::IncomingRequest;

const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const CHUNK_END: &[u8] = b"\r\n";

/// A request whose answer has begun. While a part of the answer is being sent, the request is with
/// its connection. While the next part is made, the request waits for a thread or is with a thread.
pub(crate) struct LongRequest {
    pub(crate) message: Box<IncomingRequest>,
    pub(crate) under_way: Option<SharePermit>,
    /// Share of the unsent bytes that the rest of the answer holds.
    pub(crate) unsent_held: Option<SharePermit>,
    pub(crate) body: LongBody,
}

/// The body of a long answer.
pub(crate) struct LongBody {
    rest: Box<dyn AnswerRest>,
    /// If true, the body is sent in chunks (RFC 9112, 7.1); else the body ends with the connection.
    is_chunked: bool,
    pub(crate) keep: bool,
    pub(crate) pace: Pace,
    /// Instant at which the client had taken every part that was made.
    pub(crate) paused_at: Instant,
}

impl LongBody {
    pub(crate) fn new(
        rest: Box<dyn AnswerRest>,
        is_chunked: bool,
        keep: bool,
        now: Instant,
    ) -> Self {
        Self { rest, is_chunked, keep, pace: Pace::new(now), paused_at: now }
    }

    /// Bytes of memory that the rest of the answer holds.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.rest.held_bytes()
    }

    /// Makes the next part, with `head` in front. Returns `None` at the end of the body.
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

    /// The end of the body, which is sent after the last part.
    pub(crate) fn end(self) -> Answer {
        let head = if self.is_chunked { LAST_CHUNK.to_vec() } else { Vec::new() };
        Answer { head, ..Answer::default() }
    }
}
