//! Saves stores again and again, loads them and compares them.

use std::path::Path;

use super::content::{hash_segment, manifest_of, read_content, segments_of};
use super::files::{SavedFile, remove};
use super::restore::load_store;
use super::save::{SaveReport, save_store};
use crate::model::batch::FieldType;
use crate::model::error::{Error, Result};
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::seal::{BlobKind, DataKey, Sealer};
use crate::storage::store::{
    Cursor, Link, LmdbStore, MemoryStore, NewBlock, NewNames, Store, StoreCounts,
};

const KEY: &[u8] = b"a wrapped key";

#[expect(clippy::unnecessary_wraps, reason = "as a key file is read, which may fail")]
fn key() -> Result<(Vec<u8>, Sealer)> {
    Ok((KEY.to_vec(), sealer()))
}

fn sealer() -> Sealer {
    Sealer::new(&DataKey::from_bytes(&[1; 32]), [7; 16])
}

/// Writes a page of names, and a block of `length` bytes with a row.
fn write(store: &dyn Store, length: usize) {
    let last = store.snapshot().unwrap().names_last;
    let sealed_names = vec![3; length];
    let names = NewNames { series: 2, fields: vec![FieldType::Bool], sealed_names };
    store.append_names(last, &names).unwrap().unwrap();
    append(store, length);
}

fn append(store: &dyn Store, length: usize) {
    let counts = StoreCounts { rows: 1, values: 2, ..StoreCounts::default() };
    let sealed = sealer().seal(BlobKind::LogBlock, &vec![5; length]).unwrap();
    let cursor = Some(Cursor { key: [9; 16], position: vec![1, 2] });
    store.append(vec![NewBlock { sealed, counts, cursor }]).unwrap();
}

/// Moves the log up to `compacted` into one more segment. Drops the other segments if `merge`.
fn compact(store: &dyn Store, compacted: u64, id: u8, merge: bool) {
    let snapshot = store.snapshot().unwrap();
    let old = snapshot.manifest.as_ref();
    let old = old.map(|sealed| sealer().open(BlobKind::Manifest, sealed).unwrap());
    let mut manifest = old.map(|plain| Manifest::decode(&plain).unwrap()).unwrap_or_default();
    let rows = compacted - manifest.compacted;
    let (rows_before, bytes) =
        (manifest.segments.iter().map(|entry| entry.rows).sum::<u64>(), 3_000_000);
    let mut segment = store.create_segment(&[id; 16]).unwrap();
    segment.append(&vec![id; 3_000_000]).unwrap();
    segment.finish().unwrap();
    let gone = if merge { std::mem::take(&mut manifest.segments) } else { Vec::new() };
    let rows_in = if merge { rows + rows_before } else { rows };
    let (rows_in, values) = (rows_in, 2 * rows_in);
    manifest.insert(SegmentEntry {
        id: [id; 16],
        bytes,
        rows: rows_in,
        values,
        ..SegmentEntry::default()
    });
    manifest.compacted = compacted;
    (manifest.rows, manifest.values) = (manifest.rows + rows, manifest.values + 2 * rows);
    manifest.generation = snapshot.generation + 1;
    let sealed = sealer().seal(BlobKind::Manifest, &manifest.encode()).unwrap();
    assert!(store.replace_manifest(snapshot.generation, &sealed, compacted).unwrap());
    for entry in &gone {
        store.remove_segment(&entry.id).unwrap();
    }
}

fn content_of(store: &dyn Store) -> [u8; 32] {
    let manifest = manifest_of(&store.snapshot().unwrap(), &sealer()).unwrap();
    let hashes = segments_of(&manifest).map(|segment| hash_segment(store, segment).unwrap());
    read_content(store, hashes).unwrap()
}

/// Saves the store, loads new stores of each kind from it, and expects them to be equal.
fn save(store: &dyn Store, folder: &Path, number: u64, before: &[SavedFile]) -> SaveReport {
    let saved = save_store(store, &key, folder, number, before).unwrap().unwrap();
    assert_eq!(saved.content, content_of(store));
    let load = |into: &dyn Store, link| {
        load_store(into, &sealer(), folder, &saved.files, &saved.content, link).unwrap();
        assert_eq!(into.snapshot().unwrap(), store.snapshot().unwrap());
        assert_eq!(into.log_after(0).unwrap(), store.log_after(0).unwrap());
        assert_eq!(into.names_after(0).unwrap(), store.names_after(0).unwrap());
    };
    load(&MemoryStore::default(), Link::Hard);
    for link in [Link::Hard, Link::Symbolic] {
        let directory = tempfile::tempdir().unwrap();
        load(&LmdbStore::create(directory.path()).unwrap(), link);
    }
    saved
}

fn names_of(saved: &SaveReport) -> Vec<&str> {
    let mut names: Vec<_> = saved.files.iter().map(|file| file.name.as_str()).collect();
    names.sort_unstable();
    names
}

