//! Connections past their deadline. The test sets the clock of each sweep.

use std::net::Shutdown;
use std::time::{Duration, Instant};

use super::{Client, SECOND, Worker, answer};
use crate::connection::Answer;

/// Returns true if a sweep after `patience` closes the client's connection, and an earlier sweep
/// does not. The connection was opened after `start`.
fn is_closed_after(
    worker: &mut Worker,
    client: &mut Client,
    start: Instant,
    patience: Duration,
) -> bool {
    worker.event_loop.sweep(start + patience.saturating_sub(SECOND / 2));
    if client.is_closed() {
        return false;
    }
    worker.event_loop.sweep(Instant::now() + patience + SECOND / 2);
    client.is_closed()
}

#[test]
fn each_activity_has_its_deadline() {
    let mut worker = Worker::new();
    let post = "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n";
    let cases = [("", 60), ("GET", 15), (post, 30)];
    for (begun, seconds) in cases {
        let start = Instant::now();
        let mut client = worker.connect();
        client.send(begun);
        worker.turn();
        if begun == post {
            drop(worker.next().await_body());
        }
        assert!(is_closed_after(&mut worker, &mut client, start, seconds * SECOND), "{begun:?}");
    }
    let start = Instant::now();
    let mut skipping = worker.connect();
    skipping.send(post);
    answer(worker.next(), "");
    assert!(is_closed_after(&mut worker, &mut skipping, start, 5 * SECOND));
}

#[test]
fn no_byte_restarts_a_deadline() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send("GET");
    worker.turn();
    let deadline = Instant::now() + 15 * SECOND;
    for byte in [" ", "/", " "] {
        client.send(byte);
        worker.turn();
    }
    worker.event_loop.sweep(deadline);
    assert!(client.is_closed());
}

#[test]
fn a_request_that_is_being_served_has_no_deadline() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send("GET / HTTP/1.1\r\n\r\n");
    let request = worker.next();
    worker.event_loop.sweep(Instant::now() + 1_000_000 * SECOND);
    answer(request, "late");
    assert_eq!(client.received(), "late");
}

#[test]
fn a_client_that_takes_nothing_loses_its_connection_and_its_answer_is_given_up() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send("GET / HTTP/1.1\r\n\r\n");
    let head = vec![b'x'; 3_000_000];
    drop(worker.next().answer(Answer { head, ..Answer::default() }));
    let unsent = worker.shared.share(crate::shared::Amount::Unsent);
    assert!(unsent.total() > 0);
    worker.event_loop.sweep(Instant::now() + 31 * SECOND);
    assert!(client.is_closed());
    assert_eq!(worker.shared.share(crate::shared::Amount::Unsent).total(), 0);
}

#[test]
fn input_behind_a_last_answer_is_thrown_away_for_a_second() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    let mut request = worker.next();
    assert!(!request.keeps());
    answer(request, "end");
    client.send(vec![b'x'; 100_000]);
    assert!(worker.is_quiet());
    assert_eq!(client.received(), "end");
    client.send("more");
    worker.event_loop.sweep(Instant::now() + 2 * SECOND);
    client.0.shutdown(Shutdown::Read).unwrap();
    assert_eq!(worker.shared.connections.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn a_stopping_worker_waits_for_what_has_begun_and_no_longer() {
    let mut worker = Worker::new();
    let mut idle = worker.connect();
    let mut begun = worker.connect();
    let mut busy = worker.connect();
    begun.send("GET");
    busy.send("GET / HTTP/1.1\r\n\r\n");
    let mut request = worker.next();
    let stopped = Instant::now();
    worker.event_loop.stop_accepting();
    assert!(!request.keeps());
    worker.event_loop.sweep(stopped + 4 * SECOND);
    assert!(idle.is_closed() && !begun.is_closed());
    worker.event_loop.sweep(Instant::now() + 6 * SECOND);
    assert!(begun.is_closed());
    answer(request, "done");
    assert_eq!(busy.received(), "done");
}
