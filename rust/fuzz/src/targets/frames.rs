//! Frames of HTTP/2 on a connection of the gRPC front, in forms that no library sends.
//!
//! The connection goes on, or ends. In either case another connection, of `h2`'s client, is served.

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, split};

use super::calls;
use super::target::Target;
use crate::house::{self, SENT_BACK, WRITE, key};

pub(super) const TARGET: Target = Target {
    name: "frames",
    seeds,
    words: &[
        END,
        b"\xfe\x00\x01\x01",
        b"\xfe\x01\x04\x03",
        b"\xfe\x01\x05\x01",
        b"\xfe\x02\x00\x01\x00\x00\x00\x00\x10",
        b"\xfe\x03\x00\x01\x00\x00\x00\x08",
        b"\xfe\x04\x00\x00",
        b"\xfe\x04\x01\x00",
        b"\x00\x04\x00\x00\x00\x00",
        b"\x00\x01\x00\x00\x00\x00",
        b"\xfe\x05\x04\x01\x00\x00\x00\x02",
        b"\xfe\x06\x00\x0012345678",
        b"\xfe\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\xfe\x08\x00\x00\x7f\xff\xff\xff",
        b"\xfe\x08\x00\x01\x00\x00\x00\x01",
        b"\xfe\x09\x04\x01",
        b"\xfd\x7f",
        b"\x00\x0egrpc-encoding\x04gzip",
        b"\x00\x0cgrpc-timeout\x021n",
        b"\x00\x0econtent-length\x019",
        b"\x3f\xe1\x1f",
        b"\x83\x86\x84\xbe\xbf",
        b"\x00\x00\x00\x00\x00",
    ],
    memory_bytes_max: 32 << 20,
    cost: None,
    run,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// In an input, marks the end of a frame. The next three bytes are kind, flags and stream of the
/// next frame.
const END: &[u8] = &[MARK];
const MARK: u8 = 0xfe;
/// In an input, repeats the byte before it, `REPEATS` times for each unit of the byte after it.
/// Example: `a`, [`REPEAT`], 2 stands for 1 + 130 times `a`.
const REPEAT: u8 = 0xfd;
const REPEATS: usize = 65;
/// Bytes of this kind and above are not frames and are sent unchanged.
const PLAIN: u8 = 0x20;
const BYTES_MAX: usize = 256 << 10;
const HEAD_BYTES: usize = 9;
const FRAME_BYTES_MAX: usize = 16 << 10;
const PING: u8 = 6;
/// Kinds that the service sends: all except PRIORITY and `PUSH_PROMISE`.
const KINDS: [u8; 8] = [0, 1, 3, 4, 6, 7, 8, 9];
const ACK: u8 = 1;
const LAST_PING: &[u8; 8] = b"the last";

fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
    [vec![0x40], text(name), text(value)].concat()
}

fn head(path: &str, key: &str) -> Vec<u8> {
    let fields = [
        (":method", "POST"),
        (":scheme", "https"),
        (":path", path),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("x-api-key", key),
    ];
    fields.map(|(name, value)| field(name, value)).concat()
}

/// Makes an input of these frames, after preface and settings.
fn input(frames: &[&[u8]]) -> Vec<u8> {
    [&[PREFACE, b"\x04\x00\x00"], frames].concat().join(&MARK)
}

