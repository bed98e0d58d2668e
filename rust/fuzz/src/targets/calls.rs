//! Calls of `h2`'s client with valid frames, on a single connection of the gRPC front.
//!
//! Each call must get the answer of its message: a batch that the target's own plane accepts is
//! stored.

use std::io::Read;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::{GzEncoder, ZlibEncoder};
use fleetcast_core::model::clock;
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::{Acknowledgement, Failure, Plane};
use fleetcast_core::wire::Format;
use h2::client::{ResponseFuture, SendRequest, handshake};
use h2::{Reason, SendStream};
use http::{HeaderMap, Request};
use prost::Message;

use super::protobuf;
use super::target::Target;
use crate::house::{self, House, MESSAGE_BYTES_MAX, SENT_BACK, WRITE, key};

pub(super) const TARGET: Target = Target {
    name: "calls",
    seeds,
    words: &[
        &[MARK],
        b"\xfe\x00\x00\x00\x00\x00\x00",
        b"\xfe\x01\x00\x00\x00\x00\x03",
        b"\x0a\x06tenant\x12\x01b",
        b"\x1a\x0e\x0a\x09entity_id\x12\x01a",
        b"\x22\x0e\x0a\x01x\x12\x09\x09\x00\x00\x00\x00\x00\x00\xf0\x3f",
    ],
    memory_bytes_max: 16 << 20,
    cost: None,
    run,
};

/// In an input, the end of a call.
const MARK: u8 = 0xfe;
/// Fewer than the number of refusals that ends a connection.
const CALLS_MAX: usize = 8;
/// Greatest number of DATA frames. `h2` ends a connection after 128 DATA frames of a byte that are
/// not read.
const PIECES_MAX: usize = 12;
const HEAD_BYTES: usize = 5;

/// A call as an input encodes it.
struct Call<'i> {
    path: &'static str,
    key: String,
    packing: Option<&'static str>,
    /// The first byte of the body.
    flag: u8,
    /// Bytes that the body's length field adds to the true length.
    excess: u32,
    /// Bytes of a DATA frame, if that does not make too many frames.
    piece_bytes: usize,
    ending: Ending,
    message: &'i [u8],
}

#[derive(PartialEq)]
enum Ending {
    /// The last frame of the body.
    Data,
    Trailers,
    /// A reset by the client, before the end.
    Reset,
}

/// The code of a refusal, empty if there is none, and the body.
type Answer = (String, Vec<u8>);

/// `WriteResponse` of the schema.
#[derive(Message)]
struct WriteResponse {
    #[prost(string, tag = "1")]
    write_id: String,
    #[prost(uint32, tag = "2")]
    accepted_count: u32,
    #[prost(uint32, tag = "3")]
    rejected_count: u32,
}

fn seeds() -> Vec<Vec<u8>> {
    let messages = (protobuf::TARGET.seeds)();
    let heads: [[u8; 6]; 7] = [
        [1, 0, 0, 0, 7, 0],
        [2, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 1],
        [0, 0, 1, 1, 1, 1],
        [0, 0, 3, 0, 0, 0],
        [0, 0, 0, 0, 9, 2],
        [0, 0, 0, 4, 3, 0],
    ];
    let varied = heads.map(|head| [&head, &*messages[1]].concat()).join(&MARK);
    let plain = messages.iter().map(|message| [&[0; 6], &**message].concat());
    plain.chain([varied]).collect()
}

fn run(input: &[u8]) {
    house::run(async |house| {
        let client = connect(&house).await;
        let twin = Plane::in_memory("a").expect("random bytes");
        for call in input.split(|byte| *byte == MARK).filter_map(Call::parse).take(CALLS_MAX) {
            check(&client, &call, &twin).await;
        }
    });
}

/// Checks that a good call is served on a new connection.
pub(super) async fn check_good(house: &House) {
    let input = [&[0; 6], &*(protobuf::TARGET.seeds)()[1]].concat();
    let call = Call::parse(&input).expect("a call");
    let twin = Plane::in_memory("a").expect("random bytes");
    check(&connect(house).await, &call, &twin).await;
}

async fn connect(house: &House) -> SendRequest<Bytes> {
    let (client, driver) = handshake(house.connect()).await.expect("it is served");
    tokio::spawn(driver);
    client
}

async fn check(client: &SendRequest<Bytes>, call: &Call<'_>, twin: &Plane) {
    let body = call.body();
    let mut client = client.clone().ready().await.expect("the connection goes on");
    let (response, mut stream) = client.send_request(call.head(), false).expect("it is ready");
    send(&mut stream, call, &body);
    if call.ending == Ending::Reset {
        return stream.send_reset(Reason::CANCEL);
    }
    let (code, answered) = answer(response).await;
    match call.expected(twin) {
        Expected::SentBack => assert_eq!((code, answered), (String::new(), body)),
        Expected::Refused(expected) => assert_eq!((code, answered), (expected, Vec::new())),
        Expected::Stored(counts) => {
            let message = answered.get(HEAD_BYTES..).expect("a message");
            let response = WriteResponse::decode(message).expect("a message");
            assert!(!response.write_id.is_empty());
            assert_eq!((response.accepted_count, response.rejected_count), counts);
        }
    }
}

