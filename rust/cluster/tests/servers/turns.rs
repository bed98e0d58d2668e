//! Turns of a data key, seen from two nodes (decision 0093).

use std::sync::Arc;
use std::time::Instant;

use fleetcast_cluster::{Cluster, ClusterPlanes};
use fleetcast_core::model::error::Error;
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::{Acknowledgement, CompactionTrigger, KeyFile, Plane};
use fleetcast_core::query::scan::ScanRequest;
use fleetcast_core::storage::seal::{KeyId, KeySlot, MasterKeys, blob_slot};
use fleetcast_core::storage::segment::Segment;
use fleetcast_core::storage::store::{
    Cursor, KeyTurns, NewBlock, NewNames, Planes, Store, StoreCounts,
};
use fleetcast_core::wire::Format;

use crate::database::{Database, random_name};
use crate::planes::{KEY, NOW_NS, latest, write};

const IMPORT: [u8; 16] = [9; 16];
const OLD: KeyId = [1; 16];
const NEW: KeyId = [2; 16];

fn opened(cluster: &Arc<Cluster>, name: &str) -> Plane {
    let planes = Arc::new(ClusterPlanes::new(Arc::clone(cluster)));
    let plane = Plane::open(&*planes, name, &KEY, "acme").unwrap();
    plane.follow_key_file(KeyFile::new(planes, name, MasterKeys::from(&KEY)));
    plane
}

fn compact(plane: &Plane) {
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
}

/// Makes the time pass in which nodes notice a turn.
fn pass_time(database: &Database) {
    database.run("SET fleetcast.compares_keys = 'on'; UPDATE plane SET turned_at = turned_at - interval '1 h'");
}

/// Takes the lease away from its holder.
fn end_lease(database: &Database) {
    database.run("SET fleetcast.compares_keys = 'on'; UPDATE plane SET held_until = '-infinity'");
}

/// Returns the slots of the keys of everything that is stored.
fn slots(store: &dyn Store) -> Vec<KeySlot> {
    let mut blobs: Vec<_> =
        store.names_after(0).unwrap().into_iter().map(|page| page.sealed_names).collect();
    blobs.extend(store.log_after(0).unwrap().into_iter().map(|entry| entry.sealed));
    blobs.extend(store.cursor(&IMPORT).unwrap());
    blobs.extend(store.snapshot().unwrap().manifest);
    let mut slots: Vec<_> = blobs.iter().map(|sealed| blob_slot(sealed).unwrap()).collect();
    slots.extend(store.segments().unwrap().iter().map(|id| Segment::slot(store, id).unwrap()));
    slots.sort_unstable();
    slots.dedup();
    slots
}

fn import(plane: &Plane, position: u8) {
    let body = br#"[{"measurement": "link", "time": "2026-01-01T00:00:00Z",
        "tags": {"entity_id": "imported"}, "fields": {"snr_db": 1.5}}]"#;
    let when = Acknowledgement::At(Cursor { key: IMPORT, position: vec![position] });
    plane.write(Format::Json, body, &WriteLimits::default(), NOW_NS, when).unwrap();
}

#[test]
fn a_turn_by_one_node_is_followed_by_another_and_leaves_nothing_under_the_old_key() {
    let Some(database) = Database::new() else { return };
    let clusters = [database.installed(), database.open()];
    let planes = ClusterPlanes::new(Arc::clone(&clusters[0]));
    let name = random_name();
    Plane::create(&planes, &name, &KEY).unwrap();
    let [own, other] = clusters.each_ref().map(|cluster| opened(cluster, &name));
    let mut rows = 0;
    for (turn, new) in [1, 0, 1].into_iter().enumerate() {
        write(&own, &format!("own{turn}"), 1.0);
        import(&other, u8::try_from(turn).unwrap());
        compact(&own);
        own.rekey().unwrap().unwrap();
        assert!(own.old_key_bytes().unwrap() > Some(0));
        for batch in 0..3 {
            write(&other, &format!("other{turn}-{batch}"), 2.0);
        }
        compact(&own);
        assert!(own.old_key_bytes().unwrap().is_some(), "other nodes have time to notice");
        pass_time(&database);
        compact(&other);
        assert_eq!(other.old_key_bytes().unwrap(), None);
        let store = planes.open(&name).unwrap();
        assert_eq!(slots(&*store), [new]);
        rows += 5;
        write(&own, "own", 3.0);
        rows += 1;
        assert_eq!(latest(&own), latest(&other));
        assert_eq!(own.stats().unwrap().stored_rows, rows);
        assert_eq!(own.cursor(&IMPORT).unwrap(), Some(vec![u8::try_from(turn).unwrap()]));
        assert_eq!(Plane::verify(&planes, &name, &KEY).unwrap().damages, [""; 0]);
        assert_eq!(latest(&opened(&clusters[1], &name)), latest(&own));
    }
}

