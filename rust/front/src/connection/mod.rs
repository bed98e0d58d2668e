//! One client connection as a state machine, with a deadline for each state.
//!
//! ```text
//! Idle -> Head -> Busy -> Send -> Idle             the usual round
//!                 Busy -> Body -> Busy             a body is wanted and has not arrived
//!                         Send -> Busy -> Send     a long answer, whose next part is made
//!                                 Send -> Skip     unread input is discarded, then Idle
//!                                 Send -> Linger   unread input is discarded, then closed
//! ```
//!
//! No call here blocks. The loop advances a connection when its socket is ready. While a connection
//! is busy, its request belongs to one pool thread. The thread ends this state with an answer, or
//! by awaiting the body. Input that arrived after a request waits in the connection. Such input is
//! shorter than one read of the loop, because the loop does not read from a busy connection.

mod outgoing;
mod phase;

mod long;

mod answering;
mod receiving;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::head::HeadScanner;
use crate::holding::SharePermit;
use crate::limits::ConnectionLimits;
use crate::message::IncomingRequest;
use crate::poll::Interest;
use crate::shared::WorkerState;
use crate::socket::{Peer, Socket};

pub(crate) use long::{LongBody, LongRequest};
pub use outgoing::{Answer, AnswerRest, OutgoingBody, Piece};
pub(crate) use phase::Phase;

use outgoing::OutgoingAnswer;

/// The next need of a connection.
pub(crate) enum Need {
    /// More input, before the deadline.
    Read,
    /// Room for more of an answer, before the deadline.
    Write,
    /// A thread, because a request is whole.
    Serve(Box<IncomingRequest>),
    /// A thread, because the client has taken every part of a long answer that was made.
    GoOn(Box<LongRequest>),
    /// Another look at the input that arrived after the last request.
    Resume,
    /// To be closed.
    Close,
}

/// One accepted socket.
pub(crate) struct Connection {
    /// The name by which epoll and the loop know this connection. No other connection ever has it.
    pub(crate) token: u64,
    pub(crate) peer: Peer,
    state: Mutex<ConnectionState>,
}

/// The mutable part of a connection.
pub(crate) struct ConnectionState {
    /// `None` once the connection is closed.
    socket: Option<Socket>,
    phase: Phase,
    /// `None` while the connection is busy.
    deadline: Option<Instant>,
    /// The limits that were in force when the last head began.
    limits: Arc<ConnectionLimits>,
    /// Input that has been received and not yet used.
    held: Vec<u8>,
    /// Progress in the head at the beginning of `held`.
    scanner: HeadScanner,
    /// Bytes of input to come that are discarded unread.
    unread_bytes: u64,
    /// The request whose body is being received.
    receiving: Option<Box<IncomingRequest>>,
    /// Count of bytes whose arrival wakes the loop while a body is being received.
    low_water_bytes: usize,
    outgoing: Option<OutgoingAnswer>,
    /// The long answer that the outgoing part belongs to.
    long: Option<Box<LongRequest>>,
    keep: bool,
    unsent_held: Option<SharePermit>,
    /// Instant at which the client last took bytes of an answer.
    taken_at: Instant,
}

impl Connection {
    pub(crate) fn new(
        token: u64,
        socket: Socket,
        peer: Peer,
        limits: Arc<ConnectionLimits>,
        now: Instant,
    ) -> Self {
        let state = ConnectionState {
            socket: Some(socket),
            phase: Phase::Idle,
            deadline: Some(now + limits.idle),
            limits,
            held: Vec::new(),
            scanner: HeadScanner::new(),
            unread_bytes: 0,
            receiving: None,
            low_water_bytes: 1,
            outgoing: None,
            long: None,
            keep: true,
            unsent_held: None,
            taken_at: now,
        };
        Self { token, peer, state: Mutex::new(state) }
    }

    /// Locks the state. Every holder of the lock makes only calls that do not block.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does, for the loop, what the socket allows at once. Input is read into `scratch`.
    pub(crate) fn advance(
        &self,
        shared: &WorkerState,
        scratch: &mut [u8],
        now: Instant,
    ) -> (Need, Option<Instant>) {
        let mut state = self.lock();
        let step = state.advance(self, shared, scratch, now).unwrap_or(Need::Close);
        let step = state.settle(self, shared, step);
        (step, state.deadline)
    }

    /// Drops the socket and everything else that the connection holds.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        let gone = (
            state.socket.take(),
            state.outgoing.take(),
            state.long.take(),
            state.unsent_held.take(),
            state.receiving.take(),
        );
        state.held = Vec::new();
        drop(state);
        drop(gone);
    }
}

impl ConnectionState {
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the holding of the unsent answer, and the instant at which the client last took bytes.
    pub(crate) fn unsent(&self) -> Option<(&SharePermit, Instant)> {
        let of_long = || self.long.as_ref()?.unsent_held.as_ref();
        self.unsent_held.as_ref().or_else(of_long).map(|held| (held, self.taken_at))
    }

    /// Arms the socket for what `step` needs. Returns the step that the loop or a thread must take.
    fn settle(&self, connection: &Connection, shared: &WorkerState, step: Need) -> Need {
        let interest = match step {
            Need::Read => Interest::ReadOnce,
            Need::Write => Interest::WriteOnce,
            other => return other,
        };
        // A connection that was closed in the meantime needs no arming.
        match &self.socket {
            Some(socket) if shared.poll.arm(socket, connection.token, interest).is_err() => {
                Need::Close
            }
            _ => step,
        }
    }

    fn advance(
        &mut self,
        connection: &Connection,
        shared: &WorkerState,
        scratch: &mut [u8],
        now: Instant,
    ) -> io::Result<Need> {
        let outcome = match self.phase {
            Phase::Idle | Phase::Head => self.read_head(connection, shared, scratch, now),
            Phase::Body => self.read_body(),
            Phase::Send => self.send(now),
            Phase::Skip | Phase::Linger => self.discard(scratch, now),
            // The socket is not armed while a thread has the connection.
            Phase::Busy => Ok(Need::Close),
        };
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Ok(if self.phase == Phase::Send { Need::Write } else { Need::Read })
            }
            other => other,
        }
    }

    fn socket(&self) -> io::Result<&Socket> {
        self.socket.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Ends a round. The connection then waits for another request.
    fn rest(&mut self, now: Instant) -> Need {
        self.phase = Phase::Idle;
        self.deadline = Some(now + self.limits.idle);
        if self.held.is_empty() { Need::Read } else { Need::Resume }
    }
}
