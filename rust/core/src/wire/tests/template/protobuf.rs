//! Messages whose records differ from the records before, or that are cut off.

use super::*;
use crate::wire::tests::messages::{Record, Sent, delimited, entry, integer};

fn protobuf_message(records: &[&[u8]]) -> Vec<u8> {
    records.iter().flat_map(|record| delimited(1, record)).collect()
}

/// Bytes with a meaning in a record, and some without.
const BYTES: &[u8] = &[0, 1, 9, 0x0a, 0x12, 0x1a, 0x22, 0x7f, 0x80, 0xff];

/// Returns copies of a record with parts left out, doubled, exchanged, or next to unknown parts.
fn part_changes(record: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut changed = Vec::new();
    for at in 0..record.len() {
        let with = |parts: &[Vec<u8>]| [&record[..at], parts, &record[at + 1..]].concat().concat();
        let part = &record[at];
        changed.push(with(&[]));
        changed.push(with(&[part.clone(), part.clone()]));
        changed.push([&record[at..], &record[..at]].concat().concat());
        for unknown in [integer(15, -1), integer(3, 1), delimited(15, b"x"), vec![0x1d, 0, 0, 0, 0]]
        {
            changed.push(with(&[unknown.clone(), part.clone()]));
            changed.push(with(&[part.clone(), unknown]));
        }
        for other in 0..at {
            let mut parts = record.to_vec();
            parts.swap(at, other);
            changed.push(parts.concat());
        }
        // A length of two bytes where one is enough.
        changed.push(with(&[[&[part[0], part[1] | 0x80, 0], &part[2..]].concat()]));
    }
    changed
}

/// Returns copies of a record with other values and other times.
fn value_changes(record: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut changed = Vec::new();
    let values = [
        Sent::Number(f64::NAN),
        Sent::Number(f64::INFINITY),
        Sent::Int(i64::MIN),
        Sent::Int(1 << 40),
        Sent::Bool(false),
        Sent::Text("a rather longer note than before".to_owned()),
        Sent::Text("x".repeat(200)),
    ];
    for (at, name) in [(3, "snr_db"), (4, "on"), (5, "note"), (6, "n")] {
        for value in values.iter().map(Sent::encode).chain([Vec::new(), vec![0x18, 1]]) {
            let mut parts = record.to_vec();
            parts[at] = entry(4, name, &value);
            changed.push(parts.concat());
            let twice = [value.clone(), value].concat();
            parts[at] = entry(4, name, &twice);
            changed.push(parts.concat());
        }
    }
    for seconds in [0, YEAR_2000_NS / SECOND_NS - 1, NOW_NS / SECOND_NS + 9, i64::MIN] {
        let mut parts = record.to_vec();
        parts[1] = delimited(2, &[integer(1, seconds), integer(2, 5)].concat());
        changed.push(parts.concat());
        parts[1] = delimited(2, &[integer(2, -5), integer(1, seconds)].concat());
        changed.push(parts.concat());
    }
    changed
}

#[test]
fn protobuf_records_that_are_nearly_like_those_before() {
    let record = |entity: &str, ago_ns: i64, snr_db: f64| Record {
        measurement: "link".to_owned(),
        time_ns: NOW_NS - ago_ns,
        tags: vec![("entity_id".to_owned(), entity.to_owned())],
        fields: vec![
            ("snr_db".to_owned(), Sent::Number(snr_db)),
            ("on".to_owned(), Sent::Bool(true)),
            ("note".to_owned(), Sent::Text("x".to_owned())),
            ("n".to_owned(), Sent::Int(12)),
        ],
    };
    let [a, b, c] = [record("a", 0, 1.5), record("b", 1_500_000_000, 2.0), record("c", 7, -0.0)]
        .map(|record| record.parts());
    let changed = [byte_changes(&c.concat(), BYTES), part_changes(&c), value_changes(&c)].concat();
    let [a, b, c] = [a, b, c].map(|parts| parts.concat());
    check(Format::Protobuf, protobuf_message, [&a, &b, &c], &changed);
}

#[test]
fn a_message_that_ends_anywhere_else_than_behind_a_record_is_malformed() {
    let parts = |entity: &str| {
        let tags = vec![("entity_id".to_owned(), entity.to_owned())];
        let fields = vec![("snr_db".to_owned(), Sent::Number(1.5))];
        Record { measurement: "link".to_owned(), time_ns: NOW_NS, tags, fields }.parts().concat()
    };
    let records = [parts("a"), parts("b"), parts("c")];
    let body = protobuf_message(&[&records[0], &records[1], &records[2]]);
    let one = body.len() / 3;
    for end in 0..=body.len() {
        let answer = parse(Format::Protobuf, &body[..end], &RawKeyCache::default());
        if end % one == 0 {
            assert_eq!(answer.map(|batch| batch.accepted_count as usize), Ok(end / one));
        } else {
            assert_eq!(answer, Err(BatchRefusal::InvalidInput { field: "payload" }), "L7");
        }
    }
}