fn seeds() -> Vec<Vec<u8>> {
    let good = [b"\x01\x04\x01", &*head(WRITE, &key('a'))].concat();
    let sent_back = [b"\x01\x04\x03", &*head(SENT_BACK, "")].concat();
    let bad = [b"\x01\x05\x05", &*head(WRITE, "nonsense")].concat();
    let (half, rest) = good.split_at(good.len() / 2);
    let rest = [b"\x09\x04\x01", rest].concat();
    let half = [b"\x01\x00\x01", &half[3..]].concat();
    vec![
        input(&[&good, b"\x00\x01\x01\x00\x00\x00\x00\x00"]),
        input(&[&good, b"\x00\x00\x01\x00\x00\x00\x08\x00", b"\x03\x00\x01\x00\x00\x00\x08"]),
        input(&[
            &good,
            b"\x00\x00\x01\x00\x00\x00\x04\x00x\xfd\x7f",
            b"\x01\x05\x01\x40\x01a\x01b",
        ]),
        input(&[&sent_back, b"\x00\x01\x03\x00\x00\x00\x00\x02ab", &bad]),
        input(&[&half, &rest, b"\x00\x09\x01\x01\x01\x00\x00\x00\x00\x00"]),
        input(&[b"\x06\x00\x0012345678", b"\x04\x00\x00\x00\x04\x00\x00\x00\x00", &bad]),
        input(&[
            &good,
            &sent_back,
            b"\x08\x00\x01\x7f\xff\xff\xff",
            b"\x02\x00\x03\x00\x00\x00\x01\x10",
        ]),
        PREFACE.to_vec(),
    ]
}

fn run(input: &[u8]) {
    let bytes = wire(input);
    house::run(async |house| {
        let (mut reading, mut writing) = split(house.connect());
        let goes_on = is_whole(&bytes);
        let sending = async {
            drop(writing.write_all(&bytes).await); // the connection may have ended
            if goes_on {
                drop(writing.write_all(&frame(PING, 0, 0, LAST_PING)).await);
            } else {
                drop(writing.shutdown().await);
            }
        };
        tokio::join!(sending, until_pong(&mut reading));
        calls::check_good(&house).await;
        drop(writing.shutdown().await);
        while next(&mut reading).await.is_some() {}
    });
}

/// Returns the bytes that an input encodes.
fn wire(input: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in input.split(|byte| *byte == MARK) {
        match piece {
            [first, ..] if *first >= PLAIN => bytes.extend(expanded(piece)),
            [kind, flags, stream, payload @ ..] => {
                let high = if *stream < 0x80 { 0 } else { stream & 0x7f };
                let stream = u32::from_be_bytes([high, 0, 0, *stream]);
                bytes.extend(frame(*kind, *flags, stream, &expanded(payload)));
            }
            _ => {}
        }
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

fn expanded(piece: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut rest = piece.iter();
    while let Some(&byte) = rest.next() {
        match (byte, bytes.last().copied()) {
            (REPEAT, Some(last)) => {
                let count = rest.next().map_or(0, |count| REPEATS * usize::from(*count));
                if bytes.len() < BYTES_MAX {
                    bytes.resize(bytes.len() + count, last);
                }
            }
            _ => bytes.push(byte),
        }
    }
    bytes
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).expect("bounded").to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns true for a preface and whole frames: the service will read the next bytes as a frame.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(mut rest) = bytes.strip_prefix(PREFACE) else { return false };
    while let [high, middle, low, ..] = *rest {
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        let Some(next) = rest.get(HEAD_BYTES + length..) else { return false };
        rest = next;
    }
    rest.is_empty()
}

/// Reads until the answer to the last PING, or the end of the connection.
async fn until_pong(reading: &mut ReadHalf<DuplexStream>) {
    while let Some((kind, flags, payload)) = next(reading).await {
        if (kind, flags, &*payload) == (PING, ACK, LAST_PING) {
            return;
        }
    }
}

/// Returns the next frame: kind, flags, payload.
async fn next(reading: &mut ReadHalf<DuplexStream>) -> Option<(u8, u8, Vec<u8>)> {
    let mut head = [0; HEAD_BYTES];
    reading.read_exact(&mut head).await.ok()?;
    let [high, middle, low, kind, flags, ..] = head;
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    assert!(length <= FRAME_BYTES_MAX, "a frame of {length} bytes");
    assert!(KINDS.contains(&kind), "a frame of kind {kind}");
    let mut payload = vec![0; length];
    reading.read_exact(&mut payload).await.ok()?;
    Some((kind, flags, payload))
}
