//! Planes of an installation: made, read from two processes, compacted, destroyed.

use fleetcast_cluster::ClusterPlanes;
use fleetcast_core::model::error::Error;
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::{Acknowledgement, CompactionTrigger, Plane};
use fleetcast_core::storage::store::Planes;
use fleetcast_core::wire::Format;

use crate::database::{Database, random_name};

pub(crate) const KEY: [u8; 32] = [7; 32];
pub(crate) const NOW_NS: i64 = 1_790_000_000_000_000_000;

pub(crate) fn write(plane: &Plane, entity: &str, value: f64) {
    let body = format!(
        r#"[{{"measurement": "link", "time": "2026-01-01T00:00:00Z",
            "tags": {{"entity_id": "{entity}"}}, "fields": {{"snr_db": {value}}}}}]"#
    );
    let limits = WriteLimits::default();
    let written =
        plane.write(Format::Json, body.as_bytes(), &limits, NOW_NS, Acknowledgement::Durable);
    assert_eq!(written.unwrap().accepted_count, 1);
}

pub(crate) fn latest(plane: &Plane) -> String {
    let as_of_ns = 1_767_225_700_000_000_000;
    let json = plane.answer_latest(Some(as_of_ns), 3_600_000_000_000, None, NOW_NS).unwrap();
    String::from_utf8(json).unwrap()
}

#[test]
fn what_one_process_acknowledged_the_next_read_of_another_sees() {
    let Some(database) = Database::new() else { return };
    let planes = [database.installed(), database.open()].map(ClusterPlanes::new);
    let name = random_name();
    Plane::create(&planes[0], &name, &KEY).unwrap();
    let [own, other] =
        planes.each_ref().map(|planes| Plane::open(planes, &name, &KEY, "acme").unwrap());
    for round in 0..20 {
        let entity = format!("e{}", round % 3);
        write(if round % 2 == 0 { &own } else { &other }, &entity, f64::from(round));
        assert_eq!(latest(&own), latest(&other));
        assert!(latest(&own).contains(&format!("{round}.0")), "{}", latest(&own));
        assert_eq!(own.stats().unwrap().stored_rows, u64::try_from(round).unwrap() + 1);
    }
    let before = latest(&other);
    let compacted = own.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    assert_eq!(compacted.blocks, 20);
    assert_eq!(latest(&other), before);
    let anew = Plane::open(&planes[1], &name, &KEY, "acme").unwrap();
    assert_eq!(latest(&anew), before);
    assert_eq!(Plane::peek(&planes[1], &name).unwrap().stored_rows, 20);
    assert_eq!(Plane::verify(&planes[1], &name, &KEY).unwrap().damages, Vec::<String>::new());
}

#[test]
fn a_page_that_is_sealed_again_stays_the_same_page_for_other_processes() {
    let Some(database) = Database::new() else { return };
    let planes = [database.installed(), database.open()].map(ClusterPlanes::new);
    let name = random_name();
    Plane::create(&planes[0], &name, &KEY).unwrap();
    let [own, other] =
        planes.each_ref().map(|planes| Plane::open(planes, &name, &KEY, "acme").unwrap());
    write(&own, "e1", 1.0);
    assert!(latest(&other).contains("1.0"));
    // Both processes know the page, so neither opens the bytes that stand for a second seal.
    let store = planes[0].open(&name).unwrap();
    let mut pages = store.names_after(0).unwrap();
    for page in &mut pages {
        page.sealed_names.iter_mut().skip(2).for_each(|byte| *byte = !*byte);
    }
    store.replace_names(&pages).unwrap();
    write(&other, "e1", 2.0);
    write(&other, "e2", 3.0);
    for plane in [&own, &other] {
        let shown = latest(plane);
        assert!(shown.contains("2.0") && shown.contains("3.0"), "{shown}");
    }
}

#[test]
fn a_plane_that_was_destroyed_takes_and_shows_nothing_in_any_process() {
    let Some(database) = Database::new() else { return };
    let planes = [database.installed(), database.open()].map(ClusterPlanes::new);
    let name = random_name();
    Plane::create(&planes[0], &name, &KEY).unwrap();
    assert!(matches!(Plane::create(&planes[1], &name, &KEY), Err(Error::Exists(_))));
    let plane = Plane::open(&planes[1], &name, &KEY, "acme").unwrap();
    write(&plane, "e1", 1.0);
    planes[0].destroy(&name).unwrap();
    planes[0].destroy(&name).unwrap();
    assert!(matches!(plane.follow(), Err(Error::Missing(_))));
    assert!(matches!(planes[1].open(&name), Err(Error::Missing(_))));
    assert!(matches!(planes[1].counts(&name), Err(Error::Missing(_))));
    // Its name is never given again.
    assert!(matches!(Plane::create(&planes[1], &name, &KEY), Err(Error::Exists(_))));
}