/// It never reads the key file, as if it slept.
#[test]
fn a_node_that_slept_through_a_turn_stores_nothing_until_it_has_read_the_key_file() {
    let Some(database) = Database::new() else { return };
    let clusters = [database.installed(), database.open()];
    let planes = Arc::new(ClusterPlanes::new(Arc::clone(&clusters[0])));
    let name = random_name();
    Plane::create(&*planes, &name, &KEY).unwrap();
    let own = opened(&clusters[0], &name);
    let asleep = Plane::open(&*planes, &name, &KEY, "acme").unwrap();
    write(&asleep, "e1", 1.0);
    own.rekey().unwrap().unwrap();
    pass_time(&database);
    compact(&own);
    assert_eq!(own.old_key_bytes().unwrap(), None);
    for entity in ["e1", "new"] {
        let body = format!(
            r#"[{{"measurement": "link", "time": "2026-01-01T00:00:00Z",
                "tags": {{"entity_id": "{entity}"}}, "fields": {{"snr_db": 9.0}}}}]"#
        );
        let (limits, when) = (WriteLimits::default(), Acknowledgement::Durable);
        let refused = asleep.write(Format::Json, body.as_bytes(), &limits, NOW_NS, when);
        let error = format!("{:?}", refused.unwrap_err());
        assert!(error.contains("Unavailable") && error.contains("data key has turned"), "{error}");
    }
    assert_eq!(own.stats().unwrap().stored_rows, 1);
    asleep.follow_key_file(KeyFile::new(planes, &name, MasterKeys::from(&KEY)));
    write(&asleep, "e1", 2.0);
    write(&asleep, "new", 3.0);
    let shown = latest(&own);
    assert!(shown.contains("2.0") && shown.contains("3.0") && !shown.contains("9.0"), "{shown}");
}

/// A plane of which a test seals nothing itself, with a key that is turning: both keys are open.
struct TurningPlane {
    planes: ClusterPlanes,
    name: String,
    store: Box<dyn Store>,
}

impl TurningPlane {
    fn new(database: &Database) -> Self {
        let planes = ClusterPlanes::new(database.installed());
        let name = random_name();
        planes.create(&name, b"one", &mut |_| Ok(())).unwrap();
        let store = planes.open(&name).unwrap();
        let turning = Self { planes, name, store };
        turning.keys().note_key(0, OLD, Instant::now());
        turning.store.append(vec![block(1)]).unwrap();
        assert!(turning.planes.turn_key(&turning.name, b"one", b"two", &[OLD, NEW]).unwrap());
        turning
    }

    fn keys(&self) -> &dyn KeyTurns {
        self.store.key_turns().unwrap()
    }
}

/// A block as the key in slot 0 or 1 would seal it. Each has an id of its own.
fn block(version: u8) -> NewBlock {
    let sealed = sealed(version);
    NewBlock { sealed, counts: StoreCounts { rows: 1, ..StoreCounts::default() }, cursor: None }
}

fn sealed(version: u8) -> Vec<u8> {
    let id = u128::from_str_radix(&random_name(), 16).unwrap().to_be_bytes();
    [[version, 1].as_slice(), &id].concat()
}

fn page(version: u8) -> NewNames {
    NewNames { series: 1, fields: Vec::new(), sealed_names: sealed(version) }
}

