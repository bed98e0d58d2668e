//! Compares `parse_protobuf` with `prost`: both must agree on which bytes are a message, and on its
//! meaning.
//!
//! A message that `prost` reads and writes again, with its fields in order and once each, must mean
//! the same.

use std::collections::BTreeMap;

use crate::messages::{FieldValue, Kind, TelemetryRecord, Timestamp, WriteRequest};
use fleetcast_core::model::fault::BatchRefusal;
use fleetcast_core::model::raw_keys::RawKeyCache;
use fleetcast_core::wire::Format;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::cost::Body;

use super::target::Target;
use super::view::{NOW_NS, cost, parse, view_of};

pub(super) const TARGET: Target = Target {
    name: "protobuf",
    seeds,
    words: &[
        b"\x0a",
        b"\x12",
        b"\x1a",
        b"\x22",
        b"\x08",
        b"\x09",
        b"\x10",
        b"\x18",
        b"\x20",
        b"\x0b",
        b"\x0c",
        b"\x1a\x0e\x0a\x09entity_id\x12\x01a",
        b"\x0a\x06tenant\x12\x01b",
        b"\x12\x00",
        b"\x22\x0e\x0a\x01x\x12\x09\x09\x00\x00\x00\x00\x00\x00\xf0\x3f",
        b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
        b"\xff\xff\xff\xff\x0f",
    ],
    memory_bytes_max: 8 << 20,
    cost: Some(|body| cost(Body::Own(Format::Protobuf, body))),
    run,
};

fn record(entity: &str, second: i64, fields: &[(&str, Kind)]) -> TelemetryRecord {
    let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let field = |(name, value): &(&str, Kind)| {
        ((*name).to_owned(), FieldValue { value: Some(value.clone()) })
    };
    TelemetryRecord {
        measurement: "link".to_owned(),
        time: Some(Timestamp { seconds: NOW_NS / 1_000_000_000 - second, nanos: 5 }),
        tags: BTreeMap::from([tag("entity_id", entity), tag("site", "x")]),
        fields: fields.iter().map(field).collect(),
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let doubles =
        |n: f64| [("a", Kind::Number(n)), ("b", Kind::Number(-n)), ("c", Kind::Number(0.5))];
    let like = [1.0, 2.5, -7.0].map(|n| record(if n > 1.0 { "x" } else { "y" }, 60, &doubles(n)));
    let mixed = [("a", Kind::Bool(true)), ("b", Kind::Text("é".to_owned())), ("c", Kind::Int(-7))];
    let wide = |names: &'static str| {
        let letters = (0..names.len()).filter_map(|at| names.get(at..=at));
        let fields: Vec<_> = letters.map(|name| (name, Kind::Bool(true))).collect();
        record("x", 1, &fields)
    };
    let odd = TelemetryRecord { time: None, ..record("z", 0, &[]) };
    [
        WriteRequest { records: vec![] },
        WriteRequest { records: like.to_vec() },
        WriteRequest { records: vec![record("x", 1, &mixed), record("x", -9, &mixed)] },
        WriteRequest { records: vec![wide("abcdef"), wide("ghij"), wide("ghij")] },
        WriteRequest { records: vec![wide("abcdefg")] },
        WriteRequest {
            records: vec![odd, record("x", 1, &mixed[..1]), record("x", 1, &doubles(1.0))],
        },
    ]
    .map(|request| request.encode_to_vec())
    .to_vec()
}

fn run(body: &[u8]) {
    let ours = parse(Format::Protobuf, body, &RawKeyCache::default());
    let seen = view_of(Format::Protobuf, body);
    if is_odd(body, &REQUEST) {
        return;
    }
    match WriteRequest::decode(body) {
        Err(error) => {
            let malformed = Err(BatchRefusal::InvalidInput { field: "payload" });
            assert_eq!(ours, malformed, "no message: {error}");
        }
        Ok(message) => {
            let again = message.encode_to_vec();
            assert_eq!(view_of(Format::Protobuf, &again), seen, "{message:?}");
        }
    }
}

/// A message: number, wire type and content of its fields.
struct Schema(&'static [(u32, WireType, Option<&'static Schema>)]);

const VARINT: WireType = WireType::Varint;
const DELIMITED: WireType = WireType::LengthDelimited;
const KEY_BYTES_MAX: usize = 5;

static REQUEST: Schema = Schema(&[(1, DELIMITED, Some(&RECORD))]);
static RECORD: Schema = Schema(&[
    (1, DELIMITED, None),
    (2, DELIMITED, Some(&TIMESTAMP)),
    (3, DELIMITED, Some(&TAG)),
    (4, DELIMITED, Some(&FIELD)),
]);
static TIMESTAMP: Schema = Schema(&[(1, VARINT, None), (2, VARINT, None)]);
static TAG: Schema = Schema(&[(1, DELIMITED, None), (2, DELIMITED, None)]);
static FIELD: Schema = Schema(&[(1, DELIMITED, None), (2, DELIMITED, Some(&VALUE))]);
static VALUE: Schema = Schema(&[
    (1, WireType::SixtyFourBit, None),
    (2, VARINT, None),
    (3, DELIMITED, None),
    (4, VARINT, None),
]);

/// Returns true if `prost` reads a part of the message differently from the reference
/// implementation, which we follow. There are four such parts. A group. A field of the schema with
/// another wire type, which is an unknown field. A number of more than 64 bits, which loses the
/// upper bits. A key with more bytes than it can need, which is malformed.
/// `tests/engine/test_transports.py` compares with the reference.
fn is_odd(mut bytes: &[u8], schema: &Schema) -> bool {
    while !bytes.is_empty() {
        let key = bytes;
        let Ok((number, wire)) = decode_key(&mut bytes) else { return overflows(key) };
        let key_len = key.len() - bytes.len();
        let numbered = matches!(wire, WireType::Varint | WireType::LengthDelimited);
        if key_len > KEY_BYTES_MAX || numbered && overflows(bytes) {
            return true;
        }
        if matches!(wire, WireType::StartGroup | WireType::EndGroup) {
            return true;
        }
        let field = schema.0.iter().find(|field| field.0 == number);
        if field.is_some_and(|field| field.1 != wire) {
            return true;
        }
        if wire == DELIMITED {
            let Ok(length) = decode_varint(&mut bytes) else { return false };
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let Some((content, rest)) = bytes.split_at_checked(length) else { return false };
            if let Some((_, _, Some(inner))) = field
                && is_odd(content, inner)
            {
                return true;
            }
            bytes = rest;
        } else if skip_field(wire, number, &mut bytes, DecodeContext::default()).is_err() {
            return false;
        }
    }
    false
}

/// Returns true if `bytes` begin with a number of ten bytes that does not fit 64 bits.
fn overflows(bytes: &[u8]) -> bool {
    let Some((number, _)) = bytes.split_first_chunk::<10>() else { return false };
    number[..9].iter().all(|byte| *byte >= 0x80) && (2..0x80).contains(&number[9])
}
