//! Threads that are late, fail, leave an answer to other threads, or serve without the application.

use std::hint::black_box;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{SECOND, Worker, answer, limits, path};
use crate::connection::Answer;
use crate::front::{FastPath, Front, ServeOutcome};
use crate::request::{Request, ServeTurn};

const GET: &str = "GET / HTTP/1.1\r\n\r\n";

#[test]
fn a_thread_that_is_done_late_touches_no_connection_but_its_own() {
    let mut worker = Worker::new();
    let mut first = worker.connect();
    first.send(GET);
    let late = [worker.next()];
    worker.event_loop.close_all();
    assert!(first.is_closed());
    let mut second = worker.connect(); // in the same slot
    for request in late {
        answer(request, "late");
    }
    second.send("GET /second HTTP");
    assert!(worker.is_quiet());
    second.send("/1.1\r\n\r\n");
    let request = worker.next();
    assert_eq!(path(&request), "/second");
    answer(request, "second");
    assert_eq!(second.received(), "second");
}

#[test]
fn a_read_of_unknown_size_is_heavy_while_others_are_active() {
    let mut worker = Worker::new();
    let mut clients = [(); 3].map(|()| worker.connect());
    clients[0].send(GET);
    let mut alone = worker.next();
    assert!(!alone.is_heavy());
    assert!(alone.claim(&"a".into()));
    clients[1].send("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    clients[2].send("GET /other HTTP/1.1\r\n\r\n");
    worker.turn();
    black_box((0..20_000_000_u64).fold(0, |sum, number| black_box(sum ^ number))); // milliseconds
    let turn = alone.answer(Answer::default());
    let first = ServeTurn::next(&worker.requests, Some(turn), |_, _| {}).unwrap();
    let both = [first, worker.next()];
    let weights = both.each_ref().map(|each| (each.head().unwrap().method(), each.is_heavy()));
    assert_eq!(weights, [("POST", false), ("GET", true)]);
}

#[test]
fn a_request_that_nobody_answers_costs_its_connection_alone() {
    let mut worker = Worker::new();
    let (mut dropped, mut other) = (worker.connect(), worker.connect());
    dropped.send(GET);
    drop(worker.next());
    worker.turn();
    assert!(dropped.is_closed());
    other.send(GET);
    answer(worker.next(), "other");
    assert_eq!(other.received(), "other");
    assert_eq!(worker.shared.share(crate::shared::Amount::Requests).total(), 0);
}

#[test]
fn an_answer_may_come_from_another_thread_after_the_turn() {
    let mut worker = Worker::new();
    let (mut first, mut second) = (worker.connect(), worker.connect());
    first.send(GET);
    let mut left = worker.next();
    let turn = left.end_turn();
    second.send(GET);
    worker.turn();
    let request = ServeTurn::next(&worker.requests, Some(turn), |_, _| {}).unwrap();
    answer(request, "second");
    std::thread::spawn(move || answer(left, "first")).join().unwrap();
    assert_eq!((first.received(), second.received()), ("first".into(), "second".into()));
    first.send(GET);
    worker.next();
}

/// A piece of an answer that the loop cannot send.
struct Faulty(AtomicUsize);

impl AsRef<[u8]> for Faulty {
    fn as_ref(&self) -> &[u8] {
        static BYTES: [u8; 3_000_000] = [b'x'; 3_000_000];
        assert!(self.0.fetch_add(1, Ordering::Relaxed) < 8, "a fault of the front");
        &BYTES
    }
}

#[test]
fn a_panic_on_the_loop_costs_one_connection() {
    let mut worker = Worker::new();
    let (mut faulty, mut other) = (worker.connect(), worker.connect());
    faulty.send(GET);
    let pieces: Vec<crate::Piece> = vec![Box::new(Faulty(AtomicUsize::new(0)))];
    drop(worker.next().answer(Answer { pieces, ..Answer::default() }));
    while !faulty.is_closed() {
        worker.turn();
    }
    assert_eq!(worker.event_loop.failures(), ["a fault of the front"]);
    other.send(GET);
    answer(worker.next(), "other");
    assert_eq!(other.received(), "other");
}

/// Serves a request itself if the path says so.
struct ByPath;

impl FastPath for ByPath {
    fn serve(&self, request: Request) -> ServeOutcome {
        if path(&request) != "/fast" {
            return ServeOutcome::HandOn(request);
        }
        if request.is_body_due() {
            return match request.await_body() {
                Ok(turn) => ServeOutcome::Done(turn),
                Err(request) => ServeOutcome::HandOn(*request),
            };
        }
        let head = request.body().to_ascii_uppercase();
        ServeOutcome::Done(request.answer(Answer { head, ..Answer::default() }))
    }
}

#[test]
fn requests_that_are_served_fast_never_reach_the_application() {
    let front = Front::new(Vec::new(), 1, 1, limits(), &[], None).unwrap();
    front.set_fast(Arc::new(ByPath));
    let (mut client, there) = UnixStream::pair().unwrap();
    front.adopt(there.into());
    let fast = "POST /fast HTTP/1.1\r\nContent-Length: 2\r\n\r\n";
    client.write_all(format!("{fast}ab{fast}cdGET /slow HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let request = front.next_request(None).unwrap();
            assert_eq!(path(&request), "/slow");
            answer(request, "slow");
        });
        while !serving.is_finished() {
            front.turn(Duration::from_millis(1)).unwrap();
        }
    });
    let mut client = super::Client(client);
    client.0.set_nonblocking(true).unwrap();
    assert_eq!(client.received(), "ABCDslow");
    assert!(front.held().taken >= 3, "a thread took each of them, also those served fast");
}

#[test]
fn no_head_is_read_by_limits_that_are_not_in_force_any_more() {
    // SAFETY: the descriptor is new and has no other owner.
    #[expect(unsafe_code, reason = "memory as the supervisor shares it")]
    let memory =
        unsafe { std::os::fd::OwnedFd::from_raw_fd(libc::memfd_create(c"settings".as_ptr(), 0)) };
    let mut file = std::fs::File::from(memory.try_clone().unwrap());
    file.set_len(4096).unwrap();
    let mut worker = Worker::with_settings(Some(&memory));
    let mut client = worker.connect();
    worker.turn();
    client.send(GET);
    file.write_all(&[1]).unwrap();
    worker.event_loop.turn(SECOND).unwrap();
    assert_eq!(worker.requests.len(), 0);
    let mut changed = limits();
    changed.head_bytes_max = 3;
    worker.shared.set_limits(changed);
    assert!(matches!(worker.next().asked(), crate::ParsedRequest::Malformed(_)));
}

#[test]
fn a_panic_of_a_thread_ends_neither_its_turns_nor_its_connections_answers() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send(GET);
    let request = worker.next();
    let outcome = catch_unwind(AssertUnwindSafe(move || {
        let _request = request;
        panic!("a fault of the engine");
    }));
    assert!(outcome.is_err());
    worker.turn();
    assert!(client.is_closed());
    assert_eq!(worker.shared.share(crate::shared::Amount::Requests).total(), 0);
}
