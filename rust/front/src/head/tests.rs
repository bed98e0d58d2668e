//! Well-formed heads of clients, and malformed heads.

use proptest::prelude::*;

use super::*;

const HEAD_BYTES_MAX: usize = 65_536;
const LIMITS: BodyLimits =
    BodyLimits { body_bytes_max: 1_048_576, drain_bytes_max: 8_388_608, takes_chunks: false };
const USUAL: &str = "POST /telemetry?a=%20b&c=? HTTP/1.1\r\nHost: a:1\r\nX-Api-Key: k:1\r\n\
                     Content-Length: 5\r\n\r\n";

/// Returns the head in `bytes`, which arrive in pieces cut at `cuts`, and the count of the head's
/// bytes.
fn received(bytes: &[u8], cuts: &[usize]) -> Result<Option<(RequestHead, usize)>, HeadFault> {
    let mut scanner = HeadScanner::new();
    for &cut in cuts.iter().chain([&bytes.len()]) {
        if let Some(end) = scanner.end(&bytes[..cut], HEAD_BYTES_MAX)? {
            return RequestHead::parse(bytes[..end].to_vec()).map(|head| Some((head, end)));
        }
    }
    Ok(None)
}

fn parsed(head: impl AsRef<[u8]>) -> Result<RequestHead, HeadFault> {
    let (head, end) = received(head.as_ref(), &[])?.expect("the head is whole");
    assert!(end > 0);
    Ok(head)
}