/// Sends a body. A call that is refused before its end takes no more bytes.
fn send(stream: &mut SendStream<Bytes>, call: &Call<'_>, body: &[u8]) {
    let piece_bytes = call.piece_bytes.max(body.len().div_ceil(PIECES_MAX));
    let mut pieces = body.chunks(piece_bytes).peekable();
    while let Some(piece) = pieces.next() {
        let is_end = pieces.peek().is_none() && call.ending == Ending::Data;
        drop(stream.send_data(Bytes::copy_from_slice(piece), is_end));
    }
    if call.ending == Ending::Trailers {
        drop(stream.send_trailers(HeaderMap::new()));
    }
}

async fn answer(response: ResponseFuture) -> Answer {
    let (head, mut stream) = response.await.expect("an answer").into_parts();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data.expect("a whole answer");
        drop(stream.flow_control().release_capacity(data.len()));
        body.extend_from_slice(&data);
    }
    let trailers = stream.trailers().await.expect("a whole answer").unwrap_or(head.headers);
    let details = trailers.get("grpc-message").map_or("", |text| text.to_str().expect("ASCII"));
    let code = details.split(':').next().unwrap_or_default();
    assert_eq!(trailers.get("grpc-status").is_some_and(|status| status == "0"), code.is_empty());
    (code.to_owned(), body)
}

enum Expected {
    SentBack,
    Refused(String),
    /// Counts of records, accepted and rejected.
    Stored((u32, u32)),
}

impl<'i> Call<'i> {
    fn parse(input: &'i [u8]) -> Option<Self> {
        let [path, key_name, packing, body, piece_bytes, ending, message @ ..] = input else {
            return None;
        };
        let ending = match ending % 3 {
            0 => Ending::Data,
            1 => Ending::Trailers,
            _ => Ending::Reset,
        };
        let key = match key_name % 3 {
            1 => "nonsense".to_owned(),
            // After a reset it is unknown if the batch was stored. Such calls use `b`, which the
            // twin ignores.
            2 => key('b'),
            _ if ending == Ending::Reset => key('b'),
            _ => key('a'),
        };
        Some(Self {
            path: [WRITE, SENT_BACK, "/nowhere"][usize::from(path % 3)],
            key,
            packing: [None, Some("gzip"), Some("deflate"), Some("br")][usize::from(packing % 4)],
            flag: body % 4,
            excess: [0, 1, u32::MAX, 1 << 31][usize::from(body / 4 % 4)],
            piece_bytes: if *piece_bytes == 0 { usize::MAX } else { usize::from(*piece_bytes) },
            ending,
            message,
        })
    }

    fn head(&self) -> Request<()> {
        let head = Request::post(format!("https://x{}", self.path))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("x-api-key", &self.key);
        let packing = self.packing.map(|name| ("grpc-encoding", name));
        let head = packing.into_iter().fold(head, |head, (name, value)| head.header(name, value));
        head.body(()).expect("a head")
    }

    fn body(&self) -> Vec<u8> {
        let fast = Compression::fast();
        let message = match self.packing {
            Some("gzip") if self.flag == 1 => read(GzEncoder::new(self.message, fast)),
            Some("deflate") if self.flag == 1 => read(ZlibEncoder::new(self.message, fast)),
            _ => self.message.to_vec(),
        };
        let length = u32::try_from(message.len()).expect("short").wrapping_add(self.excess);
        [&[self.flag], &length.to_be_bytes()[..], &message].concat()
    }

    fn expected(&self, twin: &Plane) -> Expected {
        let refused = |code: &str| Expected::Refused(code.to_owned());
        match self.path {
            SENT_BACK => return Expected::SentBack,
            WRITE => {}
            _ => return refused("Method not found!"),
        }
        let length = self.body().len() - HEAD_BYTES;
        let claimed =
            usize::try_from(u32::try_from(length).expect("short").wrapping_add(self.excess));
        let claimed = claimed.expect("32 bits");
        if self.key == "nonsense" {
            return refused("auth_failed");
        } else if self.packing == Some("br") {
            return refused("unsupported_encoding");
        } else if self.flag > 1 {
            return refused("invalid_input");
        } else if claimed > MESSAGE_BYTES_MAX {
            return refused("batch_too_large");
        } else if claimed != length || self.flag == 1 && self.packing.is_none() {
            return refused("invalid_input");
        } else if self.message.len() > MESSAGE_BYTES_MAX {
            return refused("batch_too_large");
        }
        let (limits, now_ns) = (WriteLimits::default(), clock::ingest_ns().expect("a clock"));
        let other = Plane::in_memory("b").expect("random bytes");
        let plane = if self.key == key('a') { twin } else { &other };
        let when = Acknowledgement::Durable;
        match plane.write(Format::Protobuf, self.message, &limits, now_ns, when) {
            Ok(written) => {
                let rejected = u32::try_from(written.rejected_indices.len()).expect("few");
                Expected::Stored((written.accepted_count, rejected))
            }
            Err(Failure::Refused(refusal)) => refused(refusal.code()),
            Err(Failure::Failed(error)) => panic!("memory: {error}"),
        }
    }
}

fn read(mut from: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).expect("memory");
    bytes
}
