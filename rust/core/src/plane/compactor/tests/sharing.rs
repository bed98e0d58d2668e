//! Days with few rows: the size of their stores, and reads of them.

use std::fmt::Write;
use std::path::Path;

use super::{DUE, MASTER_KEY, new_plane, segments, write_at};
use crate::model::time::{SECOND_NS, write_rfc3339};
use crate::plane::{CompactionTrigger, Plane};
use crate::query::scan::{ScanRequest, json_lines};
use crate::storage::segment::DAY_NS;
use crate::storage::store::DirectoryPlanes;
use crate::storage::tombstone::Extent;

const START_NS: i64 = 20_000 * DAY_NS;

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Returns a number below one of several bounds.
    fn below_any(&mut self, bounds: [u64; 3]) -> u64 {
        let bound = bounds[self.index(3)];
        self.below(bound)
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    fn day(&mut self, days: u64) -> i64 {
        self.below(days).cast_signed()
    }
}

/// Returns records at these instants, with few entities, two measurements, decimals, doubles and
/// texts.
fn body(times_ns: impl IntoIterator<Item = i64>, dice: &mut Dice) -> String {
    let mut body = String::from("[");
    for time_ns in times_ns {
        let mut time = Vec::new();
        write_rfc3339(&mut time, time_ns);
        let time = String::from_utf8(time).unwrap();
        let comma = if body.len() > 1 { "," } else { "" };
        let fields = match dice.below(3) {
            0 => format!(r#""level":{}.{}"#, dice.below(40), dice.below(10)),
            1 => format!(r#""level":{},"rate":0.{}"#, dice.below(9), dice.below(1 << 40)),
            _ => format!(r#""state":"state {}""#, dice.below(4)),
        };
        write!(
            body,
            r#"{comma}{{"measurement":"pump_{}","time":"{time}","tags":{{"entity_id":"e{}"}},"fields":{{{fields}}}}}"#,
            dice.below(2),
            dice.below(5),
        )
        .unwrap();
    }
    body + "]"
}

/// Returns random instants of a day.
fn of_day(day: i64, count: u64, dice: &mut Dice) -> Vec<i64> {
    let second = |_| dice.below(86_400).cast_signed();
    (0..count).map(second).map(|second| START_NS + day * DAY_NS + second * SECOND_NS).collect()
}

/// Returns the bytes of all files, and the bytes of the disk blocks that they take.
fn space_of(directory: &Path) -> (u64, u64) {
    let (mut bytes, mut blocks) = (0, 0);
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let found = match entry.metadata().unwrap() {
            meta if meta.is_dir() => space_of(&entry.path()),
            meta => (meta.len(), meta.len().next_multiple_of(4_096)),
        };
        (bytes, blocks) = (bytes + found.0, blocks + found.1);
    }
    (bytes, blocks)
}

/// Compacts a plane, and checks that it takes no more of the disk than before.
fn compact(plane: &Plane, directory: &Path, due: CompactionTrigger, now_ns: i64, what: &str) {
    let before = space_of(directory);
    plane.compact(due, now_ns).unwrap().unwrap();
    let after = space_of(directory);
    assert!(after.0 <= before.0 && after.1 <= before.1, "{what}: {before:?} and {after:?}");
}

fn sound_rows(directory: &Path) -> u64 {
    let found = Plane::verify(&DirectoryPlanes::new(directory), "plane", &MASTER_KEY).unwrap();
    assert!(found.damages.is_empty(), "{:?}", found.damages);
    found.rows
}

/// Stores of up to 400 days with up to 200 rows each, written in any batches and in any order.
#[test]
fn a_small_store_takes_no_more_of_the_disk_once_it_was_compacted() {
    for seed in 0..8 {
        let dice = &mut Dice(seed);
        let directory = tempfile::tempdir().unwrap();
        let plane = new_plane(directory.path());
        let days = 1 + dice.below_any([3, 40, 400]);
        let (rows_a_day, batch) = (1 + dice.below(200.min(4_000 / days)), 1 + dice.index(1_000));
        let now_ns = START_NS + days.cast_signed() * DAY_NS;
        let mut times_ns: Vec<i64> =
            (0..days.cast_signed()).flat_map(|day| of_day(day, rows_a_day, dice)).collect();
        if dice.below(2) == 0 {
            (1..times_ns.len()).for_each(|at| times_ns.swap(at, dice.index(at + 1)));
        }
        for (number, times_ns) in times_ns.chunks(batch).enumerate() {
            write_at(&plane, &body(times_ns.iter().copied(), dice), now_ns);
            if dice.below(4) == 0 {
                let due = if dice.below(2) == 0 { CompactionTrigger::Now } else { DUE };
                let what = format!("seed {seed}: {days} days of {rows_a_day} rows, batch {number}");
                compact(&plane, directory.path(), due, now_ns + 120 * SECOND_NS, &what);
            }
        }
        let what = format!("seed {seed}: {days} days of {rows_a_day} rows");
        compact(&plane, directory.path(), CompactionTrigger::Now, now_ns, &what);
        drop(plane);
        assert_eq!(sound_rows(directory.path()), days * rows_a_day);
    }
}

/// A gateway sends little each day. No compaction makes its store larger, its years end up in few
/// files, and the bytes written per day do not grow with the years.
#[test]
fn years_of_days_with_few_rows_lie_in_few_segments() {
    let directory = tempfile::tempdir().unwrap();
    let plane = new_plane(directory.path());
    let dice = &mut Dice(1);
    let mut written = [0; 2];
    for day in 0..800_i64 {
        let evening_ns = START_NS + (day + 1) * DAY_NS - 60 * SECOND_NS;
        write_at(&plane, &body(of_day(day, 2, dice), dice), evening_ns);
        let before = space_of(directory.path());
        let done = plane.compact(DUE, evening_ns + 60 * SECOND_NS).unwrap().unwrap();
        written[usize::from(day >= 400)] += done.bytes_written;
        let after = space_of(directory.path());
        assert!(after.0 <= before.0 && after.1 <= before.1, "{day}: {before:?} and {after:?}");
        let (_, count) = segments(&plane);
        assert!(count <= 14, "{count} segments on day {day}");
    }
    assert!(written[0] < 400 * 2_048 && written[1] < 2 * written[0], "{written:?}");
    drop(plane);
    assert_eq!(sound_rows(directory.path()), 1_600);
}

/// Returns all rows in the order of a scan, and the newest samples at some instants.
fn answers(plane: &Plane, now_ns: i64, days: std::ops::Range<i64>) -> (String, [Vec<u8>; 3]) {
    let request = ScanRequest {
        start_ns: START_NS + days.start * DAY_NS,
        end_ns: START_NS + days.end * DAY_NS,
        ..ScanRequest::default()
    };
    let mut stream = plane.scan(&request, now_ns).unwrap();
    let mut lines = Vec::new();
    while let Some(batch) = stream.next_batch().unwrap() {
        let mut start = 0;
        while start < batch.row_count {
            let (bytes, next) = json_lines(&batch, stream.schema(), start);
            lines.extend(bytes);
            start = next;
        }
    }
    let latest = [now_ns, START_NS + days.start * DAY_NS, START_NS + days.end * DAY_NS];
    let answer = |as_of_ns| plane.answer_latest(Some(as_of_ns), 30 * DAY_NS, None, now_ns);
    (String::from_utf8(lines).unwrap(), latest.map(|as_of_ns| answer(as_of_ns).unwrap()))
}

#[test]
fn days_that_share_segments_are_read_deleted_and_forgotten_as_rows_of_the_log_are() {
    for seed in 0..4 {
        let dice = &mut Dice(seed);
        let directory = tempfile::tempdir().unwrap();
        let (plane, twin) = (new_plane(directory.path()), Plane::in_memory("acme").unwrap());
        let mut now_ns = START_NS + 100 * DAY_NS;
        for step in 0..40 {
            let count = 1 + dice.below_any([3, 60, 900]);
            let spread = 1 + dice.below(100);
            let first = dice.day(100 - spread + 1);
            let times_ns: Vec<i64> = (0..count)
                .flat_map(|_| {
                    let day = first + dice.day(spread);
                    of_day(day, 1, dice)
                })
                .collect();
            let body = body(times_ns, dice);
            write_at(&plane, &body, now_ns);
            write_at(&twin, &body, now_ns);
            if step % 10 == 7 {
                let start_ns = START_NS + dice.day(100) * DAY_NS + 7 * SECOND_NS;
                let times_ns = start_ns..start_ns + dice.day(9) * DAY_NS + SECOND_NS;
                let of = (dice.below(2) == 0).then(|| vec!["e1".to_owned()]);
                let extent = Extent::new(times_ns, None, of).unwrap();
                let deleted = [&plane, &twin].map(|plane| plane.delete(&extent, false).unwrap());
                // Rows that retention hides count until they are removed.
                assert!(deleted[0] == deleted[1] || step > 30, "{deleted:?}");
            }
            if step == 30 {
                now_ns += 3 * DAY_NS + dice.day(86_400) * SECOND_NS;
                for plane in [&plane, &twin] {
                    plane.set_retention(80 * 86_400).unwrap();
                }
            }
            if dice.below(2) == 0 {
                plane
                    .compact(if dice.below(2) == 0 { CompactionTrigger::Now } else { DUE }, now_ns)
                    .unwrap();
            }
            let days = first + 1..first + 1 + dice.day(9);
            for days in [days, 0..100] {
                let [found, expected] =
                    [&plane, &twin].map(|plane| answers(plane, now_ns, days.clone()));
                assert_eq!(found, expected, "seed {seed}, step {step}");
            }
            now_ns += 40 * SECOND_NS;
        }
        drop(plane);
        sound_rows(directory.path());
    }
}

/// Days that shared a segment get separate segments again after they get many rows. Retention
/// removes days that are over from the disk.
#[test]
fn days_stop_sharing_when_they_grow_and_go_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut plane = new_plane(directory.path());
    let dice = &mut Dice(5);
    let now_ns = START_NS + 60 * DAY_NS;
    for day in 0..60 {
        write_at(&plane, &body(of_day(day, 3, dice), dice), now_ns);
    }
    plane.compact(CompactionTrigger::Now, now_ns).unwrap().unwrap();
    assert_eq!(segments(&plane).1, 1);
    for _ in 0..60 {
        write_at(&plane, &body(of_day(30, 1_000, dice), dice), now_ns);
    }
    plane.compact(CompactionTrigger::Now, now_ns).unwrap().unwrap();
    assert_eq!(segments(&plane).1, 3, "those before, that day, those behind");
    plane.set_retention(50 * 86_400).unwrap();
    for (passed_ns, rows) in [(0, 50 * 3), (DAY_NS - 1, 50 * 3), (DAY_NS, 49 * 3)] {
        assert!(plane.upcoming(0, now_ns + passed_ns).unwrap().due_ns.is_some());
        plane.compact(DUE, now_ns + passed_ns).unwrap().unwrap();
        drop(plane);
        assert_eq!(sound_rows(directory.path()), rows + 60_000);
        plane = Plane::open(&DirectoryPlanes::new(directory.path()), "plane", &MASTER_KEY, "a")
            .unwrap();
    }
}
