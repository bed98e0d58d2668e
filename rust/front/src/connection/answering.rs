//! Output: answers, and what the connection does after them.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::outgoing::Pace;
use super::{Answer, Connection, ConnectionState, LongRequest, Need, OutgoingAnswer, Phase};
use crate::fair::Owner;
use crate::holding::SharePermit;
use crate::shared::{Amount, WorkerState};

/// Bound on the input that one call discards, in bytes.
const DISCARD_BYTES: usize = 16 << 10;

impl Connection {
    /// Sends a whole answer: the socket takes as much as it can now, and the loop sends the rest.
    /// The thread that served the request calls it.
    pub(crate) fn answer(
        &self,
        shared: &Arc<WorkerState>,
        answer: Answer,
        keep: bool,
        (owner, held): (&Owner, Option<SharePermit>),
        now: Instant,
    ) -> Need {
        let step = self.send(shared, answer, owner, now, |state| {
            state.keep = keep;
            Pace::new(now)
        });
        drop(held);
        step
    }

    /// Sends a part of a long answer as [`Self::answer`] sends a whole answer. The step that
    /// follows leads to the next part.
    pub(crate) fn answer_in_part(
        &self,
        shared: &Arc<WorkerState>,
        part: Answer,
        mut long: Box<LongRequest>,
        now: Instant,
    ) -> Need {
        let owner = long.message.owner.clone();
        long.body.pace.pause(now.saturating_duration_since(long.body.paused_at));
        self.send(shared, part, &owner, now, |state| {
            let pace = long.body.pace;
            state.long = Some(long);
            pace
        })
    }

    fn send(
        &self,
        shared: &Arc<WorkerState>,
        answer: Answer,
        owner: &Owner,
        now: Instant,
        begin: impl FnOnce(&mut ConnectionState) -> Pace,
    ) -> Need {
        let mut state = self.lock();
        let pace = begin(&mut state);
        state.outgoing = Some(OutgoingAnswer::new(answer, pace, &state.limits, now));
        state.phase = Phase::Send;
        state.taken_at = now;
        state.deadline = Some(now + state.limits.answer);
        let outcome = state.send(now);
        let unsent_bytes = state.outgoing.as_ref().map_or(0, OutgoingAnswer::unsent_bytes) as u64;
        // A long answer already counts, until it ends, for all the bytes that it holds.
        if unsent_bytes > 0 && state.socket.is_some() && state.long.is_none() {
            state.unsent_held = Some(SharePermit::add(shared, Amount::Unsent, owner, unsent_bytes));
        }
        let step = match outcome {
            Ok(step) => step,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match state.phase {
                Phase::Send => Need::Write,
                _ => Need::Read,
            },
            Err(_) => Need::Close,
        };
        state.settle(self, shared, step)
    }
}

impl ConnectionState {
    pub(super) fn send(&mut self, now: Instant) -> io::Result<Need> {
        while let Some(outgoing) = &mut self.outgoing {
            let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
            let sent = outgoing.send(socket, &self.limits, now)?;
            self.taken_at = now;
            self.deadline = Some(outgoing.deadline);
            if let Some(held) = &mut self.unsent_held {
                held.give(sent as u64);
            }
            if outgoing.unsent_bytes() == 0 {
                let pace = outgoing.pace;
                self.outgoing = None;
                self.unsent_held = None;
                if let Some(mut long) = self.long.take() {
                    (long.body.pace, long.body.paused_at) = (pace, now);
                    (self.phase, self.deadline) = (Phase::Busy, None);
                    return Ok(Need::GoOn(long));
                }
            }
        }
        if !self.keep {
            return self.linger(now);
        }
        if self.unread_bytes > 0 {
            self.phase = Phase::Skip;
            self.deadline = Some(now + self.limits.unread_body);
            return self.discard(&mut [0; DISCARD_BYTES], now);
        }
        Ok(self.rest(now))
    }

    /// Closing with unread input would reset the connection under the answer.
    fn linger(&mut self, now: Instant) -> io::Result<Need> {
        self.socket()?.end_output()?;
        self.held = Vec::new();
        self.phase = Phase::Linger;
        self.deadline = Some(now + self.limits.drain);
        self.unread_bytes = self.limits.drain_bytes_max;
        self.discard(&mut [0; DISCARD_BYTES], now)
    }

    pub(super) fn discard(&mut self, scratch: &mut [u8], now: Instant) -> io::Result<Need> {
        while self.unread_bytes > 0 {
            let room = usize::try_from(self.unread_bytes).unwrap_or(usize::MAX).min(scratch.len());
            let count = self.socket()?.receive(&mut scratch[..room])?;
            if count == 0 {
                return Ok(Need::Close);
            }
            self.unread_bytes -= count as u64;
        }
        Ok(if self.phase == Phase::Linger { Need::Close } else { self.rest(now) })
    }
}
