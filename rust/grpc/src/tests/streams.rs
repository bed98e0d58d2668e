//! RFC 9113, 5.1, 5.2 and 8.1: frames that an open stream does not accept in its state.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::hostile::{END_HEADERS, GOAWAY, HEADERS, PREFACE, RST_STREAM, SETTINGS, frame, head};
use super::*;

const DATA: u8 = 0;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const STREAMS_MAX: u32 = 256;

/// Returns the head of a call that goes on, on that stream.
fn open(stream: u32) -> Vec<u8> {
    head(END_HEADERS, stream, "/TelemetryIngest/Write", &key('a'))
}

/// Returns the same head with one more field.
fn open_with(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len().try_into().unwrap()], text.as_bytes()].concat();
    frame(HEADERS, END_HEADERS, 1, &[&open(1)[9..], &[0], &text(name), &text(value)].concat())
}

/// Returns the code of the first error that the service reports about a stream or the connection.
async fn error_after(house: &House, frames: &[Vec<u8>]) -> u32 {
    let mut connection = house.connect();
    connection.write_all(PREFACE).await.unwrap();
    connection.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    connection.write_all(&frames.concat()).await.unwrap();
    loop {
        let mut head = [0; 9];
        connection.read_exact(&mut head).await.unwrap();
        let [high, middle, low, kind, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        connection.read_exact(&mut payload).await.unwrap();
        assert_ne!(kind, HEADERS, "the call is answered");
        let code = match kind {
            RST_STREAM => &payload[..],
            GOAWAY => &payload[4..8],
            _ => continue,
        };
        return u32::from_be_bytes(code.try_into().unwrap());
    }
}

#[test]
fn a_frame_that_a_stream_does_not_take_is_an_error_of_the_right_code() {
    let house = House::new();
    let reset = frame(RST_STREAM, 0, 1, &CANCEL.to_be_bytes());
    let more = frame(WINDOW_UPDATE, 0, 1, &0x7fff_ffff_u32.to_be_bytes());
    let end = |bytes: &[u8]| frame(DATA, END_STREAM, 1, bytes);
    let method = frame(HEADERS, END_HEADERS, 1, &[0x83]); // `:method: POST`
    let cases = [
        (vec![open(1), reset.clone(), end(b"abcd")], STREAM_CLOSED),
        // h2 turns this error of a stream into an error of the connection (RFC 9113, 5.4.1).
        (vec![open(1), reset, open(1)], PROTOCOL_ERROR),
        (vec![open(1), open(1)], PROTOCOL_ERROR),
        (vec![open(1), method], PROTOCOL_ERROR),
        (vec![open_with("content-length", "1"), end(b"abcd")], PROTOCOL_ERROR),
        (
            vec![open_with("content-length", "9"), frame(DATA, 0, 1, b"abcd"), end(b"efgh")],
            PROTOCOL_ERROR,
        ),
        (vec![open(1), more.clone(), more], FLOW_CONTROL_ERROR),
        ((0..=STREAMS_MAX).map(|call| open(2 * call + 1)).collect(), REFUSED_STREAM),
    ];
    house.runtime.block_on(async {
        for (at, (frames, code)) in cases.iter().enumerate() {
            assert_eq!(error_after(&house, frames).await, *code, "case {at}");
        }
    });
}
