//! Answers that are made while their clients take them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Client, Worker, answer, path};
use crate::connection::{Answer, AnswerRest, Piece};
use crate::request::{Request, ServeTurn};
use crate::shared::Amount;

const GET: &str = "GET / HTTP/1.1\r\n\r\n";
const PIECE_BYTES: usize = 1 << 20;
const HELD_BYTES: u64 = 5 << 20;

/// Pieces of an answer. `made` counts them; `_under_way` tells the answers that are not over.
struct Pieces {
    left: usize,
    made: Arc<AtomicUsize>,
    _under_way: Arc<()>,
    panics: bool,
}

impl AnswerRest for Pieces {
    fn next(&mut self) -> Option<Piece> {
        assert!(self.left > 0 || !self.panics, "a fault of the application");
        self.left = self.left.checked_sub(1)?;
        self.made.fetch_add(1, Ordering::Relaxed);
        Some(Box::new(vec![b'x'; PIECE_BYTES]))
    }

    fn held_bytes(&self) -> u64 {
        HELD_BYTES
    }
}

/// Knowledge of the application about its answers.
#[derive(Default)]
struct Application {
    made: Arc<AtomicUsize>,
    under_way: Arc<()>,
}

impl Application {
    fn begin(&self, request: Request, pieces: usize, panics: bool) {
        let (made, under_way) = (Arc::clone(&self.made), Arc::clone(&self.under_way));
        let rest = Box::new(Pieces { left: pieces, made, _under_way: under_way, panics });
        drop(request.answer(Answer {
            head: b"head ".to_vec(),
            rest: Some(rest),
            ..Answer::default()
        }));
    }

    fn is_over(&self) -> bool {
        Arc::strong_count(&self.under_way) == 1
    }
}

/// Lets threads make every part that is due.
fn go_on(worker: &mut Worker) {
    worker.turn();
    while worker.requests.len() > 0 {
        let request = ServeTurn::next(&worker.requests, None, |_, _| {}).unwrap();
        assert!(request.has_begun(), "no other request is there");
        drop(request.send_part(Vec::new()));
        worker.turn();
    }
}

/// Returns everything up to the end of the answer, or of the connection.
fn received(worker: &mut Worker, client: &mut Client, application: &Application) -> String {
    let mut all = String::new();
    while !application.is_over() {
        go_on(worker);
        all += &client.received();
    }
    loop {
        go_on(worker);
        let more = client.received();
        if more.is_empty() {
            return all;
        }
        all += &more;
    }
}

#[test]
fn o3_a_long_answer_comes_in_chunks_and_the_connection_goes_on_behind_it() {
    let (mut worker, application) = (Worker::new(), Application::default());
    let mut client = worker.connect();
    client.send(GET);
    application.begin(worker.next(), 20, false);
    let all = received(&mut worker, &mut client, &application);
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(PIECE_BYTES));
    assert!(all == format!("head {}0\r\n\r\n", chunk.repeat(20)), "{} bytes", all.len());
    client.send("GET /next HTTP/1.1\r\n\r\n");
    let request = worker.next();
    assert_eq!(path(&request), "/next");
    answer(request, "next");
    assert_eq!(client.received(), "next");
}

#[test]
fn o3_no_more_is_made_than_the_client_takes_and_all_of_it_counts_for_its_tenant() {
    let (mut worker, application) = (Worker::new(), Application::default());
    let mut client = worker.connect();
    client.send(GET);
    application.begin(worker.next(), 1_000, false);
    go_on(&mut worker);
    let made = application.made.load(Ordering::Relaxed);
    assert!(made < 20, "{made} pieces are made of an answer that nobody reads");
    assert_eq!(worker.shared.share(Amount::Unsent).total(), HELD_BYTES);
    assert_eq!(worker.shared.share(Amount::Requests).total(), 1, "it is under way");
    worker.event_loop.close_all();
    assert!(application.is_over(), "nothing is kept for a client that has gone");
    let totals = [Amount::Unsent, Amount::Requests].map(|of| worker.shared.share(of).total());
    assert_eq!(totals, [0, 0]);
    assert!(client.is_closed());
}

#[test]
fn o3_http_1_0_gets_it_up_to_the_end_of_the_connection() {
    let (mut worker, application) = (Worker::new(), Application::default());
    let mut client = worker.connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    application.begin(worker.next(), 3, false);
    let all = received(&mut worker, &mut client, &application);
    assert!(all == format!("head {}", "x".repeat(3 * PIECE_BYTES)), "{} bytes", all.len());
    assert!(client.is_closed());
}

#[test]
fn o3_a_failure_behind_the_head_ends_the_connection_and_never_the_body() {
    let (mut worker, application) = (Worker::new(), Application::default());
    let (mut client, mut other) = (worker.connect(), worker.connect());
    client.send(GET);
    application.begin(worker.next(), 1, true);
    let mut all = String::new();
    while worker.requests.len() == 0 {
        worker.turn();
        all += &client.received();
    }
    let request = ServeTurn::next(&worker.requests, None, |_, _| {}).unwrap();
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        drop(request.send_part(Vec::new()));
    }));
    assert!(failed.is_err());
    worker.turn();
    all += &client.received();
    assert!(client.is_closed() && application.is_over());
    assert!(all.starts_with("head 100000\r\n") && !all.ends_with("0\r\n\r\n"));
    other.send(GET);
    answer(worker.next(), "other");
    assert_eq!(other.received(), "other");
    assert_eq!(worker.shared.share(Amount::Unsent).total(), 0);
}

#[test]
fn o3_a_client_that_takes_nothing_of_it_is_cut() {
    let (mut worker, application) = (Worker::new(), Application::default());
    let mut client = worker.connect();
    client.send(GET);
    let began = Instant::now();
    application.begin(worker.next(), 1_000, false);
    go_on(&mut worker);
    worker.event_loop.sweep(began + Duration::from_secs(29));
    assert!(!application.is_over());
    worker.event_loop.sweep(Instant::now() + Duration::from_secs(31));
    assert!(application.is_over());
    while !client.is_closed() {}
}