#[test]
fn bytes_under_a_closed_key_are_refused_even_if_a_later_key_has_its_slot() {
    let Some(database) = Database::new() else { return };
    let turning = TurningPlane::new(&database);
    let TurningPlane { planes, name, store } = &turning;
    store.append(vec![block(1)]).unwrap();
    assert!(turning.keys().may_have_turned(), "the answer tells of the newer key");
    let asleep = planes.open(name).unwrap();
    asleep.key_turns().unwrap().note_key(0, OLD, Instant::now());
    let late = asleep.append_unsynced(vec![block(1)]).unwrap();

    let lease = store.lock_compaction().unwrap().unwrap();
    assert!(turning.keys().lock_key(0, NEW).unwrap().is_none(), "nodes have time to notice");
    pass_time(&database);
    let key = turning.keys().lock_key(0, NEW).unwrap().unwrap();
    assert!(matches!(asleep.sync(late), Err(Error::Unavailable { .. })));
    let cursor = Some(Cursor { key: IMPORT, position: sealed(1) });
    let moved = NewBlock { cursor, ..NewBlock::default() };
    for blocks in [vec![block(1)], vec![block(1), block(1)], vec![moved]] {
        assert!(matches!(asleep.append(blocks), Err(Error::Unavailable { .. })));
    }
    assert!(matches!(asleep.append_names(0, &page(1)), Err(Error::Unavailable { .. })));
    asleep.append(vec![NewBlock::default()]).unwrap();

    assert!(planes.drop_key(name, b"two", b"one again", &*key).unwrap());
    assert!(planes.turn_key(name, b"one again", b"third", &[NEW, [3; 16]]).unwrap());
    drop(lease);
    assert!(matches!(asleep.append(vec![block(1)]), Err(Error::Unavailable { .. })));
    turning.keys().note_key(0, [3; 16], Instant::now());
    store.append(vec![block(1)]).unwrap();
    turning.keys().note_key(1, NEW, Instant::now());
    store.append(vec![block(2), block(2)]).unwrap();
    assert!(store.append_names(0, &page(2)).unwrap().is_some());
    assert_eq!(store.counts().unwrap().rows, 5);
}

#[test]
fn a_compactor_that_lost_its_lease_closes_and_drops_no_key() {
    let Some(database) = Database::new() else { return };
    let turning = TurningPlane::new(&database);
    let TurningPlane { planes, name, store } = &turning;
    store.append_names(0, &page(1)).unwrap().unwrap();
    pass_time(&database);
    let _lost = store.lock_compaction().unwrap().unwrap();
    let key = turning.keys().lock_key(0, NEW).unwrap().unwrap();
    end_lease(&database);
    let next = planes.open(name).unwrap();
    let _taken = next.lock_compaction().unwrap().unwrap();
    assert!(turning.keys().lock_key(0, OLD).unwrap().is_none());
    let dropped = planes.drop_key(name, b"two", b"one again", &*key);
    assert!(matches!(dropped, Err(Error::Overtaken)));
    assert_eq!(planes.wrapped_key(name).unwrap(), b"two");
    let pages = store.names_after(0).unwrap();
    assert!(matches!(store.replace_names(&pages), Err(Error::Overtaken)));
    let moved = turning.keys().replace_positions(&|_| panic!("there is no position"));
    assert!(matches!(moved, Err(Error::Overtaken)));
    next.replace_names(&pages).unwrap();
    let key = next.key_turns().unwrap().lock_key(0, NEW).unwrap().unwrap();
    assert!(planes.drop_key(name, b"two", b"one again", &*key).unwrap());
}

#[test]
fn a_stream_of_rows_keeps_the_old_key_until_it_ends() {
    let Some(database) = Database::new() else { return };
    let cluster = database.installed();
    let planes = ClusterPlanes::new(Arc::clone(&cluster));
    let name = random_name();
    Plane::create(&planes, &name, &KEY).unwrap();
    let plane = opened(&cluster, &name);
    write(&plane, "e1", 1.0);
    compact(&plane);
    let everything = ScanRequest { end_ns: i64::MAX, ..ScanRequest::default() };
    let mut stream = opened(&database.open(), &name).scan(&everything, NOW_NS).unwrap();
    plane.rekey().unwrap().unwrap();
    pass_time(&database);
    compact(&plane);
    assert_eq!(plane.old_key_bytes().unwrap(), Some(0));
    let batches = std::iter::from_fn(|| stream.next_batch().unwrap());
    assert_eq!(batches.map(|batch| batch.row_count).sum::<usize>(), 1);
    drop(stream);
    // The pin is removed in the background.
    database.run("DELETE FROM pin");
    compact(&plane);
    assert_eq!(plane.old_key_bytes().unwrap(), None);
}

#[test]
fn a_session_of_an_earlier_release_changes_no_plane_whose_key_has_turned() {
    let Some(database) = Database::new() else { return };
    let changes = ["UPDATE head SET last = last", "UPDATE plane SET fence = fence"];
    let planes = ClusterPlanes::new(database.installed());
    planes.create(&random_name(), b"one", &mut |_| Ok(())).unwrap();
    for change in changes {
        database.run(change);
    }
    TurningPlane::new(&database);
    for change in changes {
        let refused = "EXCEPTION WHEN raise_exception THEN NULL";
        let unless = "RAISE EXCEPTION 'it was stored' USING ERRCODE = 'XX000'";
        database.run(&format!("DO $$ BEGIN {change}; {unless}; {refused}; END $$"));
    }
}
