//! The event loop of a worker: it accepts connections, advances them, and closes late connections.
//!
//! Every socket is armed for one event at a time. A connection therefore has one owner at any
//! moment: the loop, or the thread that serves it. A thread arms the socket itself after its
//! answer. A connection goes back to the loop only if it must be closed or has already sent its
//! next request.
//!
//! All workers wait on the same listener, and the fastest worker takes a connection. To spread a
//! few warm connections, a worker with n connections waits n milliseconds before it accepts another
//! connection. Example: with 3 connections it waits 3 ms. Many connections spread by chance.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::connection::{Connection, Need};
use crate::fair::Owner;
use crate::poll::{Interest, quiet};
use crate::registry::ConnectionTable;
use crate::requests::RequestQueue;
use crate::shared::{Amount, ConnectionWish, WorkerState};
use crate::socket::{Listener, Peer, Socket};

/// Time for which a client may take no bytes while other answers wait for room.
const STALLED: Duration = Duration::from_secs(1);
/// Longest delay before the loop notices a deadline that a thread has set.
const SWEEP: Duration = Duration::from_secs(1);
const EVENTS_MAX: usize = 64;
/// Bound on the bytes of one read. The thread that serves a request receives a longer body.
const READ_BYTES: usize = 16 << 10;
/// Count of connections above which a worker no longer waits before it accepts.
const POLITE_CONNECTIONS_MAX: u32 = 8;
/// Time that a worker waits before it accepts, for each connection that it has.
const POLITE: Duration = Duration::from_millis(1);
const WAKER: u64 = u64::MAX;
const WATCHED: u64 = u64::MAX - 1;
/// The token of the first listener. The next listeners have lower tokens. No connection gets a
/// token this high.
const LISTENER: u64 = u64::MAX - 2;

struct Acceptor {
    listener: Listener,
    /// Instant of the next look at the listener; `None` while it is armed.
    due: Option<Instant>,
    /// The supervisor has shut the listener, because the service stops. The listener is then always
    /// ready and accepts no connection.
    is_shut: bool,
}

/// Owns every socket of one worker.
pub(crate) struct EventLoop {
    shared: Arc<WorkerState>,
    requests: Arc<RequestQueue>,
    listeners: Vec<Acceptor>,
    watched: Option<OwnedFd>,
    connections: ConnectionTable,
    /// Events that arrived and are not yet handled.
    events: Vec<libc::epoll_event>,
    scratch: Vec<u8>,
    next_sweep: Instant,
    stopped_at: Option<Instant>,
    /// Messages of panics.
    failures: Vec<String>,
}

impl EventLoop {
    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn new(requests: &Arc<RequestQueue>, listeners: Vec<OwnedFd>) -> io::Result<Self> {
        let shared = Arc::clone(requests.shared());
        shared.poll.add(&shared.waker, WAKER, Interest::Read)?;
        let mut accepting = Vec::new();
        for (descriptor, token) in listeners.into_iter().zip((0..=LISTENER).rev()) {
            let listener = Listener::new(descriptor)?;
            shared.poll.add(&listener, token, Interest::ReadOnce)?;
            accepting.push(Acceptor { listener, due: None, is_shut: false });
        }
        Ok(Self {
            shared,
            requests: Arc::clone(requests),
            listeners: accepting,
            watched: None,
            connections: ConnectionTable::default(),
            events: Vec::with_capacity(EVENTS_MAX),
            scratch: vec![0; READ_BYTES],
            next_sweep: Instant::now(),
            stopped_at: None,
            failures: Vec::new(),
        })
    }

