//! O7: hours that outlive their rows.

use proptest::prelude::*;

use super::*;
use crate::model::aggregate::{Aggregation, Interval};
use crate::query::{AnswerBounds, EntityRows, SeriesQuery};
use crate::storage::segment::HOUR_NS;
use crate::storage::tombstone::Extent;

const RETENTION: u64 = 3 * 86_400;
const ENTITIES: i64 = 3;

/// A row of entity `number % 3` in the given minute after [`START_NS`].
fn row(number: i64, minute: i64) -> String {
    let mut time = Vec::new();
    write_rfc3339(&mut time, START_NS + (minute * 60 + number % 60) * SECOND_NS);
    let site = number % 2;
    format!(
        r#"{{"measurement":"link","time":"{}","tags":{{"entity_id":"e{}","site":"s{site}"}},
        "fields":{{"snr":{}.{},"rain":{},"up":true,"note":"n"}}}}"#,
        String::from_utf8(time).unwrap(),
        number % ENTITIES,
        number % 40 - 20,
        number % 97,
        (number * number) % 1_000,
    )
}

/// Writes `count` rows from `minute` on, `step` minutes apart.
fn write_rows(plane: &Plane, (number, minute): (i64, i64), (count, step): (i64, i64), now_ns: i64) {
    let rows: Vec<_> = (0..count).map(|at| row(number + at, minute + at * step)).collect();
    for rows in rows.chunks(900) {
        write_at(plane, &format!("[{}]", rows.join(",")), now_ns);
    }
}

/// Returns the query for one aggregation of the hours of all entities.
fn query(times_ns: std::ops::Range<i64>, aggregation: Aggregation) -> SeriesQuery {
    SeriesQuery {
        entity_ids: (0..ENTITIES).map(|entity| format!("e{entity}")).collect(),
        start_ns: times_ns.start,
        end_ns: times_ns.end,
        measurement: "link".to_owned(),
        fields: Vec::new(),
        windows: Some((Interval::OneHour, aggregation)),
    }
}

/// Returns the hourly values of all entities for one aggregation after another, with all their bits.
fn hours(plane: &Plane, times_ns: std::ops::Range<i64>, now_ns: i64) -> Vec<Vec<EntityRows>> {
    let answer = |aggregation| {
        let query = query(times_ns.clone(), aggregation);
        plane.series(query, AnswerBounds::NONE, now_ns).unwrap().entities
    };
    Aggregation::ALL.map(answer).to_vec()
}

/// Returns all statistics of the hours of an entity after the other, with all their bits.
fn all_statistics(plane: &Plane, times_ns: std::ops::Range<i64>, now_ns: i64) -> String {
    format!("{:?}", plane.hours(&query(times_ns, Aggregation::Last), now_ns).unwrap())
}

/// Returns the number of rows that are stored, and the number of kept hours.
fn counts(plane: &Plane) -> (u64, u64) {
    (plane.stats().unwrap().stored_rows, plane.kept_hours().unwrap().hours)
}

fn compact(plane: &Plane, now_ns: i64) {
    plane.compact(CompactionTrigger::Now, now_ns).unwrap().unwrap();
}

fn verify(directory: &Path) {
    let planes = DirectoryPlanes::new(directory);
    let found = Plane::verify(&planes, "plane", &MASTER_KEY).unwrap();
    assert!(found.damages.is_empty(), "{:?}", found.damages);
}

