//! A process that compacts and does not read.

use crate::model::limits::WriteLimits;
use crate::model::time::SECOND_NS;
use crate::plane::{Acknowledgement, CompactionTrigger, Plane};
use crate::storage::tombstone::Extent;
use crate::wire::Format;

const NOW_NS: i64 = 1_790_000_000 * SECOND_NS;

/// Returns rows of four entities at an instant. Some are late and some are repeated.
fn body(step: i64) -> String {
    let record = |entity: i64| {
        let late = (step * entity) % 3;
        format!(
            r#"{{"measurement":"link","time":"2026-09-21T12:{:02}:{:02}Z",
                "tags":{{"entity_id":"e{entity}"}},"fields":{{"snr_db":{step}.5,"f{late}":1}}}}"#,
            step / 10,
            10 + step % 10 - late,
        )
    };
    format!("[{}]", (0..4).map(record).collect::<Vec<_>>().join(","))
}

fn write(plane: &Plane, step: i64) {
    let limits = WriteLimits::default();
    let body = body(step);
    plane
        .write(Format::Json, body.as_bytes(), &limits, NOW_NS + step, Acknowledgement::Durable)
        .unwrap();
}

fn newest(plane: &Plane) -> String {
    let json =
        plane.answer_latest(Some(NOW_NS + 100), 86_400 * SECOND_NS, None, NOW_NS + 100).unwrap();
    String::from_utf8(json).unwrap()
}

/// Deletes the newest rows of an entity.
fn delete(plane: &Plane) {
    let times_ns = NOW_NS - 86_400 * SECOND_NS..NOW_NS;
    let extent = Extent { times_ns, measurements: Vec::new(), entities: vec!["e1".to_owned()] };
    assert!(plane.delete(&extent, false).unwrap().unwrap().rows > 0);
}

fn holds_rows(plane: &Plane) -> bool {
    plane.follower.state().latest.is_some() || plane.sealed.caches.recent().bytes() > 0
}

/// A process that compacted without following rows reads the same as a process that followed all
/// rows (G1 to G4). This holds for rows that were compacted, deleted or still in the log at its
/// first read.
#[test]
fn a_plane_that_was_only_compacted_reads_as_one_that_was_read_all_along() {
    for (seed, compacts_each) in [(1, 2), (2, 3), (5, 7)] {
        let (compacting, reading) =
            (Plane::in_memory("acme").unwrap(), Plane::in_memory("acme").unwrap());
        for step in 0..40_i64 {
            write(&compacting, step);
            write(&reading, step);
            newest(&reading);
            if step % compacts_each == 0 {
                compacting.compact(CompactionTrigger::Now, NOW_NS).unwrap();
            }
            if step % (seed + 9) == 5 {
                delete(&compacting);
                delete(&reading);
            }
            if step % (3 * seed + 8) == 0 {
                assert_eq!(newest(&compacting), newest(&reading), "{seed} {step}");
            }
        }
    }
}

/// A maintenance process keeps no rows of the tenants that it compacts.
#[test]
fn rows_are_kept_between_compactions_only_where_somebody_reads() {
    let plane = Plane::in_memory("acme").unwrap();
    let compact = || plane.compact(CompactionTrigger::Now, NOW_NS).unwrap();
    for step in 0..3 {
        write(&plane, step);
        compact();
    }
    assert!(!holds_rows(&plane));
    let read = newest(&plane);
    assert!(holds_rows(&plane));
    compact();
    assert!(holds_rows(&plane), "somebody read since the compaction before");
    compact();
    assert!(!holds_rows(&plane));
    assert_eq!(newest(&plane), read);
}

/// A sample that retention removed stays removed after retention is lifted. This holds for a
/// process that stayed open too, regardless of the times in the rest of its log (D14).
#[test]
fn a_newest_sample_that_retention_removed_does_not_come_back() {
    const DAY_NS: i64 = 86_400 * SECOND_NS;
    let plane = Plane::in_memory("acme").unwrap();
    let write = |entity: &str, time: &str| {
        let body = format!(
            r#"[{{"measurement":"link","time":"{time}","tags":{{"entity_id":"{entity}"}},
                "fields":{{"snr_db":1.5}}}}]"#
        );
        let limits = WriteLimits::default();
        plane
            .write(Format::Json, body.as_bytes(), &limits, NOW_NS, Acknowledgement::Durable)
            .unwrap();
    };
    let newest = || {
        let json = plane.answer_latest(Some(NOW_NS), 7 * DAY_NS, None, NOW_NS).unwrap();
        String::from_utf8(json).unwrap()
    };
    write("removed", "2026-09-18T12:00:00Z");
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap();
    // The log has rows both before and after the day that is removed.
    write("late", "2026-09-16T12:00:00Z");
    write("recent", "2026-09-21T12:00:00Z");
    assert!(newest().contains("removed"));
    plane.set_retention(86_400).unwrap();
    plane.compact(CompactionTrigger::LargeOrAged { age_ns: DAY_NS }, NOW_NS).unwrap();
    plane.set_retention(0).unwrap();
    let found = newest();
    assert!(found.contains("late") && found.contains("recent"), "{found}");
    assert!(!found.contains("removed"), "{found}");
}
