//! Encoded manifests, and days that share segments.

use std::ops::Range;

use super::*;
use crate::model::error::Error;
use crate::model::time::SECOND_NS;
use crate::storage::segment::DAY_NS;
use crate::storage::tombstone::Extent;

/// The entry of a segment that covers some days.
fn entry(days: Range<i64>, id: u8) -> SegmentEntry {
    SegmentEntry {
        id: [id; 16],
        day: days.start,
        bytes: 300,
        rows: 7,
        values: 21,
        min_ns: days.start * DAY_NS,
        max_ns: days.end * DAY_NS - 1,
        is_provisional: id == 2,
        ingest_s: [1, i64::MIN, -1, 70][usize::from(id)],
    }
}

/// Two segments of day 5, and a segment that days -2 and -1 share.
fn manifest() -> Manifest {
    let last_ingest_ns = 71 * SECOND_NS + 5;
    let mut manifest =
        Manifest { generation: 3, compacted: 4, last_ingest_ns, ..Manifest::default() };
    for (days, id) in [(5..6, 1), (-2..0, 2), (5..6, 3)] {
        manifest.insert(entry(days, id));
    }
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    for (position, entities) in [(9, names(&["e", "é"])), (0, None)] {
        let extent = Extent::new(-5..7, names(&["link"]), entities).unwrap();
        manifest.tombstones.push(Tombstone {
            extent,
            position,
            segments: [[1; 16], [9; 16]].into(),
        });
    }
    manifest.deleted = 2;
    manifest
}

#[test]
fn an_older_version_is_refused_by_its_number_and_an_unknown_one_as_damage() {
    let with_version = |version| [&[version], &manifest().encode()[1..]].concat();
    for version in 1..VERSION {
        let error = Manifest::decode(&with_version(version)).unwrap_err().to_string();
        assert!(error.contains(&format!("the manifest has version {version}")), "{error}");
    }
    for version in [0, VERSION + 1] {
        let decoded = Manifest::decode(&with_version(version));
        assert!(matches!(decoded, Err(Error::Corrupt { .. })), "{decoded:?}");
    }
}

#[test]
fn a_tombstone_goes_with_the_last_of_what_it_hides() {
    let mut manifest = manifest();
    manifest.forget_tombstones();
    assert_eq!(manifest.tombstones.len(), 2);
    assert_eq!(*manifest.tombstones[0].segments, [[1; 16]], "9 is gone");
    manifest.segments.retain(|entry| entry.id != [1; 16]);
    manifest.forget_tombstones();
    assert_eq!(manifest.tombstones.len(), 1, "one has the log up to 9");
    manifest.compacted = 9;
    manifest.forget_tombstones();
    assert_eq!((manifest.tombstones.len(), manifest.deleted), (0, 2));
}

#[test]
fn it_comes_back_by_day_and_in_write_order() {
    let back = Manifest::decode(&manifest().encode()).unwrap();
    assert_eq!(back, manifest());
    let ids: Vec<u8> = back.segments.iter().map(|entry| entry.id[0]).collect();
    assert_eq!(ids, [2, 1, 3]);
}

#[test]
fn a_day_has_segments_of_its_own_or_a_part_of_one() {
    let manifest = manifest();
    let days: Vec<i64> = (-9..9).filter(|day| manifest.has_day(*day)).collect();
    assert_eq!(days, [-2, -1, 5]);
    let all: Vec<usize> = manifest.by_days().map(<[_]>::len).collect();
    assert_eq!(all, [1, 2]);
    for (segments, is_sound) in [
        ([1..2, 1..2], true),
        ([1..3, 3..4], true),
        ([1..3, 2..4], false),
        ([1..3, 1..2], false),
        ([1..2, 1..3], false),
        ([2..3, 1..2], false),
    ] {
        let segments = segments.map(|days| entry(days, 1)).to_vec();
        let bytes = Manifest { segments, ..Manifest::default() }.encode();
        assert_eq!(Manifest::decode(&bytes).is_ok(), is_sound);
    }
}

#[test]
fn no_truncation_and_no_addition_reads_back() {
    let bytes = manifest().encode();
    for length in 0..bytes.len() {
        assert!(Manifest::decode(&bytes[..length]).is_err());
    }
    assert!(Manifest::decode(&[bytes, vec![0]].concat()).is_err());
}
