//! The public interface of a worker's front.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::event_loop::EventLoop;
use crate::fair::{Owner, thread_time};
use crate::limits::ConnectionLimits;
use crate::request::{Request, ServeTurn};
use crate::requests::RequestQueue;
use crate::shared::{Amount, WorkerState};

/// Result of an attempt to serve a request without the application.
pub enum ServeOutcome {
    /// The application must serve the request.
    HandOn(Request),
    /// The request is answered, or will be, and the thread has no more to do for it.
    Done(ServeTurn),
}

/// Serves some requests without the application.
pub trait FastPath: Send + Sync {
    /// Serves `request`, or hands it on unchanged. The thread whose turn it is calls it.
    ///
    /// If the body has not arrived, [`Request::await_body`] receives it, and the request comes here
    /// again with its body. An answer may come later, from another thread; [`Request::end_turn`]
    /// then frees this thread. A request that fails after that is put back, and is not served here
    /// again.
    fn serve(&self, request: Request) -> ServeOutcome;

    /// CPU time that other threads have used since the last call for the requests of this thread.
    fn helped(&self) -> Duration {
        Duration::ZERO
    }

    /// Notes the CPU time of a turn, for the account or address whose turn it was.
    fn note_used(&self, _owner: &Owner, _used: Duration) {}

    /// Removes state that is too old. The front calls it with every turn of the loop.
    fn tidy(&self) {}
}

/// Counts of a worker's state and work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WorkerCounts {
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
/// One thread runs [`Self::turn`] again and again. `2 * threads` other threads
/// ([`Self::threads_max`]) ask for the [`Self::next_request`]. Example: with `threads` 8, there are
/// 16 threads, and one tenant gets at most 8 of them.
pub struct Front {
    shared: Arc<WorkerState>,
    requests: Arc<RequestQueue>,
    looping: Mutex<EventLoop>,
    fast: OnceLock<Arc<dyn FastPath>>,
}

impl Front {
    /// Makes a front that owns its listening sockets. `threads` is the count that one tenant gets,
    /// and `processes` is the count of the fronts that share the cores of this machine. `key_fields` are the fields that may carry a key; the first field in a head decides. The
    /// first word of the memory in `settings` is the version of the settings in force.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn new(
        listeners: Vec<OwnedFd>,
        threads: usize,
        processes: usize,
        limits: ConnectionLimits,
        key_fields: &[String],
        settings: Option<&OwnedFd>,
    ) -> io::Result<Self> {
        let shared = Arc::new(WorkerState::new(limits, settings)?);
        let requests = RequestQueue::new(threads, processes, &shared, key_fields);
        let looping = Mutex::new(EventLoop::new(&requests, listeners)?);
        Ok(Self { shared, requests, looping, fast: OnceLock::new() })
    }

    /// Count of the threads that ask for requests.
    #[must_use]
    pub fn threads_max(&self) -> usize {
        self.requests.threads_max()
    }

    /// Lets `fast` serve the requests that it can serve. Call it once, before the threads begin.
    pub fn set_fast(&self, fast: Arc<dyn FastPath>) {
        let _ = self.fast.set(fast);
    }

    /// Puts limits in force, from the next head of each connection on.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        self.shared.set_limits(limits);
    }

    /// Watches a pipe that does not block: input on the pipe ends a turn of the loop early, and the
    /// turn reads that input.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn watch(&self, pipe: OwnedFd) -> io::Result<()> {
        self.looping().watch(pipe)
    }

    /// Version of the settings in force; 0 if no settings are shared.
    #[must_use]
    pub fn settings_version(&self) -> u64 {
        self.shared.settings_version()
    }

    /// Runs the loop for as long as `patience`. The watched pipe, a signal or a change of settings
    /// ends it early. After a change of settings, no head is read before the next turn. The end of
    /// the last connection after [`Self::stop_accepting`] also ends it.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn turn(&self, patience: Duration) -> io::Result<()> {
        self.looping().turn(patience)?;
        if let Some(fast) = self.fast.get() {
            fast.tidy();
        }
        Ok(())
    }

    /// Messages of panics on the loop since the last call. Each panic has closed one connection.
    pub fn failures(&self) -> Vec<String> {
        self.looping().failures()
    }

    /// Ends the thread's last turn, if it had a turn. Waits for the next request that the
    /// application must serve. Returns `None` if the thread must end.
    pub fn next_request(&self, mut last: Option<ServeTurn>) -> Option<Request> {
        loop {
            let note_used = |owner: &Owner, used| {
                if let Some(fast) = self.fast.get() {
                    fast.note_used(owner, used);
                }
            };
            if let Some(fast) = self.fast.get() {
                thread_time::add(fast.helped());
            }
            let request = ServeTurn::next(&self.requests, last, note_used)?;
            if request.has_begun() {
                last = Some(request.send_part(Vec::new()));
                continue;
            }
            let fast = self.fast.get().filter(|_| !request.has_failed());
            let Some(fast) = fast else { return Some(request) };
            match fast.serve(request) {
                ServeOutcome::HandOn(request) => return Some(request),
                ServeOutcome::Done(turn) => last = Some(turn),
            }
        }
    }

    /// Accepts the connections that already wait, then no more. Requests under way go on, and each
    /// connection ends with its answer.
    pub fn stop_accepting(&self) {
        self.looping().stop_accepting();
    }

    /// Ends the threads once no request waits.
    pub fn end_threads(&self) {
        self.requests.close();
    }

    /// Closes every socket in any state.
    pub fn close(&self) {
        self.looping().close_all();
    }

    /// Returns the current counts.
    #[must_use]
    pub fn held(&self) -> WorkerCounts {
        WorkerCounts {
            connections: self.shared.connections.load(Ordering::Relaxed),
            queued: self.requests.len(),
            unsent_bytes: self.shared.share(Amount::Unsent).total(),
            taken: self.requests.taken(),
        }
    }

    /// Takes over a connected socket, as if it had been accepted.
    #[cfg(test)]
    pub(crate) fn adopt(&self, socket: OwnedFd) {
        let peer = crate::socket::Peer { address: "".into(), port: 0 };
        self.looping().add(socket.into(), peer, std::time::Instant::now());
    }

    fn looping(&self) -> MutexGuard<'_, EventLoop> {
        self.looping.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
