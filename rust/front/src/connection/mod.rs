//! One client connection as a state machine, with a deadline for each state.
//!
//! ```text
//! Idle -> Head -> Busy -> Send -> Idle             the usual round
//!                 Busy -> Body -> Busy             a body that is wanted and not there
//!                         Send -> Busy -> Send     a long answer, whose next part is made
//!                                 Send -> Skip     input that nobody reads, then Idle
//!                                 Send -> Linger   input that nobody reads, then closed
//! ```
//!
//! Nothing here blocks. The loop advances a connection when its socket is ready; while it is busy,
//! its request belongs to one pool thread, which ends that with an answer or by awaiting the body.
//! What was received behind a request waits in the connection: less than one read of the loop, as
//! nothing is read of a connection that is busy.

mod outgoing;
mod phase;

mod long;

mod answering;
mod receiving;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::head::HeadScanner;
use crate::holding::Holding;
use crate::limits::ConnectionLimits;
use crate::message::Message;
use crate::poll::Interest;
use crate::shared::Shared;
use crate::socket::{Peer, Socket};

pub(crate) use long::{Long, LongBody};
pub use outgoing::{Answer, Body, Piece, Rest};
pub(crate) use phase::Phase;

use outgoing::Outgoing;

/// Next need of a connection.
pub(crate) enum Step {
    /// More input, by then at the latest.
    Read,
    /// Room for more of an answer, by then at the latest.
    Write,
    /// A thread, as a request is whole.
    Serve(Box<Message>),
    /// A thread, as the client has taken all that there is of a long answer.
    GoOn(Box<Long>),
    /// Another look at what has come behind the last request.
    Resume,
    /// Its end.
    Close,
}

/// One accepted socket.
pub(crate) struct Connection {
    /// The name by which epoll and the loop know it; no other connection ever has the same.
    pub(crate) token: u64,
    pub(crate) peer: Peer,
    state: Mutex<State>,
}

/// The part of a connection that changes.
pub(crate) struct State {
    /// `None` once it is closed.
    socket: Option<Socket>,
    phase: Phase,
    /// `None` while it is busy.
    deadline: Option<Instant>,
    /// Those in force when the last head began.
    limits: Arc<ConnectionLimits>,
    /// Input that has been received and not used.
    held: Vec<u8>,
    /// Progress in the head that `held` begins with.
    scanner: HeadScanner,
    /// Input to come that nobody reads.
    unread_bytes: u64,
    /// The request whose body is being received.
    receiving: Option<Box<Message>>,
    /// Bytes that wake the loop while a body is being received.
    low_water_bytes: usize,
    outgoing: Option<Outgoing>,
    /// The answer of which that is a part.
    long: Option<Box<Long>>,
    keep: bool,
    unsent_held: Option<Holding>,
    /// Instant at which the client last took something of an answer.
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
        let state = State {
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

    /// Waits for nobody longer than a call that does not block takes.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what the socket allows at once, for the loop; `scratch` is what it reads into.
    pub(crate) fn advance(
        &self,
        shared: &Shared,
        scratch: &mut [u8],
        now: Instant,
    ) -> (Step, Option<Instant>) {
        let mut state = self.lock();
        let step = state.advance(self, shared, scratch, now).unwrap_or(Step::Close);
        let step = state.settle(self, shared, step);
        (step, state.deadline)
    }

    /// Lets go of the socket and of everything else.
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

impl State {
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Owner of what is held of an unsent answer, and the instant at which some was last taken.
    pub(crate) fn unsent(&self) -> Option<(&Holding, Instant)> {
        let of_long = || self.long.as_ref()?.unsent_held.as_ref();
        self.unsent_held.as_ref().or_else(of_long).map(|held| (held, self.taken_at))
    }

    /// Has the loop wake for what a step needs. The step that is left concerns the loop or a thread.
    fn settle(&self, connection: &Connection, shared: &Shared, step: Step) -> Step {
        let interest = match step {
            Step::Read => Interest::ReadOnce,
            Step::Write => Interest::WriteOnce,
            other => return other,
        };
        // A connection that was closed meanwhile needs no arming.
        match &self.socket {
            Some(socket) if shared.poll.arm(socket, connection.token, interest).is_err() => {
                Step::Close
            }
            _ => step,
        }
    }

    fn advance(
        &mut self,
        connection: &Connection,
        shared: &Shared,
        scratch: &mut [u8],
        now: Instant,
    ) -> io::Result<Step> {
        let outcome = match self.phase {
            Phase::Idle | Phase::Head => self.read_head(connection, shared, scratch, now),
            Phase::Body => self.read_body(),
            Phase::Send => self.send(now),
            Phase::Skip | Phase::Linger => self.discard(scratch, now),
            // Nothing is armed as long as a thread has it.
            Phase::Busy => Ok(Step::Close),
        };
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Ok(if self.phase == Phase::Send { Step::Write } else { Step::Read })
            }
            other => other,
        }
    }

    fn socket(&self) -> io::Result<&Socket> {
        self.socket.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Ends a round: what comes next is another request.
    fn rest(&mut self, now: Instant) -> Step {
        self.phase = Phase::Idle;
        self.deadline = Some(now + self.limits.idle);
        if self.held.is_empty() { Step::Read } else { Step::Resume }
    }
}