#[test]
fn o7_hours_are_answered_after_their_rows_expired_as_before() {
    let directory = tempfile::tempdir().unwrap();
    let plane = new_plane(directory.path());
    let now_ns = START_NS + 10 * DAY_NS;
    write_rows(&plane, (0, 0), (10 * 1_440, 1), now_ns);
    plane.set_retention(RETENTION).unwrap();
    assert!(plane.keep_hours(365 * 86_400).unwrap());
    let all = START_NS..now_ns;
    let before = hours(&plane, all.clone(), now_ns);
    assert_eq!(before[0][0].times_ns.len(), 240);
    let statistics = all_statistics(&plane, all.clone(), now_ns);
    assert_eq!(plane.rows_from_ns(START_NS, now_ns), None);
    compact(&plane, now_ns);
    let expired = 7 * 24 * ENTITIES.unsigned_abs();
    assert_eq!(counts(&plane), (3 * 1_440, expired));
    assert_eq!(hours(&plane, all.clone(), now_ns), before);
    assert_eq!(all_statistics(&plane, all.clone(), now_ns), statistics);
    assert_eq!(plane.entity_ids("link").unwrap(), ["e0", "e1", "e2"]);
    let kept_from_ns = START_NS + 7 * DAY_NS;
    assert_eq!(plane.rows_from_ns(kept_from_ns - 1, now_ns), Some(kept_from_ns));
    assert_eq!(plane.rows_from_ns(kept_from_ns, now_ns), None);
    // Days later all rows are gone, and every hour is there.
    let later_ns = now_ns + 30 * DAY_NS;
    assert_eq!(hours(&plane, all.clone(), later_ns), before);
    compact(&plane, later_ns);
    assert_eq!(counts(&plane), (0, 240 * ENTITIES.unsigned_abs()));
    assert_eq!(hours(&plane, all.clone(), later_ns), before);
    drop(plane);
    verify(directory.path());
    let planes = DirectoryPlanes::new(directory.path());
    let plane = Plane::open(&planes, "plane", &MASTER_KEY, "acme").unwrap();
    assert_eq!(hours(&plane, all.clone(), later_ns), before);
    // An hour that the request cuts is left out: its rows are gone.
    let cut = hours(&plane, START_NS + 1..now_ns, later_ns);
    assert_eq!(cut[0][0].times_ns[0], START_NS + HOUR_NS);
    // Raw rows and shorter windows are gone, as without kept hours.
    let shorter = Some((Interval::FifteenMinutes, Aggregation::Max));
    for windows in [None, shorter] {
        let query = SeriesQuery { windows, ..query(START_NS..now_ns, Aggregation::Max) };
        let found = plane.series(query, AnswerBounds::NONE, later_ns).unwrap();
        assert!(found.entities.iter().all(|entity| entity.times_ns.is_empty()));
    }
    assert!(plane.keep_hours(0).unwrap());
    assert_eq!(counts(&plane), (0, 0));
    assert_eq!(hours(&plane, all, later_ns)[0][0].times_ns.len(), 0);
}

#[test]
fn o7_hours_are_removed_when_they_are_no_longer_kept() {
    let directory = tempfile::tempdir().unwrap();
    let plane = new_plane(directory.path());
    let now_ns = START_NS + 100 * DAY_NS;
    // A row each hour of a hundred days.
    write_rows(&plane, (0, 0), (100 * 24, 60), now_ns);
    plane.set_retention(RETENTION).unwrap();
    assert!(plane.keep_hours(60 * 86_400).unwrap());
    let all = START_NS..now_ns;
    let before = hours(&plane, START_NS + 40 * DAY_NS..now_ns, now_ns);
    compact(&plane, now_ns);
    assert_eq!(counts(&plane), (3 * 24, 57 * 24));
    assert_eq!(hours(&plane, all.clone(), now_ns), before);
    // Hours vanish at once from reads, and from disk some days later.
    let later_ns = now_ns + 5 * DAY_NS;
    let left = hours(&plane, START_NS + 45 * DAY_NS..now_ns, now_ns);
    assert_eq!(hours(&plane, all.clone(), later_ns), left);
    compact(&plane, later_ns);
    let mut at_ns = later_ns;
    while let Some(due_ns) = plane.upcoming(SECOND_NS, at_ns).unwrap().due_ns {
        assert!(due_ns > at_ns, "the work that is due was done");
        at_ns = due_ns;
        compact(&plane, at_ns);
    }
    assert_eq!(counts(&plane), (0, 0));
    assert!(at_ns <= now_ns + 60 * DAY_NS + 2 * HOUR_NS, "{}", (at_ns - now_ns) / DAY_NS);
    drop(plane);
    verify(directory.path());
}

#[test]
fn o7_a_kept_hour_is_deleted_as_a_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let plane = new_plane(directory.path());
    let now_ns = START_NS + 30 * DAY_NS;
    write_rows(&plane, (0, 0), (2 * 1_440, 1), now_ns);
    plane.set_retention(RETENTION).unwrap();
    assert!(plane.keep_hours(365 * 86_400).unwrap());
    compact(&plane, now_ns);
    assert_eq!(counts(&plane), (0, 48 * 3));
    let extent = |times_ns, entity: &str| {
        Extent::new(times_ns, None, Some(vec![entity.to_owned()])).unwrap()
    };
    let finer = extent(START_NS..START_NS + HOUR_NS / 2, "e1");
    let refused = plane.delete(&finer, false).unwrap_err().to_string();
    assert!(refused.contains("it can only be deleted as a whole"), "{refused}");
    // An entity without hours there may be deleted by any times.
    let unknown = extent(START_NS..START_NS + HOUR_NS / 2, "e9");
    assert_eq!(plane.delete(&unknown, false).unwrap().unwrap().hours, 0);
    let two = extent(START_NS + HOUR_NS..START_NS + 3 * HOUR_NS, "e1");
    for is_dry_run in [true, false] {
        assert_eq!(plane.delete(&two, is_dry_run).unwrap().unwrap().hours, 2);
    }
    let all = START_NS..now_ns;
    let left = hours(&plane, all.clone(), now_ns);
    assert_eq!([0, 1, 2].map(|entity: usize| left[0][entity].times_ns.len()), [48, 46, 48]);
    compact(&plane, now_ns);
    assert_eq!(counts(&plane), (0, 48 * 3 - 2));
    assert_eq!(hours(&plane, all, now_ns), left);
    drop(plane);
    verify(directory.path());
}

