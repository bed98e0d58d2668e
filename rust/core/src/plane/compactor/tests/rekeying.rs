//! The turn of a data key, from the command to the drop of the old key.

use std::sync::Arc;

use super::*;
use crate::model::error::Result;
use crate::plane::KeyFile;
use crate::query::scan::ScanRequest;
use crate::storage::manifest::Manifest;
use crate::storage::seal::{BlobKind, DataKeys, KeySlot, MasterKeys, Sealer, blob_slot, unwrap};
use crate::storage::segment::Segment;
use crate::storage::store::{Cursor, Link, LmdbStore, Planes, Store};

const NOW_NS: i64 = START_NS + 40 * DAY_NS;
const IMPORT: [u8; 16] = [9; 16];

fn opened(planes: &DirectoryPlanes, name: &str) -> Plane {
    let plane = Plane::open(planes, name, &MASTER_KEY, "acme").unwrap();
    let keys = MasterKeys::from(&MASTER_KEY);
    plane.follow_key_file(KeyFile::new(Arc::new(planes.clone()), name, keys));
    plane
}

/// Writes rows of several days, with a position of an import.
fn fill(plane: &Plane) {
    for day in 0..3 {
        let position = vec![day];
        let when = Acknowledgement::At(Cursor { key: IMPORT, position });
        let (limits, body) = (WriteLimits::default(), body(u32::from(day) * 86_400, 50, 5));
        plane.write(Format::Json, body.as_bytes(), &limits, NOW_NS, when).unwrap();
    }
}

/// Returns a new plane that has rows, with its directory and its planes.
fn filled() -> (tempfile::TempDir, DirectoryPlanes, Plane) {
    let directory = tempfile::tempdir().unwrap();
    let planes = DirectoryPlanes::new(directory.path());
    Plane::create(&planes, "plane", &MASTER_KEY).unwrap();
    let plane = opened(&planes, "plane");
    fill(&plane);
    (directory, planes, plane)
}

fn rows(plane: &Plane) -> usize {
    let everything = ScanRequest { end_ns: i64::MAX, ..ScanRequest::default() };
    let mut rows = plane.scan(&everything, NOW_NS).unwrap();
    let batches = std::iter::from_fn(|| rows.next_batch().unwrap());
    batches.map(|batch| batch.row_count).sum()
}

/// Returns the slots of the keys of everything that a closed plane has stored.
fn slots(planes: &DirectoryPlanes, directory: &Path) -> Result<Vec<KeySlot>> {
    let (plane_id, keys) = unwrap(&MASTER_KEY, "plane", &planes.wrapped_key("plane")?)?;
    let store = LmdbStore::open(&directory.join("plane"))?;
    let mut blobs: Vec<_> = store.names_after(0)?.into_iter().map(|it| it.sealed_names).collect();
    blobs.extend(store.log_after(0)?.into_iter().map(|entry| entry.sealed));
    blobs.extend(store.cursor(&IMPORT)?);
    let mut slots: Vec<_> = blobs.iter().map(|sealed| blob_slot(sealed).unwrap()).collect();
    if let Some(sealed) = store.snapshot()?.manifest {
        let plain = Sealer::of(&keys, plane_id).open(BlobKind::Manifest, &sealed)?;
        slots.extend(blob_slot(&sealed));
        for id in Manifest::decode(&plain)?.ids().filter(|id| *id != [0; 16]) {
            slots.push(Segment::slot(&store, &id)?);
        }
    }
    slots.sort_unstable();
    slots.dedup();
    Ok(slots)
}

