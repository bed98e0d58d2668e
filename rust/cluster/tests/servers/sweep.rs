//! Removal of what nobody needs, and of nothing else.

use std::time::Duration;

use fleetcast_cluster::{Cluster, ClusterPlanes, SweepCounts};
use fleetcast_core::plane::{CompactionTrigger, Plane};
use fleetcast_core::query::scan::ScanRequest;
use fleetcast_core::storage::store::Planes;

use crate::database::{Database, random_name};
use crate::planes::{KEY, NOW_NS, latest, write};

const DAY: Duration = Duration::from_hours(24);

/// Moves all entries into an hour that is long over.
const AGE: &str = "
    CREATE TABLE log_5 (LIKE log INCLUDING ALL);
    ALTER TABLE log ATTACH PARTITION log_5 FOR VALUES IN (5);
    UPDATE log SET slot = 5;";

fn plane_with_a_row(cluster: &std::sync::Arc<Cluster>) -> (ClusterPlanes, String, Plane) {
    let planes = ClusterPlanes::new(std::sync::Arc::clone(cluster));
    let name = random_name();
    Plane::create(&planes, &name, &KEY).unwrap();
    let plane = Plane::open(&planes, &name, &KEY, "acme").unwrap();
    write(&plane, "e1", 1.0);
    (planes, name, plane)
}

#[test]
fn an_hour_of_the_log_goes_once_all_of_it_is_in_segments_that_are_there() {
    let Some(database) = Database::new() else { return };
    let cluster = database.installed();
    let (planes, name, plane) = plane_with_a_row(&cluster);
    database.run(AGE);
    assert_eq!(cluster.sweep(DAY).unwrap(), SweepCounts::default());
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    assert_eq!(cluster.sweep(DAY).unwrap(), SweepCounts { hours: 1, ..SweepCounts::default() });
    assert_eq!(cluster.sweep(DAY).unwrap(), SweepCounts::default());
    let anew = Plane::open(&planes, &name, &KEY, "acme").unwrap();
    assert_eq!(latest(&anew), latest(&plane));
    write(&plane, "e2", 2.0);
    assert_eq!(anew.stats().unwrap().stored_rows, 2);
}

#[test]
fn rows_of_a_lost_object_stay_and_the_log_of_other_planes_goes() {
    let Some(database) = Database::new() else { return };
    let cluster = database.installed();
    let (_, name, plane) = plane_with_a_row(&cluster);
    let (_, _, other) = plane_with_a_row(&cluster);
    database.run(AGE);
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    other.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    let kept = database.objects().join(&name);
    let moved = kept.with_extension("away");
    std::fs::rename(&kept, &moved).unwrap();
    let id = [&name[..8], &name[8..12], &name[12..16], &name[16..20], &name[20..]].join("-");
    let damaged = SweepCounts { damaged: vec![id], ..SweepCounts::default() };
    assert_eq!(cluster.sweep(DAY).unwrap(), SweepCounts { hours: 1, ..damaged.clone() });
    assert_eq!(cluster.sweep(DAY).unwrap(), damaged, "it is said as long as it is so");
    let rows = || database.run("SELECT count(*) FROM log").unwrap();
    assert_eq!(rows(), "1", "the row of the lost object, and no other");
    let hours = "SELECT count(*) FROM pg_tables \
        WHERE schemaname = current_schema() AND tablename ~ '^log_[0-9]+$'";
    let facts = cluster.facts().unwrap().unwrap();
    assert_eq!(database.run(hours).unwrap(), facts.log_hours.to_string(), "its table is no hour");
    std::fs::rename(&moved, &kept).unwrap();
    assert_eq!(cluster.sweep(DAY).unwrap(), SweepCounts::default());
    assert_eq!(rows(), "0");
    assert_eq!(plane.stats().unwrap().stored_rows, 1);
}

#[test]
fn objects_go_when_no_manifest_has_named_them_for_long_enough() {
    let Some(database) = Database::new() else { return };
    let cluster = database.installed();
    let (planes, name, plane) = plane_with_a_row(&cluster);
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    let objects = |sweep: SweepCounts| sweep.objects;
    assert_eq!(objects(cluster.sweep(Duration::ZERO).unwrap()), 0);
    let before = planes.counts(&name).unwrap().segments;
    planes.destroy(&name).unwrap();
    assert_eq!(objects(cluster.sweep(DAY).unwrap()), 0);
    assert_eq!(u64::from(objects(cluster.sweep(Duration::ZERO).unwrap())), before);
    assert_eq!(objects(cluster.sweep(Duration::ZERO).unwrap()), 0);
}

#[test]
fn a_slow_reader_keeps_what_it_began_to_read() {
    let Some(database) = Database::new() else { return };
    let cluster = database.installed();
    let (planes, name, plane) = plane_with_a_row(&cluster);
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    let slow = Plane::open(&ClusterPlanes::new(database.open()), &name, &KEY, "acme").unwrap();
    let everything = ScanRequest { end_ns: i64::MAX, ..ScanRequest::default() };
    let mut stream = slow.scan(&everything, NOW_NS).unwrap();
    // Days later, when no manifest names what it has not read yet.
    database.run("UPDATE segment SET removed_at = clock_timestamp()");
    assert_eq!(cluster.sweep(Duration::ZERO).unwrap().objects, 0);
    assert_eq!(stream.next_batch().unwrap().unwrap().row_count, 1);
    // One who comes later needs newer ones alone, and one who died is waited for no longer.
    let late = planes.open(&name).unwrap().pin_segments().unwrap();
    database
        .run("UPDATE pin SET until = clock_timestamp() WHERE since < (SELECT max(since) FROM pin)");
    assert!(cluster.sweep(Duration::ZERO).unwrap().objects > 0);
    drop(late);
}