#[derive(Clone, Debug)]
enum HourStep {
    /// Rows from so many days ago on, with so many minutes between them.
    Write {
        days: i64,
        count: i64,
        step: i64,
    },
    Compact,
    /// A delete of whole hours of an entity, from so many hours ago on.
    Delete {
        entity: i64,
        hours: i64,
        count: i64,
    },
    Wait {
        hours: i64,
    },
    Retain {
        days: u64,
    },
    Reopen,
}

fn step() -> impl Strategy<Value = HourStep> {
    prop_oneof![
        6 => (0..9_i64, 1..400_i64, 1..40_i64)
            .prop_map(|(days, count, step)| HourStep::Write { days, count, step }),
        4 => Just(HourStep::Compact),
        1 => (0..ENTITIES, 0..200_i64, 1..30_i64)
            .prop_map(|(entity, hours, count)| HourStep::Delete { entity, hours, count }),
        4 => (1..60_i64).prop_map(|hours| HourStep::Wait { hours }),
        1 => (1..6_u64).prop_map(|days| HourStep::Retain { days }),
        1 => Just(HourStep::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A plane that keeps hours answers with the same bits before and after each compaction,
    /// however late rows come, and with the counts, minima, maxima and last values of a plane whose
    /// rows never expire.
    #[test]
    fn o7_hours_outlive_rows_bit_for_bit(steps in prop::collection::vec(step(), 1..30)) {
        let directory = tempfile::tempdir().unwrap();
        let mut plane = new_plane(directory.path());
        let whole = Plane::in_memory("acme").unwrap();
        let mut retention_days = RETENTION / 86_400;
        plane.set_retention(RETENTION).unwrap();
        prop_assert!(plane.keep_hours(365 * 86_400).unwrap());
        let mut now_ns = START_NS + 20 * DAY_NS;
        for (number, step) in (0_i64..).zip(steps) {
            match step {
                HourStep::Write { days, count, step } => {
                    let minute = (now_ns - START_NS) / (60 * SECOND_NS) - days * 1_440;
                    for plane in [&plane, &whole] {
                        write_rows(plane, (number * 1_000, minute), (count, step), now_ns);
                    }
                }
                HourStep::Compact => {
                    // Compaction sorts rows, which changes the last bits of their sums. So nothing
                    // expires at first.
                    plane.set_retention(0).unwrap();
                    compact(&plane, now_ns);
                    let kept_from_ns = now_ns - i64::try_from(retention_days).unwrap() * DAY_NS;
                    let expired = START_NS..kept_from_ns - kept_from_ns.rem_euclid(DAY_NS);
                    let before = hours(&plane, expired.clone(), now_ns);
                    plane.set_retention(retention_days * 86_400).unwrap();
                    compact(&plane, now_ns);
                    prop_assert_eq!(hours(&plane, expired, now_ns), before);
                }
                HourStep::Delete { entity, hours, count } => {
                    let start_ns = now_ns - now_ns % HOUR_NS - hours * HOUR_NS;
                    let times_ns = start_ns..start_ns + count * HOUR_NS;
                    let extent =
                        Extent::new(times_ns, None, Some(vec![format!("e{entity}")])).unwrap();
                    for plane in [&plane, &whole] {
                        plane.delete(&extent, false).unwrap().unwrap();
                    }
                }
                HourStep::Wait { hours } => now_ns += hours * HOUR_NS,
                HourStep::Retain { days } => {
                    retention_days = days;
                    plane.set_retention(days * 86_400).unwrap();
                }
                HourStep::Reopen => {
                    drop(plane);
                    let planes = DirectoryPlanes::new(directory.path());
                    plane = Plane::open(&planes, "plane", &MASTER_KEY, "acme").unwrap();
                }
            }
            let all = START_NS..now_ns + 9 * DAY_NS;
            let (kept, expected) = (hours(&plane, all.clone(), now_ns), hours(&whole, all, now_ns));
            // Sums depend on the order in which rows are added, so the mean may differ in the last
            // bits.
            prop_assert_eq!(&kept[1..], &expected[1..]);
            for (kept, expected) in kept[0].iter().zip(&expected[0]) {
                prop_assert_eq!(&kept.times_ns, &expected.times_ns);
                for (kept, expected) in kept.channels.iter().zip(&expected.channels) {
                    let is_near = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-9;
                    prop_assert!(kept.values.iter().zip(&expected.values).all(is_near));
                }
            }
        }
        drop(plane);
        verify(directory.path());
    }
}
