//! Bodies in chunks, where they are read.

use std::net::Shutdown;

use super::{Worker, answer, limits, path};
use crate::limits::ConnectionLimits;
use crate::message::Asked;
use crate::request::Request;

const HEAD: &str = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
const CHUNKS: &str = "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";

fn worker() -> Worker {
    let worker = Worker::new();
    worker.shared.set_limits(ConnectionLimits {
        takes_chunks: true,
        body_bytes_max: 100,
        ..limits()
    });
    worker
}

fn is_malformed(request: &Request) -> bool {
    matches!(request.asked(), Asked::Malformed(_))
}

#[test]
fn a_body_is_put_together_wherever_its_chunks_are_cut() {
    let mut worker = worker();
    let mut client = worker.connect();
    for cut in 0..CHUNKS.len() {
        client.send(format!("{HEAD}{}", &CHUNKS[..cut]));
        let request = worker.next();
        assert!(request.is_body_due());
        drop(request.await_body().unwrap_or_else(|_| panic!("it is nobody's yet")));
        assert!(worker.is_quiet());
        client.send(&CHUNKS[cut..]);
        let mut request = worker.next();
        assert_eq!((path(&request), request.body()), ("/a", &b"hello"[..]));
        assert!(!request.is_body_due() && request.keeps());
        answer(request, ".");
    }
    client.send(format!("{HEAD}{CHUNKS}"));
    let request = worker.next();
    assert_eq!((request.body(), request.is_body_due()), (&b"hello"[..], false));
}

#[test]
fn a1_chunks_are_not_read_where_nobody_takes_them() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send(format!("{HEAD}{CHUNKS}"));
    let mut request = worker.next();
    assert_eq!((request.body(), request.is_body_due()), (&b""[..], false));
    assert!(!request.keeps(), "nobody knows where the next request begins");
}

#[test]
fn a_body_that_proves_too_long_is_let_go() {
    let mut worker = worker();
    let mut client = worker.connect();
    client.send(format!("{HEAD}60\r\n"));
    let request = worker.next();
    drop(request.await_body().unwrap_or_else(|_| panic!("it is nobody's yet")));
    client.send(format!("{}\r\n5\r\n", "x".repeat(0x60)));
    let mut request = worker.next();
    assert!(request.is_oversized() && request.body().is_empty());
    assert!(!request.keeps());
}

#[test]
fn what_is_no_chunk_and_what_ends_early_is_malformed() {
    for rest in ["x", ""] {
        let mut worker = worker();
        let mut client = worker.connect();
        client.send(format!("{HEAD}3\r\n"));
        let request = worker.next();
        drop(request.await_body().unwrap_or_else(|_| panic!("it is nobody's yet")));
        client.send(format!("hel{rest}"));
        client.0.shutdown(Shutdown::Write).unwrap();
        assert!(is_malformed(&worker.next()));
    }
    let mut worker = worker();
    let mut client = worker.connect();
    client.send(format!("{HEAD}hello"));
    assert!(is_malformed(&worker.next()));
}

#[test]
fn a_request_behind_chunks_ends_the_connection() {
    let mut worker = worker();
    let mut client = worker.connect();
    client.send(format!("{HEAD}{CHUNKS}GET /b HTTP/1.1\r\n\r\n"));
    let mut request = worker.next();
    assert_eq!(request.body(), b"hello");
    assert!(!request.keeps());
}
