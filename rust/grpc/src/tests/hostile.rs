//! B4, O6: frames that no library sends.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const END_HEADERS: u8 = 4;
const END_STREAM_AND_HEADERS: u8 = 5;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns the frame of a head, whose fields no table keeps (RFC 7541, 6.2.2).
pub(super) fn head(flags: u8, stream: u32, path: &str, key: &str) -> Vec<u8> {
    let fields = [
        (":method", "POST"),
        (":scheme", "https"),
        (":path", path),
        (":authority", "x"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("x-api-key", key),
    ];
    let text = |text: &str| [&[text.len().try_into().unwrap()], text.as_bytes()].concat();
    let fields = fields.iter().map(|(name, value)| [vec![0], text(name), text(value)].concat());
    frame(HEADERS, flags, stream, &fields.collect::<Vec<_>>().concat())
}

/// Receives the next frame of the service, and returns its kind.
async fn kind_of_next(connection: &mut DuplexStream) -> u8 {
    let mut head = [0; 9];
    connection.read_exact(&mut head).await.unwrap();
    let [high, middle, low, kind, ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
    connection.read_exact(&mut payload).await.unwrap();
    kind
}

/// Sends rounds of frames until the connection ends. Returns the count of the rounds.
async fn flooded(house: &House, mut round: impl FnMut(u32) -> Vec<u8>) -> u32 {
    let mut connection = house.connect();
    connection.write_all(PREFACE).await.unwrap();
    connection.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let (mut reading, mut writing) = tokio::io::split(connection);
    let drain =
        tokio::spawn(
            async move { drop(tokio::io::copy(&mut reading, &mut tokio::io::sink()).await) },
        );
    let mut sent = 0;
    while writing.write_all(&round(sent)).await.is_ok() {
        sent += 1;
    }
    drain.await.unwrap();
    sent
}

#[test]
fn floods_of_frames_that_ask_for_nothing_end() {
    let house = House::new();
    house.runtime.block_on(async {
        for kind in [PING, SETTINGS] {
            let payload: &[u8] = if kind == PING { &[0; 8] } else { &[] };
            let frames = flooded(&house, |_| frame(kind, 0, 0, payload).repeat(100)).await;
            // The connection's buffer takes some frames that are no longer read.
            assert!((10..2_000).contains(&frames), "{frames} rounds of 100");
        }
    });
}

#[test]
fn calls_that_are_reset_as_soon_as_they_have_begun_end_their_connection() {
    let house = House::new();
    house.runtime.block_on(async {
        let rounds = flooded(&house, |round| {
            let stream = 2 * round + 1;
            let call = head(END_HEADERS, stream, "/TelemetryIngest/Write", &key('a'));
            [call, frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
        });
        assert!(rounds.await < 10_000);
    });
}

#[test]
fn o6_a_connection_whose_last_ten_calls_were_refused_for_their_key_ends() {
    let house = House::new();
    house.runtime.block_on(async {
        let rounds = flooded(&house, |round| {
            head(END_STREAM_AND_HEADERS, 2 * round + 1, "/TelemetryIngest/Write", "nonsense")
        });
        rounds.await;
        let client = house.client().await;
        for _ in 0..3 {
            for _ in 0..9 {
                assert_eq!(client.write("nonsense", b"").await.0, GrpcStatus::UNAUTHENTICATED);
            }
            assert_eq!(client.write(&key('a'), &batch(1.0)).await.0, GrpcStatus::OK);
        }
    });
}

#[test]
fn a_path_that_nobody_serves_and_bytes_that_are_no_text_end_no_other_call() {
    let house = House::new();
    house.runtime.block_on(async {
        let client = house.client().await;
        let mut odd = house.connect();
        odd.write_all(PREFACE).await.unwrap();
        odd.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
        odd.write_all(&head(END_STREAM_AND_HEADERS, 1, "/nowhere", "")).await.unwrap();
        let mut broken = head(END_STREAM_AND_HEADERS, 3, "/xxxx", "");
        let at = broken.windows(4).position(|bytes| bytes == b"xxxx").unwrap();
        broken[at] = 0xff;
        odd.write_all(&broken).await.unwrap();
        // Frames are read in order: this answer proves that both paths have been examined.
        while !matches!(kind_of_next(&mut odd).await, RST_STREAM | GOAWAY) {}
        assert_eq!(client.write(&key('a'), &batch(1.0)).await.0, GrpcStatus::OK);
    });
    assert!(house.ended().is_empty(), "they are no calls");
}
