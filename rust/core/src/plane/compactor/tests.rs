//! Compaction of whole stores: their size, and what is left to do when a day is over.

use std::fmt::Write;
use std::path::Path;

use super::super::{Acknowledge, Due, Plane};
use crate::model::limits::WriteLimits;
use crate::model::time::{SECOND_NS, write_rfc3339};
use crate::storage::segment::DAY_NS;
use crate::storage::store::Directory;
use crate::wire::Format;

const MASTER_KEY: [u8; 32] = [7; 32];
const START_NS: i64 = 20_600 * DAY_NS;
const DUE: Due = Due::LargeOrAged { age_ns: 60 * SECOND_NS };

fn new_plane(directory: &Path) -> Plane {
    let planes = Directory::new(directory);
    Plane::create(&planes, "plane", &MASTER_KEY).unwrap();
    Plane::open(&planes, "plane", &MASTER_KEY, "acme").unwrap()
}

/// Rows of a climate, number `first` and so on, a second apart, of `entities` in turn: short
/// measurements, of which two are whole numbers and one never repeats.
fn body(first: u32, rows: u32, entities: u32) -> String {
    let mut body = String::from("[");
    for row in first..first + rows {
        let mut time = Vec::new();
        write_rfc3339(&mut time, START_NS + i64::from(row) * SECOND_NS);
        let (time, entity) = (String::from_utf8(time).unwrap(), row % entities);
        let mixed = (row ^ row >> 7).wrapping_add(1).wrapping_mul(0x9e37_79b1) >> 8;
        let comma = if row == first { "" } else { "," };
        write!(
            body,
            r#"{comma}{{"measurement":"climate","time":"{time}","tags":{{"entity_id":"asset-{entity:06}",
            "site":"plant-{:02}","vendor":"acme-industrial"}},"fields":{{"temperature":{}.{:02},
            "humidity":{},"co2_ppm":{}}}}}"#,
            entity % 37,
            15 + mixed % 11,
            mixed % 97,
            20 + mixed % 61,
            380 + mixed % 821,
        )
        .unwrap();
    }
    body.push(']');
    body
}

fn write(plane: &Plane, body: &str) {
    let limits = WriteLimits::default();
    plane.write(Format::Json, body.as_bytes(), &limits, START_NS, Acknowledge::Durable).unwrap();
}

/// Whatever a store holds, be it one row, names without end or a log that just fits its space, a
/// compaction leaves it no larger, all its files counted.
#[test]
fn a_store_that_was_compacted_is_never_larger_than_before() {
    let shapes = [(1, 1, 1), (1, 40, 40), (2, 1_000, 1_000), (3, 1_000, 3_000), (30, 10, 10)];
    // Logs that take nearly all of their space, and those that just took more.
    let lengths = (1..=6).map(|bodies| (bodies, 700, 100));
    for (bodies, rows, entities) in shapes.into_iter().chain(lengths) {
        let directory = tempfile::tempdir().unwrap();
        let plane = new_plane(directory.path());
        for (round, due) in [DUE, Due::Now, DUE].into_iter().enumerate() {
            for number in 0..bodies {
                write(&plane, &body(number * rows, rows, entities));
            }
            let before = plane.stats().unwrap().space.total();
            plane.compact(due, START_NS + 3_600 * SECOND_NS).unwrap().unwrap();
            let after = plane.stats().unwrap().space;
            let what = (bodies, rows, entities, round);
            assert!(after.total() <= before, "{what:?}: {before} and {after:?}");
        }
    }
}
