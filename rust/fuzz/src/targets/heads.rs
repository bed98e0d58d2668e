//! Requests in a row on a connection: heads, and bodies of the length that each head gives.
//!
//! The result must not depend on cuts, and an independent parser must read accepted heads the same
//! way.

use std::collections::BTreeMap;

use fleetcast_front::head::{BodyFraming, BodyLimits, HeadFault, HeadScanner, RequestHead};

use super::target::Target;

pub(super) const TARGET: Target = Target {
    name: "heads",
    seeds,
    words: &[
        b"\r\n",
        b"\n",
        b"\r\n\r\n",
        b"\r\n ",
        b": ",
        b" HTTP/1.1\r\n",
        b" HTTP/1.0\r\n",
        b"http://[::1]/",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"gzip, ",
        b"Connection: close\r\n",
        b"Expect: 100-continue\r\n",
        b"Host: a\r\n",
        b"A_B: c\r\n",
        b"\x01\x7f",
    ],
    memory_bytes_max: 4 << 20,
    cost: None,
    run,
};

const HEAD_BYTES_MAX: usize = 65_536;
const LIMITS: BodyLimits =
    BodyLimits { body_bytes_max: 100, drain_bytes_max: 200, takes_chunks: false };
/// In an input, repeats the byte before it, `REPEATS` times for each unit of the byte after it.
const REPEAT: u8 = 1;
const REPEATS: usize = 65;

fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "POST /telemetry?a=%20b HTTP/1.1\r\nHost: a:1\r\nX-Api-Key: k\r\nContent-Length: 3\r\n\r\n[1]\
         GET /read HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "\r\nPUT /a#b?c HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n\
         Content-Length: 2\r\n\r\n{}POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nA: b\r\nA-B!: \tc d\r\nA_B: e\r\na: f\r\nA:\r\n\r\n\
         GET http://[fe80::1%0]:1/a?b HTTP/1.1\r\n\r\nCONNECT a:1 HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: identity, chunked\r\n\r\n",
        "GET /a\x01\x7d HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nA: b\x01\x7d\u{fc}\r\n\r\n",
    ];
    texts.map(Vec::from).into()
}

fn run(input: &[u8]) {
    let bytes = &expanded(input);
    let mut start = 0;
    while let Some(next) = request_end(&bytes[start..]) {
        start += next;
    }
}

fn expanded(input: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut rest = input.iter();
    while let Some(&byte) = rest.next() {
        match (byte, bytes.last().copied()) {
            (REPEAT, Some(last)) => {
                let count = rest.next().map_or(0, |count| REPEATS * usize::from(*count));
                if bytes.len() < 2 * HEAD_BYTES_MAX {
                    bytes.resize(bytes.len() + count, last);
                }
            }
            _ => bytes.push(byte),
        }
    }
    bytes
}

/// Checks the request at the beginning of `bytes`. Returns its end if another request can follow.
fn request_end(bytes: &[u8]) -> Option<usize> {
    let mut whole = HeadScanner::new();
    let end = whole.end(bytes, HEAD_BYTES_MAX);
    assert_eq!(end, cut_at_every_byte(bytes, end), "a result that depends on cuts");
    let end = end.ok()??;
    assert!(bytes[..end].ends_with(b"\r\n\r\n") && end <= HEAD_BYTES_MAX);
    let head = RequestHead::parse(bytes[..end].to_vec()).ok()?;
    assert_same_to_httparse(&head, &bytes[..end]);
    let framing = BodyFraming::of(&head, LIMITS);
    let body_bytes = usize::try_from(framing.body_bytes).ok()?;
    assert!(!framing.is_reusable || body_bytes <= 200, "a body that nobody reads or skips");
    assert!(!(head.is_chunked() && framing.is_reusable), "a body without a known end");
    (framing.is_reusable && end + body_bytes < bytes.len()).then_some(end + body_bytes)
}

fn cut_at_every_byte(
    bytes: &[u8],
    expected: Result<Option<usize>, HeadFault>,
) -> Result<Option<usize>, HeadFault> {
    let mut scanner = HeadScanner::new();
    for cut in 0..=bytes.len() {
        match scanner.end(&bytes[..cut], HEAD_BYTES_MAX) {
            Ok(None) => {}
            decided => return decided,
        }
    }
    assert_eq!(expected, Ok(None), "a head that never ends");
    Ok(None)
}

fn assert_same_to_httparse(head: &RequestHead, bytes: &[u8]) {
    if head.minor_version() > 1 {
        return; // httparse does not know HTTP/1.2
    }
    let lines = bytes.split(|byte| *byte == b'\n').count();
    let mut fields = vec![httparse::EMPTY_HEADER; lines];
    let mut request = httparse::Request::new(&mut fields);
    assert_eq!(request.parse(bytes), Ok(httparse::Status::Complete(bytes.len())));
    assert_eq!(request.method, Some(head.method()));
    assert_eq!(request.version, Some(head.minor_version()));
    assert!(request.path.is_some_and(|target| target.contains(head.path())));
    let mut joined: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for field in request.headers.iter().filter(|field| !field.name.contains('_')) {
        joined
            .entry(field.name.to_ascii_uppercase().replace('-', "_"))
            .and_modify(|value| *value = [value, field.value].join(&b','))
            .or_insert_with(|| field.value.to_vec());
    }
    let ours: BTreeMap<String, Vec<u8>> =
        head.fields().map(|(name, value)| (name.to_owned(), value.to_vec())).collect();
    assert_eq!(ours, joined);
}
