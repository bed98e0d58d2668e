//! A plane whose files were damaged or that was opened with the wrong key.

use std::path::{Path, PathBuf};

use super::Plane;
use crate::error::Error;
use crate::limits::WriteLimits;
use crate::store::{LmdbStore, Store};

const MASTER_KEY: [u8; 32] = [7; 32];

/// A closed plane with two batches in it.
fn written(directory: &Path) -> PathBuf {
    let plane_directory = directory.join("plane");
    Plane::create(&plane_directory, &MASTER_KEY).unwrap();
    let plane = Plane::open(&plane_directory, &MASTER_KEY, "acme").unwrap();
    for second in 0..2 {
        let body = format!(
            r#"[{{"measurement": "link", "time": "2026-01-01T00:00:0{second}Z",
                "tags": {{"entity_id": "e{second}"}}, "fields": {{"snr_db": 1.5}}}}]"#
        );
        let now_ns = 1_790_000_000_000_000_000;
        plane.write_json(body.as_bytes(), &WriteLimits::default(), now_ns).unwrap();
    }
    plane_directory
}

fn open(directory: &Path) -> Result<Plane, Error> {
    Plane::open(directory, &MASTER_KEY, "acme")
}

/// Opens the plane with a byte of `part` flipped, each in `places` in turn, and expects to be
/// refused. Older pages of the file may hold copies of the part: all are flipped.
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
    for sealed in log.iter().map(|entry| &entry.sealed) {
        // The head, the first and the last bytes of the ciphertext, the tag.
        let places = (0..24).chain(sealed.len() - 20..sealed.len());
        assert_damage_is_found(&plane, &file, sealed, places);
    }
    // Before the names of a page lie its ids and their counts, behind them its checksum.
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
    let other = Plane::open(&plane, &[8; 32], "acme").map(drop);
    assert!(matches!(other, Err(Error::Corrupt { .. })), "{other:?}");
    let second = directory.path().join("second");
    Plane::create(&second, &MASTER_KEY).unwrap();
    std::fs::copy(second.join("key"), &key_file).unwrap();
    let foreign = open(&plane).map(drop);
    assert!(matches!(foreign, Err(Error::Corrupt { .. })), "{foreign:?}");
}
