//! A plane with damaged files or opened with the wrong key, and a plane that acknowledges before it
//! stores.

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use super::{Acknowledgement, CompactionTrigger, Plane, WriteError};
use crate::model::error::Error;
use crate::model::fault::BatchRefusal;
use crate::model::limits::WriteLimits;
use crate::storage::store::{Cursor, DirectoryPlanes, LmdbStore, NamesPage, Store};
use crate::wire::Format;

const MASTER_KEY: [u8; 32] = [7; 32];

/// Returns a closed plane with two batches.
fn written(directory: &Path) -> PathBuf {
    let plane_directory = directory.join("plane");
    Plane::create(&DirectoryPlanes::new(directory), "plane", &MASTER_KEY).unwrap();
    let plane = open(&plane_directory).unwrap();
    for second in 0..2 {
        let body = format!(
            r#"[{{"measurement": "link", "time": "2026-01-01T00:00:0{second}Z",
                "tags": {{"entity_id": "e{second}"}}, "fields": {{"snr_db": 1.5}}}}]"#
        );
        let now_ns = 1_790_000_000_000_000_000;
        write(&plane, body.as_bytes(), now_ns, Acknowledgement::Durable);
    }
    plane_directory
}

fn write(plane: &Plane, body: &[u8], now_ns: i64, acknowledge: Acknowledgement) {
    plane.write(Format::Json, body, &WriteLimits::default(), now_ns, acknowledge).unwrap();
}

fn open(directory: &Path) -> Result<Plane, Error> {
    let (planes, plane) = DirectoryPlanes::of_plane(directory)?;
    Plane::open(&planes, plane, &MASTER_KEY, "acme")
}

/// Flips a byte of `part` at each of `places` in turn, and expects that opening the plane is
/// refused. Older pages of the file may hold copies of the part, so all copies are flipped.
fn assert_damage_is_found(
    directory: &Path,
    file: &Path,
    part: &[u8],
    places: impl Iterator<Item = usize>,
) {
    let sound = std::fs::read(file).unwrap();
    let copies: Vec<usize> =
        (0..=sound.len() - part.len()).filter(|at| sound[*at..].starts_with(part)).collect();
    assert!(!copies.is_empty(), "the part lies in one piece");
    for place in places {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = sound.clone();
            for copy in &copies {
                damaged[copy + place] ^= flip;
            }
            std::fs::write(file, &damaged).unwrap();
            let outcome = open(directory).map(drop);
            assert!(matches!(outcome, Err(Error::Corrupt { .. })), "{place}: {outcome:?}");
        }
    }
    std::fs::write(file, &sound).unwrap();
    open(directory).unwrap();
}

#[test]
fn a_damaged_block_page_of_names_or_head_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let plane = written(directory.path());
    let store = LmdbStore::open(&plane).unwrap();
    let log = store.log_after(0).unwrap();
    let pages = store.names_after(0).unwrap();
    drop(store);
    let file = plane.join("plane.mdb");
    let stored = std::fs::read(&file).unwrap();
    let log_file = plane.join("log").read_dir().unwrap().next().unwrap().unwrap().path();
    for sealed in log.iter().map(|entry| &entry.sealed) {
        // The head, the first and the last bytes of the ciphertext, and the tag.
        let places = (0..24).chain(sealed.len() - 20..sealed.len());
        assert_damage_is_found(&plane, &log_file, sealed, places);
    }
    // The ids of a page and their counts come before its names, and its checksum comes after them.
    for page in &pages {
        let names = &page.sealed_names;
        let first = (0..stored.len()).find(|at| stored[*at..].starts_with(names)).unwrap();
        let before = 8 + 4 * page.series.len() + 5 * page.fields.len();
        let whole = &stored[first - before..first + names.len() + 4];
        assert_damage_is_found(&plane, &file, whole, 0..whole.len());
    }
}