    /// Watches a pipe that does not block: input on the pipe ends a turn early.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn watch(&mut self, pipe: OwnedFd) -> io::Result<()> {
        self.shared.poll.add(&pipe, WATCHED, Interest::Read)?;
        self.watched = Some(pipe);
        Ok(())
    }

    /// Handles events for as long as `patience`. The turn ends early if the watched pipe has input,
    /// if a signal arrives, or if the settings change. It also ends with the last connection once
    /// accepting has stopped.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn turn(&mut self, patience: Duration) -> io::Result<()> {
        let until = Instant::now() + patience;
        loop {
            let is_over = self.round(until)?;
            let is_done = self.stopped_at.is_some() && self.connections.len() == 0;
            if is_over || is_done || Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Waits for events once, and handles them. Returns true if the turn ends.
    fn round(&mut self, until: Instant) -> io::Result<bool> {
        if self.events.is_empty() {
            match self.wait(until) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
                outcome => outcome?,
            }
            if self.shared.have_settings_changed() {
                return Ok(true);
            }
        }
        let now = Instant::now();
        let is_over = self.handle(now);
        for (token, wish) in self.shared.wishes() {
            match wish {
                ConnectionWish::Close => self.close(token),
                ConnectionWish::Resume => self.advance(token, now),
            }
        }
        self.accept_due(now)?;
        if now >= self.next_sweep {
            self.sweep(now);
        }
        Ok(is_over)
    }

    /// Waits for events, or until the next deadline.
    fn wait(&mut self, until: Instant) -> io::Result<()> {
        let due = self.listeners.iter().filter_map(|each| each.due).min();
        let until = until.min(self.next_sweep).min(due.unwrap_or(until));
        let patience = until.saturating_duration_since(Instant::now());
        self.shared.poll.wait(&mut self.events, patience)
    }

    /// Handles the events that arrived. Returns true if the watched pipe is among them.
    fn handle(&mut self, now: Instant) -> bool {
        let mut is_interrupted = false;
        let mut events = mem::take(&mut self.events);
        for event in events.drain(..) {
            let token = event.u64;
            let index = usize::try_from(LISTENER.wrapping_sub(token)).unwrap_or(usize::MAX);
            if token == WAKER {
                quiet(&self.shared.waker);
            } else if token == WATCHED {
                is_interrupted = true;
                if let Some(pipe) = &self.watched {
                    quiet(pipe);
                }
            } else if index < self.listeners.len() {
                self.listeners[index].due = Some(now + self.politeness());
            } else {
                self.advance(token, now);
            }
        }
        self.events = events;
        is_interrupted
    }

    /// Accepts the connections that already wait, then no more. Requests under way go on.
    pub(crate) fn stop_accepting(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        let now = Instant::now();
        for mut accepting in mem::take(&mut self.listeners) {
            while self.accept(&mut accepting, now) {}
            // Other processes also have the listener open, so closing it alone changes nothing.
            let _ = self.shared.poll.remove(&accepting.listener);
        }
        self.stopped_at = Some(now);
        self.next_sweep = now;
    }

    /// Closes every socket in any state.
    pub(crate) fn close_all(&mut self) {
        let tokens: Vec<u64> = self.connections.iter().map(|each| each.token).collect();
        for token in tokens {
            self.close(token);
        }
        self.listeners.clear();
    }

    /// Takes the messages of panics since the last call.
    pub(crate) fn failures(&mut self) -> Vec<String> {
        mem::take(&mut self.failures)
    }

    fn politeness(&self) -> Duration {
        match u32::try_from(self.connections.len()) {
            Ok(held) if held <= POLITE_CONNECTIONS_MAX => held * POLITE,
            _ => Duration::ZERO,
        }
    }

    fn accept_due(&mut self, now: Instant) -> io::Result<()> {
        for index in 0..self.listeners.len() {
            if self.listeners[index].due.is_some_and(|due| due <= now) {
                let mut listeners = mem::take(&mut self.listeners);
                let accepting = &mut listeners[index];
                self.accept(accepting, now);
                accepting.due = None;
                if !accepting.is_shut {
                    let token = LISTENER - index as u64;
                    self.shared.poll.arm(&accepting.listener, token, Interest::ReadOnce)?;
                }
                self.listeners = listeners;
            }
        }
        Ok(())
    }

    fn accept(&mut self, accepting: &mut Acceptor, now: Instant) -> bool {
        let (socket, peer) = match accepting.listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                accepting.is_shut = true;
                return false;
            }
            Err(_) => {
                self.make_room(); // the peer has gone again, or no descriptor is left
                return false;
            }
        };
        self.add(socket, peer, now);
        true
    }

    pub(crate) fn add(&mut self, socket: Socket, peer: Peer, now: Instant) {
        let token = self.connections.next_token();
        if self.shared.poll.add(&socket, token, Interest::ReadOnce).is_err() {
            return; // no memory is left for it
        }
        let limits = self.shared.limits();
        let connections_max = limits.connections_max;
        self.due(Some(now + limits.idle));
        self.connections.insert(Arc::new(Connection::new(token, socket, peer, limits, now)));
        if self.connections.len() as u64 > connections_max {
            self.make_room();
        }
        self.count();
    }

    fn make_room(&mut self) {
        if let Some(token) = self.connections.least_needed() {
            self.close(token);
        }
    }

    fn advance(&mut self, token: u64, now: Instant) {
        let Some(connection) = self.connections.get(token).map(Arc::clone) else { return };
        loop {
            let (shared, scratch) = (&self.shared, &mut self.scratch);
            let work = || connection.advance(shared, scratch, now);
            // A panic in one connection must never end the other connections.
            let (step, deadline) = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
                self.failures.push(message(&*panic));
                (Need::Close, None)
            });
            match step {
                Need::Read | Need::Write => return self.due(deadline),
                Need::Serve(message) => return self.requests.put(connection, message),
                Need::GoOn(long) => return self.requests.put_long(connection, *long),
                Need::Close => return self.close(token),
                Need::Resume => {}
            }
        }
    }

    fn due(&mut self, deadline: Option<Instant>) {
        if let Some(deadline) = deadline {
            self.next_sweep = self.next_sweep.min(deadline);
        }
    }

    /// Closes the connections that are past their deadline.
    ///
    /// Threads set deadlines without telling the loop, so the next sweep is never far away.
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.next_sweep = now + SWEEP;
        let limits = self.shared.limits();
        let mut late = Vec::new();
        let mut next = self.next_sweep;
        for connection in self.connections.iter() {
            let state = connection.lock();
            let stop = state.phase().stop_deadline(self.stopped_at, &limits);
            match state.deadline().into_iter().chain(stop).min() {
                Some(deadline) if deadline <= now => late.push(connection.token),
                Some(deadline) => next = next.min(deadline),
                None => {}
            }
        }
        self.next_sweep = next;
        for token in late {
            self.close(token);
        }
        self.requests.refuse_overdue(now);
        self.close_stalled(now);
    }

    /// Closes connections whose clients take no bytes while too many bytes are unsent, worst
    /// tenants first.
    ///
    /// A tenant that holds at most its equal part of the bound loses no connection.
    fn close_stalled(&mut self, now: Instant) {
        let bound = self.shared.limits().unsent_bytes_max;
        let shared = Arc::clone(&self.shared);
        let unsent = shared.share(Amount::Unsent);
        if unsent.total() <= bound {
            return;
        }
        let mut holding: Vec<(Owner, Instant, u64)> = Vec::new();
        for connection in self.connections.iter() {
            let state = connection.lock();
            if let Some((held, taken_at)) = state.unsent() {
                holding.push((held.owner().clone(), taken_at, connection.token));
            }
        }
        let owners: HashSet<&Owner> = holding.iter().map(|(owner, ..)| owner).collect();
        let fair = bound / owners.len().max(1) as u64;
        holding
            .retain(|(owner, taken_at, _)| *taken_at + STALLED <= now && unsent.held(owner) > fair);
        holding.sort_by_key(|(owner, taken_at, _)| (Reverse(unsent.held(owner)), *taken_at));
        for (.., token) in holding {
            if unsent.total() <= bound {
                return;
            }
            self.close(token);
        }
    }

    fn close(&mut self, token: u64) {
        if let Some(connection) = self.connections.remove(token) {
            connection.close();
            self.count();
        }
    }

    fn count(&self) {
        self.shared.connections.store(self.connections.len(), Ordering::Relaxed);
    }
}

/// The text of a panic.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
        .to_owned()
}
