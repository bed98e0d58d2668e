//! Bodies in chunks, on a front that reads them.

use std::net::Shutdown;

use super::{Worker, answer, limits, path};
use crate::limits::ConnectionLimits;
use crate::message::ParsedRequest;
use crate::request::Request;
use crate::shared::Amount;

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
    matches!(request.asked(), ParsedRequest::Malformed(_))
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

#[test]
fn n6_a_tenant_may_await_as_many_small_bodies_in_chunks_as_bodies_of_a_known_length() {
    let mut worker = Worker::new();
    let limits = ConnectionLimits { takes_chunks: true, body_bytes_max: 16 << 20, ..limits() };
    worker.shared.set_limits(limits);
    let mut clients: Vec<_> = (0..100).map(|_| worker.connect()).collect();
    for client in &mut clients {
        client.send(format!("{HEAD}3\r\nhel"));
        let request = worker.next();
        let awaited = request.await_body();
        assert!(awaited.is_ok(), "the tenant is within its share");
    }
    let held = worker.shared.share(Amount::Bodies).total();
    assert!((300..100_000).contains(&held), "{held} bytes are counted of 300 that came");
    for client in &mut clients {
        client.send("\r\n2\r\nlo\r\n0\r\n\r\n");
        let request = worker.next();
        assert_eq!(request.body(), b"hello");
        answer(request, ".");
    }
    assert_eq!(worker.shared.share(Amount::Bodies).total(), 0);
}

#[test]
fn n6_a_body_in_chunks_that_grows_past_its_tenants_share_is_refused_at_once() {
    let mut worker = Worker::new();
    worker.shared.set_limits(ConnectionLimits {
        takes_chunks: true,
        body_bytes_under_way_max: 160_000,
        ..limits()
    });
    let (mut first, mut second) = (worker.connect(), worker.connect());
    for client in [&mut first, &mut second] {
        client.send(format!("{HEAD}5000\r\nx"));
        assert!(worker.next().await_body().is_ok());
    }
    first.send("x".repeat(0x4fff));
    assert!(worker.is_quiet(), "it has its share");
    second.send("x".repeat(0x4fff));
    assert!(worker.is_quiet(), "so has the other, as long as none grows");
    first.send(format!("\r\n5000\r\n{}", "x".repeat(0x5000)));
    let mut request = worker.next();
    assert!(request.is_over_share() && request.body().is_empty());
    assert!(!request.keeps(), "nobody reads the rest");
    answer(request, "no");
    second.send("\r\n0\r\n\r\n");
    let request = worker.next();
    assert_eq!((request.body().len(), request.is_over_share()), (0x5000, false));
    drop(request);
    assert_eq!(worker.shared.share(Amount::Bodies).total(), 0);
}

#[test]
fn n6_a_body_in_chunks_that_is_alone_passes_however_large_it_is() {
    let mut worker = Worker::new();
    let limits = ConnectionLimits { takes_chunks: true, body_bytes_under_way_max: 1, ..limits() };
    worker.shared.set_limits(limits);
    let mut client = worker.connect();
    client.send(format!("{HEAD}3\r\nhel"));
    assert!(worker.next().await_body().is_ok());
    client.send(format!("\r\n5000\r\n{}\r\n0\r\n\r\n", "x".repeat(0x5000)));
    let request = worker.next();
    assert_eq!((request.body().len(), request.is_over_share()), (0x5003, false));
}