#[test]
fn a_damaged_or_foreign_key_file_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let plane = written(directory.path());
    let key_file = plane.join("key");
    let key = std::fs::read(&key_file).unwrap();
    assert_damage_is_found(&plane, &key_file, &key, 0..key.len());
    let planes = DirectoryPlanes::new(directory.path());
    let other = Plane::open(&planes, "plane", &[8; 32], "acme").map(drop);
    assert!(matches!(other, Err(Error::Corrupt { .. })), "{other:?}");
    let second = directory.path().join("second");
    Plane::create(&planes, "second", &MASTER_KEY).unwrap();
    std::fs::copy(second.join("key"), &key_file).unwrap();
    let foreign = open(&plane).map(drop);
    assert!(matches!(foreign, Err(Error::Corrupt { .. })), "{foreign:?}");
}

#[test]
fn a_plane_under_the_name_of_another_and_a_name_under_another_id_are_damage() {
    let directory = tempfile::tempdir().unwrap();
    let plane = written(directory.path());
    let other = directory.path().join("other");
    std::fs::rename(&plane, &other).unwrap();
    let opened = open(&other).map(drop);
    assert!(matches!(opened, Err(Error::Corrupt { what: "the key file" })), "{opened:?}");
    std::fs::rename(&other, &plane).unwrap();
    let store = LmdbStore::open(&plane).unwrap();
    let pages = store.names_after(0).unwrap();
    let forged = [
        NamesPage { series: vec![pages[0].series[0] + 1], ..pages[0].clone() },
        NamesPage { sequence: 1, ..pages[1].clone() },
        NamesPage { sealed_names: pages[1].sealed_names.clone(), ..pages[0].clone() },
    ];
    drop(store);
    for page in forged.iter().chain([&pages[0]]) {
        let store = LmdbStore::open(&plane).unwrap();
        store.replace_names(std::slice::from_ref(page)).unwrap();
        drop(store);
        let opened = open(&plane).map(drop);
        assert_eq!(opened.is_ok(), *page == pages[0], "{opened:?}");
    }
}

const NOW_NS: i64 = 1_790_000_000_000_000_000;
const BUFFERED: Acknowledgement = Acknowledgement::Buffered { bytes_max: 1 << 20 };

fn record(entity: &str) -> Vec<u8> {
    format!(
        r#"[{{"measurement": "link", "time": "2026-01-01T00:00:00Z",
            "tags": {{"entity_id": "{entity}"}}, "fields": {{"snr_db": 1.5}}}}]"#
    )
    .into_bytes()
}

fn rows(directory: &Path) -> u64 {
    open(directory).unwrap().stats().unwrap().counts.rows
}

/// F1: in asynchronous mode the acknowledgement precedes the store.
#[test]
fn a_buffered_batch_is_seen_and_durable_after_the_flush() {
    let directory = tempfile::tempdir().unwrap();
    let plane_directory = written(directory.path());
    let plane = open(&plane_directory).unwrap();
    write(&plane, &record("late"), NOW_NS, BUFFERED);
    assert!(plane.buffered_bytes() > 0);
    assert_eq!(plane.stats().unwrap().counts.rows, 2);
    plane.flush().unwrap();
    assert_eq!(plane.buffered_bytes(), 0);
    assert_eq!(plane.stats().unwrap().counts.rows, 3);
}

/// The counts of rejected records wait for the flush as rows do.
#[test]
fn a_buffered_batch_of_rejected_records_is_counted_after_the_flush() {
    let directory = tempfile::tempdir().unwrap();
    let plane = open(&written(directory.path())).unwrap();
    let record = br#"[{"measurement": "link", "time": "1999-01-01T00:00:00Z",
        "tags": {"entity_id": "late"}, "fields": {"snr_db": 1.5}}]"#;
    write(&plane, record, NOW_NS, BUFFERED);
    assert!(plane.buffered_bytes() > 0);
    plane.flush().unwrap();
    assert_eq!(plane.buffered_bytes(), 0);
    assert_eq!(plane.stats().unwrap().counts.rejected, 1);
}