fn with_fields(fields: &str) -> Result<RequestHead, HeadFault> {
    parsed(format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n"))
}

fn fields_of(head: &RequestHead) -> Vec<(&str, &str)> {
    head.fields().map(|(name, value)| (name, str::from_utf8(value).unwrap())).collect()
}

#[test]
fn a_usual_head_in_its_parts() {
    let head = parsed(USUAL).unwrap();
    assert_eq!((head.method(), head.path(), head.query()), ("POST", "/telemetry", "a=%20b&c=?"));
    assert_eq!(head.minor_version(), 1);
    let fields = [("HOST", "a:1"), ("X_API_KEY", "k:1"), ("CONTENT_LENGTH", "5")];
    assert_eq!(fields_of(&head), fields);
    assert_eq!(head.field("X_API_KEY"), Some(b"k:1".as_slice()));
    assert_eq!((head.body_bytes(), head.is_chunked()), (5, false));
    assert_eq!((head.closes(), head.expects_continue()), (false, false));
}

#[test]
fn targets_in_their_four_forms() {
    let cases = [
        ("GET", "/a/b%2F?c=d%26&e", "/a/b%2F", "c=d%26&e"),
        ("GET", "//a?b", "//a", "b"),
        ("GET", "/a#b?c", "/a", ""),
        ("GET", "/a?b#c", "/a", "b"),
        ("GET", "/[", "/[", ""),
        ("OPTIONS", "*", "*", ""),
        ("GET", "http://h/a?b#c", "/a", "b"),
        ("GET", "http://h", "", ""),
        ("GET", "http://[::1]:80/a", "/a", ""),
        ("GET", "http://[fe80::1%25eth0]/a", "/a", ""),
        ("GET", "http://[v1.a:b]/a", "/a", ""),
        ("GET", "1http://h/a", "1http://h/a", ""),
        ("GET", "a?://", "a", "://"),
        ("CONNECT", "host:443", "443", ""),
        ("CONNECT", "[::1]:443", "[::1]:443", ""),
    ];
    for (method, target, path, query) in cases {
        let head = parsed(format!("{method} {target} HTTP/1.1\r\n\r\n")).unwrap();
        assert_eq!((head.path(), head.query()), (path, query), "{target}");
    }
}

#[test]
fn malformed_request_lines() {
    let lines: [&[u8]; 24] = [
        b"",
        b"GET",
        b"GET /",
        b"GET  / HTTP/1.1",
        b"GET / HTTP/1.1 ",
        b" GET / HTTP/1.1",
        b"G@T / HTTP/1.1",
        b"GET\t/ HTTP/1.1",
        b"GET /\xff HTTP/1.1",
        b"GET /\x7f HTTP/1.1",
        b"GET /\0 HTTP/1.1",
        b"GET * HTTP/1.1",
        b"GET a HTTP/1.1",
        b"GET host:80 HTTP/1.1",
        b"GET http://[::1/ HTTP/1.1",
        b"GET http://::1]/ HTTP/1.1",
        b"GET http://[1.2.3.4]/ HTTP/1.1",
        b"GET http://[::1%]/ HTTP/1.1",
        b"GET / http/1.1",
        b"GET / HTTP/0.9",
        b"GET / HTTP/2.0",
        b"GET / HTTP/1.10",
        b"GET / HTTP/1",
        b"GET /\r HTTP/1.1",
    ];
    for line in lines {
        let head = [line, b"\r\nHost: a\r\n\r\n"].concat();
        let refusal = parsed(&head).unwrap_err();
        assert_eq!(refusal, HeadFault::BadRequest, "{}", line.escape_ascii());
    }
}

#[test]
fn names_and_values_of_fields() {
    let cases: [(&str, &[(&str, &str)]); 9] = [
        ("a-b!:\t c d \t", &[("A_B!", "c d")]),
        ("A:", &[("A", "")]),
        ("A:b:c", &[("A", "b:c")]),
        ("A: b\tc", &[("A", "b\tc")]),
        ("A_B: c", &[]),
        ("Content_Type: a\r\nContent-Type: b", &[("CONTENT_TYPE", "b")]),
        ("A: b\r\nC: d\r\na: e\r\nA:\r\nC: f", &[("A", "b,e,"), ("C", "d,f")]),
        ("Host: a\r\nA: b", &[("HOST", "a"), ("A", "b")]),
        ("Cookie: \u{fc}", &[("COOKIE", "\u{fc}")]),
    ];
    for (lines, fields) in cases {
        assert_eq!(fields_of(&with_fields(lines).unwrap()), fields, "{lines}");
    }
}

#[test]
fn malformed_fields() {
    use HeadFault::{
        BadRequest, ExpectationFailed, InvalidContentLength, UnsupportedTransferCoding,
    };
    let cases = [
        ("A", BadRequest),
        (": b", BadRequest),
        ("A : b", BadRequest),
        (" A: b", BadRequest),
        ("\u{df}: b", BadRequest),
        ("A: b\0", BadRequest),
        ("A: b\x7f", BadRequest),
        ("A: b\rc", BadRequest),
        ("A: b\r\n c", BadRequest),
        ("A: b\r\n\tc", BadRequest),
        ("A: b\nC: d", BadRequest),
        ("A_B: b\0", BadRequest),
        ("Host: a\r\nhost: a", BadRequest),
        ("Content-Type: a\r\nContent-Type: a", BadRequest),
        ("Expect: 200-ok", ExpectationFailed),
        ("Expect: 200-ok\r\nA", ExpectationFailed),
        ("A\r\nExpect: 200-ok", BadRequest),
        ("Content-Length:", InvalidContentLength),
        ("Content-Length: -3", InvalidContentLength),
        ("Content-Length: +3", InvalidContentLength),
        ("Content-Length: 3, 3", InvalidContentLength),
        ("Content-Length: \u{b2}", InvalidContentLength),
        ("Content-Length: 3\0", InvalidContentLength),
        ("Content-Length: 3\0\r\n 4", BadRequest),
        ("Content-Length: 3\r\nContent-Length: 3", InvalidContentLength),
        ("Content-Length: 3\r\nTransfer-Encoding: chunked", InvalidContentLength),
        ("Transfer-Encoding: gzip", BadRequest),
        ("Transfer-Encoding: identity", BadRequest),
        ("Transfer-Encoding: chunked, gzip", BadRequest),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", BadRequest),
        ("Transfer-Encoding: chunked,", UnsupportedTransferCoding),
        ("Transfer-Encoding: xchunked", UnsupportedTransferCoding),
    ];
    for (lines, refusal) in cases {
        assert_eq!(with_fields(lines).unwrap_err(), refusal, "{lines:?}");
    }
}

#[test]
fn the_connection_ends_if_any_member_of_any_connection_line_says_so() {
    let cases = [
        ("1.1", "A: b", false),
        ("1.1", "Connection: Close", true),
        ("1.1", "Connection: TE, close", true),
        ("1.1", "Connection: close\t,TE", true),
        ("1.1", "Connection: keep-alive\r\nA: b\r\nConnection: close", true),
        ("1.1", "Connection: close\r\nConnection: keep-alive", true),
        ("1.1", "Connection: TE, closed", false),
        ("1.0", "A: b", true),
        ("1.0", "Connection: TE, keep-alive", false),
        ("1.0", "Connection: TE\r\nConnection: keep-alive", false),
        ("1.0", "Connection: keep-alive, close", true),
        ("1.0", "Connection: Keep-Alive", false),
        ("1.7", "A: b", false),
        ("1.1", "Transfer-Encoding: gzip, chunked", true),
    ];
    for (version, lines, closes) in cases {
        let head = parsed(format!("GET / HTTP/{version}\r\n{lines}\r\n\r\n")).unwrap();
        assert_eq!(head.closes(), closes, "{version} {lines}");
    }
    assert!(parsed("CONNECT a:1 HTTP/1.1\r\nConnection: keep-alive\r\n\r\n").unwrap().closes());
}

#[test]
fn an_expectation_needs_a_version_that_has_it() {
    for (version, expects) in [("1.1", true), ("1.0", false)] {
        let text = format!("POST / HTTP/{version}\r\nExpect: 100-Continue\r\n\r\n");
        assert_eq!(parsed(text).unwrap().expects_continue(), expects);
    }
}

#[test]
fn bodies_that_are_read_skipped_or_neither() {
    let framing = |method: &str, fields: &str| {
        let head = parsed(format!("{method} / HTTP/1.1\r\n{fields}\r\n\r\n")).unwrap();
        let framing = BodyFraming::of(&head, LIMITS);
        (framing.is_buffered, framing.is_reusable, framing.is_oversized)
    };
    let beyond = "Content-Length: 99999999999999999999999";
    assert_eq!(framing("GET", "A: b"), (false, true, false));
    assert_eq!(framing("GET", "Content-Length: 8388608"), (false, true, false));
    assert_eq!(framing("GET", "Content-Length: 8388609"), (false, false, false));
    assert_eq!(framing("GET", "Content-Length: 3\r\nExpect: 100-continue"), (false, false, false));
    assert_eq!(framing("POST", "Content-Length: 0"), (false, true, false));
    assert_eq!(framing("PUT", "Content-Length: 01"), (true, true, false));
    assert_eq!(framing("PATCH", "Content-Length: 1048576"), (true, true, false));
    assert_eq!(framing("POST", "Content-Length: 1048577"), (false, false, true));
    assert_eq!(framing("POST", beyond), (false, false, true));
    assert_eq!(framing("POST", "Content-Length: 3\r\nExpect: 100-continue"), (true, true, false));
    assert_eq!(framing("POST", "Content-Length: 3\r\nConnection: close"), (true, false, false));
    assert_eq!(framing("POST", "Transfer-Encoding: chunked"), (false, false, false));
}

#[test]
fn limits_hold_to_the_byte() {
    let line = |bytes: usize| format!("GET /{} HTTP/1.1", "a".repeat(bytes - 14));
    let field = |bytes: usize| format!("A: {}\r\n", "a".repeat(bytes - 5));
    let request_line = |bytes| parsed(format!("{}\r\nA: b\r\n\r\n", line(bytes)));
    assert_eq!(request_line(8190).unwrap().path().len(), 8177);
    for bytes in [8191, 8192, 8193, 20_000] {
        assert_eq!(request_line(bytes).unwrap_err(), HeadFault::UriTooLong, "{bytes}");
    }
    assert!(parsed(format!("\r\n{}\r\n\r\n", line(8190))).is_ok());
    assert!(parsed(format!("GET / HTTP/1.1\r\n{}\r\n", field(8190))).is_ok());
    let longer = parsed(format!("GET / HTTP/1.1\r\n{}\r\n", field(8191)));
    assert_eq!(longer.unwrap_err(), HeadFault::HeadersTooLarge);
    let count = |fields: usize| {
        parsed(format!("GET / HTTP/1.1\r\n{}A_B: c\r\n\r\n", "A: b\r\n".repeat(fields)))
    };
    assert!(count(99).is_ok());
    assert_eq!(count(100).unwrap_err(), HeadFault::HeadersTooLarge);
    let head = |bytes: usize| {
        let fields = field(8190).repeat(7);
        let rest = bytes - fields.len() - "GET / HTTP/1.1\r\n\r\n".len();
        parsed(format!("GET / HTTP/1.1\r\n{fields}{}\r\n", field(rest)))
    };
    assert!(head(HEAD_BYTES_MAX).is_ok());
    assert_eq!(head(HEAD_BYTES_MAX + 1).unwrap_err(), HeadFault::HeadersTooLarge);
}

#[test]
fn what_nothing_can_mend_is_refused_before_the_end() {
    let cases = [
        ("GET / HTTP/1.1\n".to_owned(), HeadFault::BadRequest),
        ("\n".to_owned(), HeadFault::BadRequest),
        ("GET / HTTP/1.1\r\nExpect: 200-ok\r\nA: b\nC".to_owned(), HeadFault::BadRequest),
        ("A".repeat(8193), HeadFault::UriTooLong),
        (format!("GET / HTTP/1.1\r\n{}", "A".repeat(HEAD_BYTES_MAX)), HeadFault::HeadersTooLarge),
    ];
    for (text, refusal) in cases {
        assert_eq!(received(text.as_bytes(), &[]).unwrap_err(), refusal);
    }
    assert!(received("A".repeat(8192).as_bytes(), &[]).unwrap().is_none());
}

#[test]
fn bytes_behind_a_head_are_not_looked_at() {
    let bytes = format!("\r\n{USUAL}\nGET");
    let (_, end) = received(bytes.as_bytes(), &[]).unwrap().unwrap();
    assert_eq!(end, USUAL.len() + 2);
}

/// Texts that heads consist of, and texts that break a head.
const PIECES: [&str; 24] = [
    "GET",
    "POST",
    " ",
    "/",
    "/a?b#c",
    "HTTP/1.1",
    "HTTP/1.0",
    "\r\n",
    "\r\n",
    "\r\n",
    "\r\n\r\n",
    "\r",
    "\n",
    "Host",
    "A_B",
    ":",
    ": ",
    "b",
    ",",
    "Content-Length",
    "3",
    "Transfer-Encoding",
    "chunked",
    "Expect",
];

fn heads() -> impl Strategy<Value = Vec<u8>> {
    let mixed = prop::collection::vec(prop::sample::select(PIECES.as_slice()), 0..30)
        .prop_map(|pieces| pieces.concat().into_bytes());
    let mutated =
        (prop::sample::subsequence((0..USUAL.len()).collect::<Vec<_>>(), 0..4), any::<u8>())
            .prop_map(|(indexes, byte)| {
                let mut bytes = USUAL.as_bytes().to_vec();
                for index in indexes {
                    bytes[index] = byte;
                }
                bytes
            });
    prop_oneof![mixed, mutated, prop::collection::vec(any::<u8>(), 0..60)]
}

proptest! {
    #[test]
    fn a_result_does_not_depend_on_the_cuts(bytes in heads(), step in 1_usize..9) {
        let text = |cuts: &[usize]| format!("{:?}", received(&bytes, cuts));
        let cuts: Vec<usize> = (0..bytes.len()).step_by(step).collect();
        prop_assert_eq!(text(&cuts), text(&[]));
    }

    #[test]
    fn nothing_panics(bytes in heads()) {
        if let Ok(head) = RequestHead::parse(bytes) {
            let framing = BodyFraming::of(&head, LIMITS);
            prop_assert!(!framing.is_reusable || !head.closes());
        }
    }
}
