//! Compaction of whole stores: their size, and when a day is finished.

mod clocks;
mod hours;
mod rekeying;
mod sharing;

use std::fmt::Write;
use std::path::Path;

use super::super::{Acknowledgement, CompactionTrigger, Plane};
use crate::model::limits::WriteLimits;
use crate::model::time::{SECOND_NS, write_rfc3339};
use crate::storage::segment::DAY_NS;
use crate::storage::store::DirectoryPlanes;
use crate::wire::Format;

const MASTER_KEY: [u8; 32] = [7; 32];
const START_NS: i64 = 20_600 * DAY_NS;
const DUE: CompactionTrigger = CompactionTrigger::LargeOrAged { age_ns: 60 * SECOND_NS };

fn new_plane(directory: &Path) -> Plane {
    let planes = DirectoryPlanes::new(directory);
    Plane::create(&planes, "plane", &MASTER_KEY).unwrap();
    Plane::open(&planes, "plane", &MASTER_KEY, "acme").unwrap()
}

/// Returns rows of a climate from number `first` on, a second apart, of `entities` in turn. Two of
/// their short measurements are whole numbers, and one never repeats.
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
    write_at(plane, body, START_NS);
}

fn write_at(plane: &Plane, body: &str, now_ns: i64) {
    let limits = WriteLimits::default();
    plane.write(Format::Json, body.as_bytes(), &limits, now_ns, Acknowledgement::Durable).unwrap();
}

/// A compaction never makes a store larger, counting all its files. Examples: a store of one row,
/// of very many names, or of a log that just fits its space.
#[test]
fn a_store_that_was_compacted_is_never_larger_than_before() {
    let shapes = [(1, 1, 1), (1, 40, 40), (2, 1_000, 1_000), (3, 1_000, 3_000), (30, 10, 10)];
    // Logs that take nearly all of their space, and logs that have just taken more.
    let lengths = (1..=6).map(|bodies| (bodies, 700, 100));
    for (bodies, rows, entities) in shapes.into_iter().chain(lengths) {
        let directory = tempfile::tempdir().unwrap();
        let plane = new_plane(directory.path());
        for (round, due) in [DUE, CompactionTrigger::Now, DUE].into_iter().enumerate() {
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

/// Returns the bytes of the segments of a store, and their number.
fn segments(plane: &Plane) -> (u64, u64) {
    let stats = plane.stats().unwrap();
    (stats.space.segments, stats.segments)
}

/// A gateway that was offline sends the rows that it kept. Days that are long over grow again. They
/// are finished after none of their rows arrived for a while, without another write.
#[test]
fn days_of_the_past_are_finished_when_their_rows_have_come_and_not_before() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [plane, by_hand] = directories.each_ref().map(|directory| new_plane(directory.path()));
    let mut now_ns = START_NS + 10 * DAY_NS;
    let age_ns = 60 * SECOND_NS;
    for round in 0..6 {
        for plane in [&plane, &by_hand] {
            for first in [0, 1_000, 2_000] {
                write_at(plane, &body(round * 3_000 + first, 1_000, 2), now_ns);
            }
        }
        now_ns += age_ns;
        plane.compact(DUE, now_ns).unwrap().unwrap();
    }
    by_hand.compact(CompactionTrigger::Now, now_ns).unwrap().unwrap();
    let (bytes, count) = segments(&by_hand);
    assert_eq!((count, by_hand.upcoming(age_ns, now_ns).unwrap().due_ns), (1, None));
    assert!(segments(&plane).0 > bytes, "it was finished while rows came");
    // The last rows arrived a minute ago. The plane itself tells when to look.
    let last_ns = now_ns + age_ns;
    while let Some(due_ns) = plane.upcoming(age_ns, now_ns).unwrap().due_ns {
        assert!(now_ns < due_ns && due_ns <= last_ns, "{now_ns} {due_ns}");
        now_ns = due_ns;
        let merged = plane.compact(DUE, now_ns).unwrap().unwrap().merged;
        assert_eq!(merged > 0, now_ns == last_ns);
    }
    let (finished, count) = segments(&plane);
    assert_eq!((count, plane.upcoming(age_ns, now_ns).unwrap().due_ns), (1, None));
    assert!(finished.abs_diff(bytes) * 100 < bytes, "{finished} and {bytes}");
    drop(plane);
    let planes = DirectoryPlanes::new(directories[0].path());
    assert!(Plane::verify(&planes, "plane", &MASTER_KEY).unwrap().damages.is_empty());
}