#[test]
fn a_durable_batch_brings_what_was_acknowledged_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let plane = open(&written(directory.path())).unwrap();
    write(&plane, &record("late"), NOW_NS, BUFFERED);
    write(&plane, &record("later"), NOW_NS, Acknowledgement::Durable);
    assert_eq!(plane.stats().unwrap().counts.rows, 4);
}

#[test]
fn closing_stores_what_waits() {
    let directory = tempfile::tempdir().unwrap();
    let plane_directory = written(directory.path());
    let plane = open(&plane_directory).unwrap();
    write(&plane, &record("late"), NOW_NS, BUFFERED);
    drop(plane);
    assert_eq!(rows(&plane_directory), 3);
}

#[test]
fn a_closed_plane_stores_what_it_acknowledged_and_acknowledges_nothing_more() {
    let directory = tempfile::tempdir().unwrap();
    let plane_directory = written(directory.path());
    let plane = open(&plane_directory).unwrap();
    write(&plane, &record("late"), NOW_NS, BUFFERED);
    plane.close();
    let refused =
        plane.write(Format::Json, &record("later"), &WriteLimits::default(), NOW_NS, BUFFERED);
    assert!(matches!(refused, Err(WriteError::Failed(Error::Closed))), "{refused:?}");
    // A writer that looked up its names before the plane was closed.
    let refused =
        plane.write(Format::Json, &record("late"), &WriteLimits::default(), NOW_NS, BUFFERED);
    assert!(
        matches!(refused, Err(WriteError::Refused(BatchRefusal::BufferFull))),
        "F10: {refused:?}"
    );
    drop(plane);
    assert_eq!(rows(&plane_directory), 3);
}

/// Returns a batch of records with one field each. All fields belong to `measurement` and have the
/// same type.
fn named(measurement: &str, fields: std::ops::Range<usize>, value: &str) -> String {
    let records = fields.map(|field| {
        format!(
            r#"{{"measurement": "{measurement}", "time": "2026-01-01T00:00:00Z",
                "tags": {{"entity_id": "{field}"}}, "fields": {{"f{field}": {value}}}}}"#
        )
    });
    format!("[{}]", records.collect::<Vec<_>>().join(","))
}

fn refusal(plane: &Plane, body: &str, limits: &WriteLimits) -> Option<BatchRefusal> {
    let now_ns = 1_790_000_000_000_000_000;
    match plane.write(Format::Json, body.as_bytes(), limits, now_ns, Acknowledgement::Durable) {
        Ok(_) => None,
        Err(WriteError::Refused(refusal)) => Some(refusal),
        Err(WriteError::Failed(error)) => panic!("{error}"),
    }
}

