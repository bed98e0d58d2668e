//! A worker on socket pairs: the test is the client and the thread that serves.

mod chunked;
mod composed;
mod deadlines;
mod long;
mod rounds;
mod threads;

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::connection::Answer;
use crate::event_loop::EventLoop;
use crate::limits::ConnectionLimits;
use crate::request::{Request, ServeTurn};
use crate::requests::RequestQueue;
use crate::shared::WorkerState;
use crate::socket::{Peer, Socket};

const SECOND: Duration = Duration::from_secs(1);

fn limits() -> ConnectionLimits {
    ConnectionLimits {
        body_bytes_max: 1 << 20,
        head_bytes_max: 65_536,
        read_deadline: 15 * SECOND,
        request_deadline: 30 * SECOND,
        idle: 60 * SECOND,
        unread_body: 5 * SECOND,
        drain: SECOND,
        drain_bytes_max: 8 << 20,
        answer: 30 * SECOND,
        answer_bytes_per_second_min: 65_536,
        stop_idle: SECOND,
        stop_request: 5 * SECOND,
        connections_max: 4096,
        body_bytes_under_way_max: 256 << 20,
        unsent_bytes_max: 256 << 20,
        unsent_bytes_per_tenant_max: 64 << 20,
        unsent_wait: 5 * SECOND,
        takes_chunks: false,
    }
}

struct Worker {
    shared: Arc<WorkerState>,
    requests: Arc<RequestQueue>,
    event_loop: EventLoop,
}

impl Worker {
    fn new() -> Self {
        Self::with_settings(None)
    }

    fn with_settings(settings: Option<&OwnedFd>) -> Self {
        let shared = Arc::new(WorkerState::new(limits(), settings).unwrap());
        let requests =
            RequestQueue::new(4, 1, &shared, &["X-Api-Key", "Authorization"].map(str::to_owned));
        let event_loop = EventLoop::new(&requests, Vec::new()).unwrap();
        Self { shared, requests, event_loop }
    }

    fn connect(&mut self) -> Client {
        let (here, there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let peer = Peer { address: "127.0.0.1".into(), port: 1 };
        self.event_loop.add(Socket::from(OwnedFd::from(there)), peer, Instant::now());
        Client(here)
    }

    /// Handles all events that have arrived.
    fn turn(&mut self) {
        for _ in 0..4 {
            self.event_loop.turn(Duration::ZERO).unwrap();
        }
    }

    /// Returns the next request, which must be there after a turn.
    fn next(&mut self) -> Request {
        self.turn();
        assert!(self.requests.len() > 0, "no request is whole");
        ServeTurn::next(&self.requests, None, |_, _| {}).unwrap()
    }

    fn is_quiet(&mut self) -> bool {
        self.turn();
        self.requests.len() == 0
    }
}

fn answer(request: Request, text: &str) {
    let head = text.as_bytes().to_vec();
    drop(request.answer(Answer { head, ..Answer::default() }));
}

fn path(request: &Request) -> &str {
    request.head().unwrap().path()
}

struct Client(UnixStream);

impl Client {
    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// Returns everything that has arrived.
    fn received(&mut self) -> String {
        let mut bytes = Vec::new();
        match self.0.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
            _ => String::from_utf8(bytes).unwrap(),
        }
    }

    fn is_closed(&mut self) -> bool {
        let mut bytes = Vec::new();
        match self.0.read_to_end(&mut bytes) {
            Ok(_) => true,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }
}
