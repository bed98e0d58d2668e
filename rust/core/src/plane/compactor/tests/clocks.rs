//! Clocks that were wrong: what retention removes, and when the log is compacted.

use super::*;
use crate::model::clock::CallTime;
use crate::query::scan::ScanRequest;

/// Rows are kept for a day, and written ten days after the first row.
const WRITTEN_NS: i64 = START_NS + 10 * DAY_NS;
const ROLLOVER_NS: i64 = 1_024 * 7 * DAY_NS;

fn doubted(ns: i64) -> CallTime {
    CallTime { ns, is_believed: false }
}

/// Returns a plane with rows of ten days ago and of now, of which only the newer rows are kept.
fn kept_for_a_day(directory: &Path) -> Plane {
    let plane = new_plane(directory);
    write_at(&plane, &body(0, 10, 2), WRITTEN_NS);
    write_at(&plane, &body(10 * 86_400 - 10, 10, 2), WRITTEN_NS);
    plane.compact(CompactionTrigger::Now, WRITTEN_NS).unwrap().unwrap();
    plane.set_retention(86_400).unwrap();
    plane
}

/// Returns the rows that are stored after a compaction, whether it held some back, and the rows
/// that reads show.
fn after(
    plane: &Plane,
    due: CompactionTrigger,
    now: impl Into<CallTime> + Copy,
) -> (u64, bool, u64) {
    let done = plane.compact(due, now).unwrap().unwrap();
    let request = ScanRequest { start_ns: i64::MIN, end_ns: i64::MAX, ..ScanRequest::default() };
    let mut stream = plane.scan(&request, now).unwrap();
    let mut rows = 0;
    while let Some(batch) = stream.next_batch().unwrap() {
        rows += batch.row_count as u64;
    }
    (plane.stats().unwrap().stored_rows, done.held > 0, rows)
}

#[test]
fn o2_a_clock_that_jumped_removes_and_hides_nothing() {
    for due in [DUE, CompactionTrigger::Now] {
        let directory = tempfile::tempdir().unwrap();
        let plane = kept_for_a_day(directory.path());
        assert_eq!(after(&plane, due, doubted(WRITTEN_NS + ROLLOVER_NS)), (20, true, 10));
        // Expiry stays held if gateways keep writing under that clock, and their rows are
        // compacted.
        write_at(&plane, &body(10 * 86_400, 10, 2), WRITTEN_NS + ROLLOVER_NS);
        plane.compact(CompactionTrigger::Now, doubted(WRITTEN_NS + ROLLOVER_NS)).unwrap().unwrap();
        assert_eq!(after(&plane, due, doubted(WRITTEN_NS + ROLLOVER_NS + 1)), (30, true, 20));
        // Under the right clock past rows expire as usual.
        assert_eq!(after(&plane, due, doubted(WRITTEN_NS)), (20, false, 20));
    }
}

/// A tenant of one day: only a mixed round of the log tells when its rows arrived.
#[test]
fn o2_compacting_what_a_clock_that_jumped_wrote_does_not_vouch_for_it() {
    for retention in [86_400, 0] {
        let directory = tempfile::tempdir().unwrap();
        let plane = new_plane(directory.path());
        plane.set_retention(retention).unwrap();
        write_at(&plane, &body(0, 10, 2), START_NS);
        write_at(&plane, &body(60, 10, 2), START_NS + ROLLOVER_NS);
        for rows in [20, 30, 40] {
            let now = doubted(START_NS + ROLLOVER_NS + i64::from(rows) * SECOND_NS);
            plane.compact(CompactionTrigger::Now, now).unwrap().unwrap();
            plane.set_retention(86_400).unwrap();
            assert_eq!(after(&plane, DUE, now), (u64::from(rows), true, u64::from(rows)));
            // Late rows cause the segment of their day to be written again.
            write_at(&plane, &body(10 * rows, 10, 2), now.ns);
        }
    }
}

#[test]
fn o2_a_silent_tenants_rows_expire_once_the_clock_is_believed() {
    let directory = tempfile::tempdir().unwrap();
    let plane = kept_for_a_day(directory.path());
    let late_ns = WRITTEN_NS + 3 * DAY_NS;
    assert_eq!(after(&plane, DUE, doubted(late_ns)), (20, true, 10));
    assert_eq!(after(&plane, DUE, late_ns), (0, false, 0));
}

#[test]
fn o5_a_log_written_by_a_clock_that_was_ahead_is_compacted_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let plane = new_plane(directory.path());
    write_at(&plane, &body(0, 10, 2), START_NS + 365 * DAY_NS);
    let compacted = |now_ns| plane.compact(DUE, now_ns).unwrap().unwrap().blocks;
    assert_eq!(compacted(START_NS), 1);
    // A block slightly in the future is not wrong: it waits for its age.
    write_at(&plane, &body(0, 10, 2), START_NS + 30 * SECOND_NS);
    assert_eq!([compacted(START_NS), compacted(START_NS + 90 * SECOND_NS)], [0, 1]);
}