#[test]
fn a_tenant_has_as_many_fields_and_series_as_it_may_and_what_exists_goes_on() {
    let full = |bound| Some(BatchRefusal::TenantFull { bound });
    let plane = Plane::in_memory("acme").unwrap();
    let limits = WriteLimits { tenant_fields_max: 5, ..WriteLimits::default() };
    assert_eq!(
        refusal(&plane, &named("link", 0..6, "1"), &limits),
        full("tenant_fields_max"),
        "N2"
    );
    assert_eq!(plane.stats().unwrap().series, 0, "the batch is refused whole");
    assert_eq!(refusal(&plane, &named("link", 0..5, "1"), &limits), None, "N2");
    assert_eq!(
        refusal(&plane, &named("link", 4..6, "1"), &limits),
        full("tenant_fields_max"),
        "N2"
    );
    assert_eq!(
        refusal(&plane, &named("pool", 0..1, "1"), &limits),
        full("tenant_fields_max"),
        "E1"
    );
    assert_eq!(refusal(&plane, &named("link", 0..5, "2"), &limits), None, "N2");
    let limits = WriteLimits { tenant_fields_max: 3, tenant_series_max: 5, ..limits };
    assert_eq!(refusal(&plane, &named("link", 0..5, "3"), &limits), None, "lowered since");
    let another = named("link", 0..1, "4").replace(r#""0""#, r#""z""#);
    assert_eq!(refusal(&plane, &another, &limits), full("tenant_series_max"), "N2");
    assert_eq!(plane.stats().unwrap().series, 5);
    assert_eq!(plane.stats().unwrap().counts.rows, 15);
    let limits = WriteLimits { tenant_series_max: 6, ..limits };
    assert_eq!(refusal(&plane, &another, &limits), None, "N2");
}

/// O1: this holds after the store is opened again, and in a process that follows another writer.
#[test]
fn o1_names_of_a_tenant_have_as_many_bytes_as_they_may_and_what_exists_goes_on() {
    let full = Some(BatchRefusal::TenantFull { bound: "tenant_names_bytes_max" });
    let bounded = |bytes| WriteLimits { tenant_names_bytes_max: bytes, ..WriteLimits::default() };
    let tagged = |id: &str| named("link", 0..1, "1").replace(r#""0""#, &format!("\"{id}\""));
    let fielded = |name: &str| named("link", 0..1, "1").replace("f0", name);
    let long = |text: &str| text.repeat(5_000);
    let directory = tempfile::tempdir().unwrap();
    let planes = DirectoryPlanes::new(directory.path());
    Plane::create(&planes, "plane", &MASTER_KEY).unwrap();
    let first = open(&directory.path().join("plane")).unwrap();
    for plane in [&first, &Plane::in_memory("acme").unwrap()] {
        assert_eq!(refusal(plane, &tagged(&long("a")), &bounded(5_000)), full);
        assert_eq!(plane.stats().unwrap().series, 0, "the batch is refused whole");
        assert_eq!(refusal(plane, &tagged(&long("a")), &bounded(6_000)), None);
        assert_eq!(refusal(plane, &tagged(&long("b")), &bounded(10_000)), full);
        assert_eq!(refusal(plane, &fielded(&long("c")), &bounded(10_000)), full);
        assert_eq!(refusal(plane, &fielded(&long("c")), &bounded(12_000)), None);
        assert_eq!(refusal(plane, &tagged(&long("a")), &bounded(1)), None, "what exists");
    }
    drop(first);
    let anew = open(&directory.path().join("plane")).unwrap();
    for plane in [&anew, &anew.trial().unwrap()] {
        assert_eq!(refusal(plane, &tagged(&long("a")), &bounded(1)), None, "what exists");
        assert_eq!(refusal(plane, &tagged(&long("b")), &bounded(15_000)), full);
    }
}

/// A long read does not keep its tenant out, and ends when its plane is closed.
#[test]
fn a_plane_is_closed_and_opened_anew_while_a_read_is_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let directory = written(directory.path());
    let plane = std::sync::Arc::new(open(&directory).unwrap());
    let (entered, release) = (Barrier::new(2), Barrier::new(2));
    let read = |plane: &Plane| {
        plane.with_latest(i64::MAX, i64::MAX, None, 0, |_| {
            entered.wait();
            release.wait();
        })
    };
    thread::scope(|scope| {
        let under_way = std::sync::Arc::clone(&plane);
        let reader = scope.spawn(move || {
            read(&under_way).unwrap();
            let compacted = under_way.compact(CompactionTrigger::Now, 0);
            [under_way.follow(), under_way.read_instant(0).map(drop), compacted.map(drop)]
        });
        entered.wait();
        plane.close();
        drop(plane);
        let reopened = scope.spawn(|| open(&directory).unwrap());
        release.wait();
        let ended = reader.join().unwrap();
        assert!(ended.iter().all(|outcome| matches!(outcome, Err(Error::Closed))), "{ended:?}");
        assert_eq!(reopened.join().unwrap().stats().unwrap().counts.batches, 2);
    });
}

fn at(number: u8, position: &[u8]) -> Acknowledgement {
    Acknowledgement::At(Cursor { key: [number; 16], position: position.to_vec() })
}

#[test]
fn a_cursor_is_stored_with_its_batch_and_seen_by_whoever_opens_the_plane() {
    let directory = tempfile::tempdir().unwrap();
    let plane_directory = written(directory.path());
    let plane = open(&plane_directory).unwrap();
    assert_eq!(plane.cursor(&[1; 16]).unwrap(), None);
    write(&plane, &record("a"), NOW_NS, at(1, b"10"));
    write(&plane, &record("b"), NOW_NS, at(2, b"20"));
    write(&plane, b"[]", NOW_NS, at(1, b"30"));
    let refused = plane.write(
        Format::Json,
        &String::from_utf8(record("c")).unwrap().replace("1.5", "true").into_bytes(),
        &WriteLimits::default(),
        NOW_NS,
        at(1, b"40"),
    );
    assert!(matches!(refused, Err(WriteError::Refused(_))), "{refused:?}");
    drop(plane);
    let plane = open(&plane_directory).unwrap();
    assert_eq!(plane.cursor(&[1; 16]).unwrap().unwrap(), b"30");
    assert_eq!(plane.cursor(&[2; 16]).unwrap().unwrap(), b"20");
    plane.forget_cursor(&[1; 16]).unwrap();
    assert_eq!(plane.cursor(&[1; 16]).unwrap(), None);
    assert_eq!(plane.stats().unwrap().counts.rows, 4);
    drop(plane);
    let planes = DirectoryPlanes::new(directory.path());
    assert_eq!(Plane::verify(&planes, "plane", &MASTER_KEY).unwrap().damages, [""; 0]);
}

#[test]
fn a_trial_judges_as_its_plane_does_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let plane = open(&written(directory.path())).unwrap();
    let trial = plane.trial().unwrap();
    let limits = WriteLimits { tenant_series_max: 4, ..WriteLimits::default() };
    let conflict = Some(BatchRefusal::TypeConflict { field: "snr_db".to_owned() });
    let text = String::from_utf8(record("a")).unwrap();
    for plane in [&trial, &plane] {
        assert_eq!(refusal(plane, &text.replace("1.5", "true"), &limits), conflict);
        assert_eq!(refusal(plane, &text, &limits), None);
        assert_eq!(refusal(plane, &text.replace("\"a\"", "\"b\""), &limits), None);
        let full = Some(BatchRefusal::TenantFull { bound: "tenant_series_max" });
        assert_eq!(refusal(plane, &text.replace("\"a\"", "\"c\""), &limits), full);
    }
    assert_eq!(plane.stats().unwrap().counts.rows, 4);
    assert_eq!(trial.stats().unwrap().counts.log_bytes, 0);
}

#[test]
fn records_that_no_read_shows_are_counted_once() {
    let plane = Plane::in_memory("acme").unwrap();
    let text = String::from_utf8(record("a")).unwrap();
    let records = [
        ("entity_id", "link"),
        ("entity_id", "engine"),
        ("site", "engine"),
        ("site", "link"),
        ("site", "link"),
    ];
    let records = records.map(|(tag, measurement)| {
        let record = text.replace("entity_id", tag).replace("link", measurement);
        record[1..record.len() - 1].to_owned()
    });
    let body = format!("[{}]", records.join(","));
    let limits = WriteLimits::default();
    let written = plane
        .write(Format::Json, body.as_bytes(), &limits, NOW_NS, Acknowledgement::Durable)
        .unwrap();
    assert_eq!((written.no_entity_count, written.other_measurement_count), (3, 1));
    let names = written.unseen_measurements.each_ref().map(Option::as_deref);
    assert!(names[0].is_some());
    assert_eq!(names[1], Some("engine"));
}
