//! Rounds of request and answer on one connection, with bytes that arrive in any pieces.

use std::net::Shutdown;

use proptest::prelude::*;

use super::{Worker, answer, path};
use crate::message::ParsedRequest;

const POST: &str = "POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn requests_of_one_read_are_served_one_after_the_other() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send(format!("{POST}GET /b HTTP/1.1\r\n\r\n{POST}GET /c HT"));
    for expected in ["/a", "/b", "/a"] {
        let request = worker.next();
        assert_eq!(path(&request), expected);
        assert_eq!(request.body(), if expected == "/a" { &b"hello"[..] } else { b"" });
        assert!(worker.is_quiet(), "nothing is read of a connection that is being served");
        answer(request, expected);
    }
    assert!(worker.is_quiet());
    assert_eq!(client.received(), "/a/b/a");
    client.send("TP/1.1\r\n\r\n");
    assert_eq!(path(&worker.next()), "/c");
}

#[test]
fn a_request_may_be_cut_at_every_byte() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    for cut in 1..POST.len() {
        client.send(&POST[..cut]);
        worker.turn();
        if cut >= POST.len() - 5 {
            let request = worker.next();
            assert!(request.is_body_due());
            drop(request.await_body().unwrap_or_else(|_| panic!("it is nobody's yet")));
            assert!(worker.is_quiet());
        }
        client.send(&POST[cut..]);
        let request = worker.next();
        assert_eq!((path(&request), request.body()), ("/a", &b"hello"[..]));
        assert!(!request.is_body_due());
        answer(request, ".");
    }
    assert_eq!(client.received().len(), POST.len() - 1);
}

#[test]
fn a_body_that_has_come_by_the_time_of_its_turn_is_not_asked_for() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    let (head, body) = POST.split_at(POST.len() - 5);
    client.send(head);
    worker.turn();
    client.send(body);
    let request = worker.next();
    assert!(!request.is_body_due());
    assert_eq!(request.body(), b"hello");
}

#[test]
fn n9_a_refused_body_is_skipped_and_holds_no_buffer() {
    const BYTES: usize = 1 << 20;
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send(format!("POST /a HTTP/1.1\r\nContent-Length: {BYTES}\r\n\r\nbegun"));
    let mut request = worker.next();
    assert!(request.is_body_due());
    assert!(request.take_body().capacity() < 1000, "the rest has no room before it is wanted");
    answer(request, "no");
    assert_eq!(client.received(), "no");
    let rest = vec![b'x'; BYTES - 5];
    for piece in rest.chunks(50_000) {
        client.send(piece);
        assert!(worker.is_quiet());
    }
    client.send("GET /b HTTP/1.1\r\n\r\n");
    assert_eq!(path(&worker.next()), "/b");
}

#[test]
fn a_client_is_told_to_go_on_when_its_body_is_wanted() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    let request = worker.next();
    assert_eq!(client.received(), "");
    drop(request.await_body());
    assert_eq!(client.received(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("ab");
    let request = worker.next();
    assert!(request.is_admitted());
    assert_eq!(request.body(), b"ab");
}

#[test]
fn a_body_that_ends_early_comes_as_it_is_and_ends_the_connection() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc");
    drop(worker.next().await_body());
    client.0.shutdown(Shutdown::Write).unwrap();
    let mut request = worker.next();
    assert_eq!(request.body(), b"abc");
    assert!(!request.keeps());
    answer(request, "short");
    worker.turn();
    assert_eq!(client.received(), "short");
    assert!(client.is_closed());
}

#[test]
fn a_malformed_head_comes_without_its_body_and_ends_the_connection() {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    let mut request = worker.next();
    assert!(matches!(request.asked(), ParsedRequest::Malformed(_)));
    assert!(!request.keeps());
    answer(request, "bad");
    assert!(worker.is_quiet(), "nobody knows what comes behind it");
    assert_eq!(client.received(), "bad");
}

#[test]
fn an_answer_goes_in_as_many_parts_as_its_client_takes() {
    const BYTES: usize = 3_000_000;
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send("GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
    let text = |first: u8| Box::new([vec![first; BYTES / 2], Vec::new(), vec![b'z'; 7]].concat());
    let pieces: Vec<crate::Piece> = vec![text(b'a'), Box::new([]), text(b'b')];
    let whole = format!("head{}{}", str_of(&text(b'a')), str_of(&text(b'b')));
    drop(worker.next().answer(crate::Answer { head: b"head".to_vec(), pieces, rest: None }));
    let mut received = String::new();
    while received.len() < whole.len() {
        worker.turn();
        let more = client.received();
        assert!(!more.is_empty());
        received += &more;
    }
    assert!(received == whole);
    assert_eq!(path(&worker.next()), "/b");
}

fn str_of(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

proptest! {
    /// Requests of several kinds, one after the other, sent in pieces of any size.
    #[test]
    fn requests_are_the_same_however_their_bytes_come(
        kinds in prop::collection::vec(0_usize..3, 1..6),
        sizes in prop::collection::vec(1_usize..400, 1..20),
        is_wanted in any::<bool>(),
    ) {
        let mut worker = Worker::new();
        let mut client = worker.connect();
        let body = "x".repeat(300);
        let texts = [
            "GET /0 HTTP/1.1\r\n\r\n".to_owned(),
            format!("POST /1 HTTP/1.1\r\nContent-Length: 300\r\n\r\n{body}"),
            format!("GET /2 HTTP/1.1\r\nContent-Length: 300\r\n\r\n{body}"),
        ];
        let sent: String = kinds.iter().map(|kind| &*texts[*kind]).collect();
        let mut rest = sent.as_str();
        let mut seen = String::new();
        let mut sizes = sizes.into_iter().cycle();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
            client.send(piece);
            rest = after;
            while !worker.is_quiet() {
                let request = worker.next();
                if request.is_body_due() && is_wanted {
                    drop(request.await_body());
                    continue;
                }
                let expected = if is_wanted && path(&request) == "/1" { 300 } else { 0 };
                prop_assert!(!is_wanted || request.body().len() == expected);
                seen += path(&request);
                answer(request, ".");
            }
        }
        let expected: String = kinds.iter().map(|kind| ["/0", "/1", "/2"][*kind]).collect();
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(client.received(), ".".repeat(kinds.len()));
    }
}