#[test]
fn a_turn_seals_everything_anew_and_drops_the_old_key() {
    let (directory, planes, mut plane) = filled();
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    let (hash, beside) = (plane.name_hash(b"e1"), plane.seal(b"a").unwrap());
    for (turn, new) in [1, 0, 1].into_iter().enumerate() {
        let stored = 150 * (turn + 1);
        assert_eq!(plane.old_key_bytes().unwrap(), None);
        plane.rekey().unwrap().unwrap();
        assert!(plane.old_key_bytes().unwrap() > Some(0));
        assert_eq!(plane.upcoming(0, NOW_NS).unwrap().due_ns, Some(NOW_NS));
        // A second call before the turn is complete makes no third key.
        plane.rekey().unwrap().unwrap();
        fill(&plane);
        assert_eq!(rows(&plane), stored + 150, "in the middle");
        if turn == 0 {
            assert_eq!(plane.unseal(&beside).unwrap().as_deref(), Some(b"a".as_slice()));
        }
        drop(plane);
        assert_eq!(slots(&planes, directory.path()).unwrap(), [0, 1]);
        assert_eq!(Plane::verify(&planes, "plane", &MASTER_KEY).unwrap().damages, [""; 0]);
        plane = opened(&planes, "plane");
        assert_eq!(rows(&plane), stored + 150, "opened in the middle");
        plane.compact(DUE, NOW_NS + DAY_NS).unwrap().unwrap();
        assert_eq!(plane.old_key_bytes().unwrap(), None);
        drop(plane);
        assert_eq!(slots(&planes, directory.path()).unwrap(), [new]);
        assert_eq!(Plane::verify(&planes, "plane", &MASTER_KEY).unwrap().damages, [""; 0]);
        plane = opened(&planes, "plane");
        assert_eq!(rows(&plane), stored + 150);
        assert_eq!(plane.cursor(&IMPORT).unwrap(), Some(vec![2]));
        assert_eq!(plane.name_hash(b"e1"), hash);
        assert_eq!(plane.unseal(&beside).unwrap(), None, "its key is gone");
    }
}

#[test]
fn hours_that_outlive_their_rows_are_sealed_anew() {
    let (directory, planes, plane) = filled();
    plane.set_retention(86_400).unwrap();
    assert!(plane.keep_hours(365 * 86_400).unwrap());
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    let hours = plane.kept_hours().unwrap().hours;
    assert_eq!(hours, 3 * 5, "an hour of five entities on three days");
    plane.rekey().unwrap().unwrap();
    assert!(plane.old_key_bytes().unwrap() > Some(0));
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    assert_eq!(plane.old_key_bytes().unwrap(), None);
    assert_eq!(plane.kept_hours().unwrap().hours, hours);
    drop(plane);
    assert_eq!(slots(&planes, directory.path()).unwrap(), [1]);
    assert_eq!(Plane::verify(&planes, "plane", &MASTER_KEY).unwrap().damages, [""; 0]);
}

#[test]
fn a_stream_of_rows_keeps_the_old_key_until_it_ends() {
    let (_directory, _, plane) = filled();
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    let everything = ScanRequest { end_ns: i64::MAX, ..ScanRequest::default() };
    let mut stream = plane.scan(&everything, NOW_NS).unwrap();
    plane.rekey().unwrap().unwrap();
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    assert_eq!(plane.old_key_bytes().unwrap(), Some(0));
    let batches = std::iter::from_fn(|| stream.next_batch().unwrap());
    assert_eq!(batches.map(|batch| batch.row_count).sum::<usize>(), 150);
    drop(stream);
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    assert_eq!(plane.old_key_bytes().unwrap(), None);
}

#[test]
fn a_batch_that_is_not_durable_yet_keeps_the_old_key() {
    let (_directory, planes, plane) = filled();
    let (limits, body) = (WriteLimits::default(), body(500, 10, 5));
    let when = Acknowledgement::Durable;
    let pending = plane.append(Format::Json, body.as_bytes(), &limits, NOW_NS, when).unwrap();
    plane.rekey().unwrap().unwrap();
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    pending.wait().unwrap();
    assert_eq!(rows(&plane), 160);
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    assert_eq!(plane.old_key_bytes().unwrap(), None);
    drop(plane);
    assert_eq!(rows(&opened(&planes, "plane")), 160);
}

/// Writes 70 MB of names, sealed: 40 batches of 56 series, each with 64 tags of 1,000 random characters.
fn fill_with_names(plane: &Plane) {
    let mut state = 1_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{state:016x}")
    };
    for batch in 0..40 {
        let record = |series: usize| {
            let tag = |number: usize| {
                let text: String = (0..63).map(|_| word()).collect();
                format!(r#","t{number}":"{text}""#)
            };
            let tags: String = (0..62).map(tag).collect();
            format!(
                r#"{{"measurement":"m","time":"2026-01-01","tags":{{"entity_id":"{batch}-{series}"{tags}}},"fields":{{"a":1}}}}"#
            )
        };
        let records: Vec<_> = (0..56).map(record).collect();
        write_at(plane, &format!("[{}]", records.join(",")), NOW_NS);
    }
}

