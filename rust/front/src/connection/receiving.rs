//! Input: heads, and the bodies that follow them.

use std::io;
use std::mem;
use std::time::Instant;

use super::{Connection, ConnectionState, Need, Phase};
use crate::head::{BodyFraming, BodyLimits, HeadFault, HeadScanner, RequestHead};
use crate::message::{IncomingRequest, ParsedRequest};
use crate::shared::WorkerState;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl ConnectionState {
    /// Looks for a whole head, first in the input that is held, then in new input.
    pub(super) fn read_head(
        &mut self,
        connection: &Connection,
        shared: &WorkerState,
        scratch: &mut [u8],
        now: Instant,
    ) -> io::Result<Need> {
        let resumes = self.phase == Phase::Idle && !self.held.is_empty();
        let count = if resumes { 0 } else { self.socket()?.receive(scratch)? };
        if count == 0 && !resumes {
            return Ok(Need::Close);
        }
        if self.phase == Phase::Idle {
            self.phase = Phase::Head;
            self.scanner = HeadScanner::new();
            self.limits = shared.limits();
            self.deadline = Some(now + self.limits.read_deadline);
        }
        let come = &scratch[..count];
        let bytes_max = self.limits.head_bytes_max;
        let end = if self.held.is_empty() {
            self.scanner.end(come, bytes_max)
        } else {
            self.held.extend_from_slice(come);
            self.scanner.end(&self.held, bytes_max)
        };
        if let Ok(None) = end {
            if self.held.is_empty() {
                self.held = come.to_vec();
            }
            return Ok(Need::Read);
        }
        let held = mem::take(&mut self.held);
        let input = if held.is_empty() { come } else { &held };
        let (asked, body) = match end.and_then(|end| self.take_head(end.unwrap_or(0), input)) {
            Ok(taken) => taken,
            Err(refusal) => {
                self.unread_bytes = 0;
                (ParsedRequest::Malformed(refusal), Vec::new())
            }
        };
        self.phase = Phase::Busy;
        self.deadline = None;
        let address = &connection.peer.address;
        Ok(Need::Serve(Box::new(IncomingRequest::new(asked, body, address, &self.limits))))
    }

    /// Reads the head that ends at `end` in `input`. Takes the part of the body that has arrived,
    /// and holds the remaining input.
    fn take_head(
        &mut self,
        end: usize,
        input: &[u8],
    ) -> Result<(ParsedRequest, Vec<u8>), HeadFault> {
        let (head, input) = input.split_at(end);
        let head = RequestHead::parse(head.to_vec())?;
        let framing = BodyFraming::of(
            &head,
            BodyLimits {
                body_bytes_max: self.limits.body_bytes_max,
                drain_bytes_max: self.limits.drain_bytes_max,
                takes_chunks: self.limits.takes_chunks,
            },
        );
        if framing.is_chunked {
            self.unread_bytes = 0;
            return Ok((ParsedRequest::Whole { head, framing }, input.to_vec()));
        }
        let come = usize::try_from(framing.body_bytes).unwrap_or(usize::MAX).min(input.len());
        let (body, after) = input.split_at(come);
        self.held = after.to_vec();
        self.unread_bytes = framing.body_bytes - come as u64;
        let body = if framing.is_buffered { body.to_vec() } else { Vec::new() };
        Ok((ParsedRequest::Whole { head, framing }, body))
    }

    /// Receives the body of `message`, which has not arrived yet.
    fn await_body(&mut self, message: Box<IncomingRequest>, now: Instant) -> io::Result<Need> {
        self.phase = Phase::Body;
        self.deadline = Some(now + self.limits.request_deadline);
        self.unread_bytes = 0;
        if message.expects_continue() {
            self.socket()?.send([CONTINUE].into_iter())?;
        }
        self.wake_at(message.missing_bytes());
        self.receiving = Some(message);
        Ok(Need::Read)
    }

    pub(super) fn read_body(&mut self) -> io::Result<Need> {
        let Some(mut message) = self.receiving.take() else { return Ok(Need::Close) };
        let received = message.receive(self.socket()?);
        let is_over = matches!(received, Ok(0)) || message.missing_bytes() == 0;
        if is_over {
            self.wake_at(1);
            self.phase = Phase::Busy;
            self.deadline = None;
            return Ok(Need::Serve(message));
        }
        self.wake_at(message.missing_bytes());
        self.receiving = Some(message);
        received.map(|_| Need::Read)
    }

    fn wake_at(&mut self, bytes: usize) {
        if bytes != self.low_water_bytes {
            self.low_water_bytes = bytes;
            if let Some(socket) = &self.socket {
                socket.wake_at(bytes);
            }
        }
    }
}

impl Connection {
    /// Takes a request back from the thread that served it, to receive the body that has not
    /// arrived.
    pub(crate) fn await_body(
        &self,
        shared: &WorkerState,
        message: Box<IncomingRequest>,
        now: Instant,
    ) -> Need {
        let mut state = self.lock();
        let step = state.await_body(message, now).unwrap_or(Need::Close);
        state.settle(self, shared, step)
    }

    /// Receives the body of `message` if the whole body has arrived.
    pub(crate) fn take_body(&self, message: &mut IncomingRequest) -> io::Result<()> {
        let mut state = self.lock();
        let socket = state.socket()?;
        if socket.waiting_bytes()? >= message.missing_bytes() {
            let count = message.receive(socket)? as u64;
            state.unread_bytes = state.unread_bytes.saturating_sub(count);
        }
        Ok(())
    }
}