/// Takes a store through its life, with a backup after each step.
fn is_saved_at_each_step(store: &dyn Store) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let empty = save(store, folder, 1, &[]);
    assert_eq!(names_of(&empty), ["1.key", "1.state"]);
    (0..3).for_each(|_| write(store, 100));
    let first = save(store, folder, 2, &empty.files);
    assert_eq!(names_of(&first), ["1.key", "2-1-3.log", "2-1-3.names", "2.state"]);
    assert_eq!((first.rows, first.values), (3, 6));
    let idle = save(store, folder, 3, &first.files);
    assert_eq!((names_of(&idle), idle.bytes_written), (names_of(&first), 0));
    append(store, 6_000_000);
    write(store, 10);
    let second = save(store, folder, 4, &idle.files);
    let wanted = ["1.key", "2-1-3.log", "2-1-3.names", "4-4-4.names", "4-4-5.log", "4.state"];
    assert_eq!(names_of(&second), wanted);
    assert!(second.bytes_written < 6_001_000);
    compact(store, 2, 0xa1, false);
    let third = save(store, folder, 5, &second.files);
    assert!(third.bytes_written + third.bytes_linked < 3_001_000);
    assert!(names_of(&third).contains(&"2-1-3.log"), "a block of it is not compacted");
    compact(store, 5, 0xa2, false);
    let fourth = save(store, folder, 6, &third.files);
    assert!(names_of(&fourth).iter().all(|name| !name.contains(".log")));
    assert_eq!((fourth.rows, fourth.values), (5, 10));
    write(store, 10);
    compact(store, 6, 0xa3, true);
    let fifth = save(store, folder, 7, &fourth.files);
    assert_eq!(fifth.rows, 6);
    assert_eq!(names_of(&fifth).iter().filter(|name| name.starts_with("segments/")).count(), 1);
}

#[test]
fn a_store_in_memory_is_saved_and_loaded_at_each_step() {
    is_saved_at_each_step(&MemoryStore::default());
}

#[test]
fn a_store_on_disk_is_saved_and_loaded_at_each_step() {
    let directory = tempfile::tempdir().unwrap();
    is_saved_at_each_step(&LmdbStore::create(directory.path()).unwrap());
}

/// A plane that was restored to an earlier state may continue differently under the same positions.
#[test]
fn a_store_with_another_history_is_saved_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (one, another) = (MemoryStore::default(), MemoryStore::default());
    (0..3).for_each(|_| write(&one, 100));
    let saved = save(&one, folder.path(), 1, &[]);
    (0..4).for_each(|_| write(&another, 100));
    let saved = save(&another, folder.path(), 2, &saved.files);
    assert!(names_of(&saved).contains(&"2-1-4.log"));
    let shorter = MemoryStore::default();
    write(&shorter, 50);
    let saved = save(&shorter, folder.path(), 3, &saved.files);
    assert_eq!(names_of(&saved), ["1.key", "3-1-1.log", "3-1-1.names", "3.state"]);
}

#[test]
fn a_compactor_at_work_is_waited_for() {
    let (folder, store) = (tempfile::tempdir().unwrap(), MemoryStore::default());
    let lock = store.lock_compaction().unwrap();
    let saved = save_store(&store, &key, folder.path(), 1, &[]).unwrap();
    assert_eq!(saved, None);
    drop(lock);
    save(&store, folder.path(), 1, &[]);
}

#[test]
fn any_damage_of_a_file_keeps_a_store_from_being_loaded() {
    let (folder, store) = (tempfile::tempdir().unwrap(), MemoryStore::default());
    (0..3).for_each(|_| write(&store, 30));
    compact(&store, 1, 0xa1, false);
    let saved = save(&store, folder.path(), 1, &[]);
    let load = || {
        let into = MemoryStore::default();
        load_store(&into, &sealer(), folder.path(), &saved.files, &saved.content, Link::Hard)
    };
    for file in saved.files.iter().filter(|file| file.name != "1.key") {
        let path = folder.path().join(&file.name);
        let sound = std::fs::read(&path).unwrap();
        let step = sound.len().div_ceil(40);
        let flipped = (0..sound.len()).step_by(step).map(|at| {
            let mut damaged = sound.clone();
            damaged[at] ^= 1 << (at % 8);
            damaged
        });
        let cut = [sound[..sound.len() - 1].to_vec(), [sound.as_slice(), &[0]].concat()];
        for damaged in flipped.chain(cut) {
            remove(&path).unwrap();
            std::fs::write(&path, damaged).unwrap();
            assert!(matches!(load(), Err(Error::Corrupt { .. })), "{}", file.name);
        }
        remove(&path).unwrap();
        assert!(matches!(load(), Err(Error::Corrupt { .. })));
        std::fs::write(&path, sound).unwrap();
    }
    load().unwrap();
}