#[test]
fn names_are_sealed_anew_in_pieces_with_backups_in_between() {
    let (directory, planes, plane) = filled();
    fill_with_names(&plane);
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    plane.rekey().unwrap().unwrap();
    // This page is under the new key from the start.
    write_at(&plane, &body(500, 50, 5).replace("asset", "late"), NOW_NS);
    let backup = directory.path().join("backup");
    let (mut before, mut pieces, mut plane) = (Vec::new(), 0, plane);
    while plane.old_key_bytes().unwrap().is_some() {
        assert!(pieces < 9);
        pieces += 1;
        plane.compact(DUE, NOW_NS + DAY_NS).unwrap().unwrap();
        drop(plane);
        let saved = Plane::save((&planes, "plane"), &MASTER_KEY, &backup, pieces, &before);
        let saved = saved.unwrap().unwrap();
        let restored = format!("restored{pieces}");
        let (of, new) = (("plane", &MASTER_KEY), (&planes as &dyn Planes, restored.as_str()));
        Plane::restore(new, of, &MASTER_KEY, &backup, &saved.files, &saved.content, Link::Hard)
            .unwrap();
        assert_eq!(Plane::verify(&planes, &restored, &MASTER_KEY).unwrap().damages, [""; 0]);
        before = saved.files;
        plane = opened(&planes, "plane");
    }
    assert!(pieces > 1, "one compaction seals 64 MiB");
    assert_eq!(rows(&plane), 150 + 40 * 56 + 50);
    drop(plane);
    assert_eq!(slots(&planes, directory.path()).unwrap(), [1]);
}

#[test]
fn backups_of_before_and_after_each_step_are_restored() {
    let directory = tempfile::tempdir().unwrap();
    let planes = DirectoryPlanes::new(directory.path());
    Plane::create(&planes, "plane", &MASTER_KEY).unwrap();
    let backup = directory.path().join("backup");
    let mut before = Vec::new();
    let mut saved = Vec::new();
    let mut written = 0;
    for step in 0..5 {
        let plane = opened(&planes, "plane");
        match step {
            0 => {}
            1 => plane.rekey().unwrap().unwrap(),
            _ => {
                plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
            }
        }
        // New names are a page, which is under the new key before the older pages are.
        let name = format!("e{step}");
        write_at(&plane, &body(step * 60, 50, 5).replace("asset", &name), NOW_NS);
        written += 50;
        drop(plane);
        let done =
            Plane::save((&planes, "plane"), &MASTER_KEY, &backup, u64::from(step) + 1, &before);
        let done = done.unwrap().unwrap();
        before.clone_from(&done.files);
        saved.push((done, written));
    }
    // The latest backup has the files of all.
    for (number, (done, written)) in saved.into_iter().enumerate() {
        let name = format!("restored{number}");
        let of = ("plane", &MASTER_KEY);
        let new = (&planes as &dyn Planes, name.as_str());
        let (files, content) = (&done.files, &done.content);
        Plane::restore(new, of, &MASTER_KEY, &backup, files, content, Link::Hard).unwrap();
        let plane = opened(&planes, &name);
        assert_eq!(rows(&plane), written);
        plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
        assert_eq!(plane.old_key_bytes().unwrap(), None, "a turn goes on");
        assert_eq!(rows(&plane), written);
    }
}

#[test]
fn a_segment_under_a_key_that_is_gone_is_damage_that_says_so() {
    let (directory, planes, plane) = filled();
    plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    plane.rekey().unwrap().unwrap();
    drop(plane);
    let key_file = planes.wrapped_key("plane").unwrap();
    let (plane_id, keys) = unwrap(&MASTER_KEY, "plane", &key_file).unwrap();
    let store = LmdbStore::open(&directory.path().join("plane")).unwrap();
    let id = store.segments().unwrap()[0];
    let open = |keys: &DataKeys| {
        let bytes = store.segment_bytes(&id).unwrap();
        Segment::open(&store, &Sealer::of(keys, plane_id), &id, bytes).map(drop)
    };
    open(&keys).unwrap();
    let error = open(&keys.without_old()).unwrap_err().to_string();
    assert!(error.contains("a segment under a key that is not in the key file"), "{error}");
}
