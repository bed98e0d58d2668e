//! Answers that are composed for their request.

use super::*;
use crate::connection::{AnswerRest, OutgoingBody, Piece};

struct Long;

impl AnswerRest for Long {
    fn next(&mut self) -> Option<Piece> {
        None
    }

    fn held_bytes(&self) -> u64 {
        0
    }
}

fn composed(head: &str, status: &str, body: OutgoingBody) -> Answer {
    let mut worker = Worker::new();
    let mut client = worker.connect();
    client.send(head);
    worker.next().compose(status.as_bytes(), [], body).unwrap()
}

fn pieces(bytes: &[usize]) -> OutgoingBody {
    let piece = |bytes: &usize| Box::new("x".repeat(*bytes)) as Piece;
    OutgoingBody::Pieces(bytes.iter().map(piece).collect())
}

#[test]
fn short_pieces_go_with_the_head_and_long_ones_stay_as_they_are() {
    let answer = composed("GET / HTTP/1.1\r\n\r\n", "200 OK", pieces(&[3, 20_000, 4]));
    let head = String::from_utf8(answer.head).unwrap();
    assert!(head.ends_with("\r\nContent-Length: 20007\r\n\r\nxxx"), "{head}");
    let kept: Vec<_> = answer.pieces.iter().map(|piece| (**piece).as_ref().len()).collect();
    assert_eq!(kept, [20_000, 4]);
}

#[test]
fn answers_to_head_and_of_some_statuses_have_no_body() {
    for (method, status) in [("HEAD", "200 OK"), ("GET", "204 No Content"), ("GET", "304 Same")] {
        let request = format!("{method} / HTTP/1.1\r\n\r\n");
        let answer = composed(&request, status, pieces(&[3, 20_000]));
        let head = String::from_utf8(answer.head).unwrap();
        assert!(head.ends_with("\r\nConnection: keep-alive\r\n\r\n"), "{head}");
        assert!(answer.pieces.is_empty());
    }
}

#[test]
fn the_rest_of_an_answer_comes_in_chunks_or_ends_the_connection() {
    for (version, end) in [
        ("1.1", "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("1.0", "Connection: close\r\n\r\n"),
    ] {
        let request = format!("GET / HTTP/{version}\r\nConnection: keep-alive\r\n\r\n");
        let answer = composed(&request, "200 OK", OutgoingBody::Rest(Box::new(Long)));
        let head = String::from_utf8(answer.head).unwrap();
        assert!(head.ends_with(end) && answer.rest.is_some(), "{head}");
    }
}
