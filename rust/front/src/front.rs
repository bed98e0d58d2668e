//! A worker's front as its owner sees it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::event_loop::EventLoop;
use crate::limits::ConnectionLimits;
use crate::request::{Request, Turn};
use crate::requests::RequestQueue;
use crate::shared::{Amount, Shared};

/// End of a look at a request.
pub enum Served {
    /// It is for the application.
    HandOn(Request),
    /// It is answered, or will be, and the thread's part of it is over.
    Done(Turn),
}

/// A way to serve some requests without the application.
pub trait Fast: Send + Sync {
    /// Serves `request`, or hands it on as it was. Called by the thread whose turn it is.
    ///
    /// A body that is due is not there yet: [`Request::await_body`] has it received, and the request
    /// comes here again with it. An answer may come later, from another thread:
    /// [`Request::end_turn`] lets this one go on. What fails then is put back, and not served here
    /// any more.
    fn serve(&self, request: Request) -> Served;

    /// Lets go of what is too old. Called with every turn of the loop.
    fn tidy(&self) {}
}

/// Counts of what a worker holds, and of its work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Held {
    /// Open connections.
    pub connections: usize,
    /// Requests that wait for a thread.
    pub queued: usize,
    /// Bytes of answers that clients have not taken.
    pub unsent_bytes: u64,
    /// Requests that threads have taken so far.
    pub taken: u64,
}

/// Listeners, connections, and the requests that wait for threads.
///
/// One thread runs [`Self::turn`] again and again; `2 * threads` others, [`Self::threads_max`], ask
/// for the [`Self::next_request`].
pub struct Front {
    shared: Arc<Shared>,
    requests: Arc<RequestQueue>,
    looping: Mutex<EventLoop>,
    fast: OnceLock<Arc<dyn Fast>>,
}

impl Front {
    /// A front for listening sockets that are its own. `threads` are what one tenant gets.
    /// `key_fields` are those that a key may stand in: the first that a head has decides. `settings`
    /// is memory whose first word is the version of the settings in force.
    ///
    /// # Errors
    /// That of the system.
    pub fn new(
        listeners: Vec<OwnedFd>,
        threads: usize,
        limits: ConnectionLimits,
        key_fields: &[String],
        settings: Option<&OwnedFd>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(limits, settings)?);
        let requests = RequestQueue::new(threads, &shared, key_fields);
        let looping = Mutex::new(EventLoop::new(&requests, listeners)?);
        Ok(Self { shared, requests, looping, fast: OnceLock::new() })
    }

    /// Threads that are to ask for requests.
    #[must_use]
    pub fn threads_max(&self) -> usize {
        self.requests.threads_max()
    }

    /// Has requests served by `fast` where it can; to be called once, before the threads begin.
    pub fn set_fast(&self, fast: Arc<dyn Fast>) {
        let _ = self.fast.set(fast);
    }

    /// Puts limits in force, for the next head of each connection.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        self.shared.set_limits(limits);
    }

    /// Ends a turn of the loop early when a pipe that does not block has something to read, which is
    /// read away.
    ///
    /// # Errors
    /// That of the system.
    pub fn watch(&self, pipe: OwnedFd) -> io::Result<()> {
        self.looping().watch(pipe)
    }

    /// Version of the settings in force; 0 where nobody shares any.
    #[must_use]
    pub fn settings_version(&self) -> u64 {
        self.shared.settings_version()
    }

    /// Runs the loop for as long as `patience`. What ends it early: the watched pipe, a signal, other
    /// settings in force (no head is read before the next turn), and the end of the last connection
    /// after [`Self::stop_accepting`].
    ///
    /// # Errors
    /// That of the system.
    pub fn turn(&self, patience: Duration) -> io::Result<()> {
        self.looping().turn(patience)?;
        if let Some(fast) = self.fast.get() {
            fast.tidy();
        }
        Ok(())
    }

    /// Messages of panics on the loop since the last call; each has cost one connection.
    pub fn failures(&self) -> Vec<String> {
        self.looping().failures()
    }

    /// Ends the thread's last turn, if it had one, and waits for the next request that is for the
    /// application. `None` ends the thread.
    pub fn next_request(&self, mut last: Option<Turn>) -> Option<Request> {
        loop {
            let request = Turn::next(&self.requests, last)?;
            if request.has_begun() {
                last = Some(request.send_part(Vec::new()));
                continue;
            }
            let fast = self.fast.get().filter(|_| !request.has_failed());
            let Some(fast) = fast else { return Some(request) };
            match fast.serve(request) {
                Served::HandOn(request) => return Some(request),
                Served::Done(turn) => last = Some(turn),
            }
        }
    }

    /// Takes the connections that already wait, then no more. Requests under way go on, and each
    /// connection ends with its answer.
    pub fn stop_accepting(&self) {
        self.looping().stop_accepting();
    }

    /// Ends the threads when no request waits any more.
    pub fn end_threads(&self) {
        self.requests.close();
    }

    /// Closes every socket, whatever it is doing.
    pub fn close(&self) {
        self.looping().close_all();
    }

    /// Counts of what is held now.
    #[must_use]
    pub fn held(&self) -> Held {
        Held {
            connections: self.shared.connections.load(Ordering::Relaxed),
            queued: self.requests.len(),
            unsent_bytes: self.shared.share(Amount::Unsent).total(),
            taken: self.requests.taken(),
        }
    }

    /// Takes a connected socket over, as if it had been accepted.
    #[cfg(test)]
    pub(crate) fn adopt(&self, socket: OwnedFd) {
        let peer = crate::socket::Peer { address: "".into(), port: 0 };
        self.looping().add(socket.into(), peer, std::time::Instant::now());
    }

    fn looping(&self) -> MutexGuard<'_, EventLoop> {
        self.looping.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