#[test]
fn one_compacts_and_one_who_lost_the_lease_changes_nothing() {
    let Some(database) = Database::new() else { return };
    let planes = [database.installed(), database.open()].map(ClusterPlanes::new);
    let name = random_name();
    planes[0].create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
    let [own, other] = planes.each_ref().map(|planes| planes.open(&name).unwrap());
    let held = own.lock_compaction().unwrap().unwrap();
    assert!(other.lock_compaction().unwrap().is_none());
    let mut segment = own.create_segment(&[1; 16]).unwrap();
    segment.append(b"content").unwrap();
    database.run("UPDATE plane SET held_until = '-infinity'");
    let taken = other.lock_compaction().unwrap().unwrap();
    let manifest = [[4; 18].as_slice(), b"manifest"].concat();
    assert!(!own.replace_manifest(0, &manifest, 0).unwrap());
    assert!(matches!(own.create_segment(&[2; 16]), Err(Error::Overtaken)));
    assert!(other.replace_manifest(0, &manifest, 0).unwrap());
    // Given back late, it does not end that of the other.
    drop(held);
    assert!(own.lock_compaction().unwrap().is_none());
    drop(taken);
    assert!(own.lock_compaction().unwrap().is_some());
    drop(segment);
    assert_eq!(other.segments().unwrap(), [[1; 16]], "the next compactor finds what was begun");
}

/// Its view of the manifest is old, so segments of the next holder of the lease look like orphans.
#[test]
fn one_who_lost_the_lease_removes_no_segment_of_the_next() {
    let Some(database) = Database::new() else { return };
    let planes = [database.installed(), database.open()].map(ClusterPlanes::new);
    let name = random_name();
    planes[0].create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
    let [own, other] = planes.each_ref().map(|planes| planes.open(&name).unwrap());
    let _held = own.lock_compaction().unwrap().unwrap();
    database.run("UPDATE plane SET held_until = '-infinity'");
    let _taken = other.lock_compaction().unwrap().unwrap();
    drop(other.create_segment(&[1; 16]).unwrap());
    own.remove_segment(&[1; 16]).unwrap();
    assert_eq!(other.segments().unwrap(), [[1; 16]]);
    other.remove_segment(&[1; 16]).unwrap();
    assert!(other.segments().unwrap().is_empty());
}

/// A collation with another version, after an upgrade of the system, warns with each session.
#[test]
fn a_warning_that_is_none_of_a_cut_wait_changes_nothing() {
    let Some(database) = Database::new() else { return };
    let planes = ClusterPlanes::new(database.installed());
    let name = random_name();
    Plane::create(&planes, &name, &KEY).unwrap();
    database.run(
        "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS \
            $$ BEGIN RAISE WARNING 'the collation has another version'; RETURN NEW; END $$; \
        CREATE TRIGGER warn BEFORE UPDATE ON head FOR EACH ROW EXECUTE FUNCTION warn()",
    );
    let plane = Plane::open(&planes, &name, &KEY, "acme").unwrap();
    write(&plane, "e1", 1.0);
    assert_eq!(plane.stats().unwrap().stored_rows, 1);
}

/// Probes waited for each other, and for a process that hung within its probe.
#[test]
fn a_probe_of_writes_waits_for_no_process_and_changes_nothing() {
    let Some(database) = Database::new() else { return };
    let cluster = database.installed();
    let (node, other) = (random_name(), random_name());
    for each in [&node, &other] {
        assert!(cluster.beat(each, "place", "name", "1").unwrap());
    }
    let beat = || database.run(&format!("SELECT beat FROM node WHERE node = '{node}'"));
    let before = beat().unwrap();
    let change = format!("BEGIN; UPDATE node SET beat = beat WHERE node = '{other}'");
    let _hung = database.hold(&change);
    cluster.probe_writes(&node).unwrap();
    assert_eq!(beat().unwrap(), before);
    assert!(cluster.probe_writes("no uuid").is_err());
}
