use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::files::{FileState, PlaneFiles};
use super::lmdb::{LmdbFile, StoreVersion};
use super::{Deciding, Verdicts};

const PAGE_BYTES: u64 = 4096;
const LIFETIME: Duration = Duration::from_secs(10);
const MOMENT: Duration = LIFETIME.checked_sub(Duration::from_millis(1)).unwrap();

fn deciding<'v>(values: &[Option<&'v [u8]>]) -> Deciding<'v> {
    Deciding::of(values.iter().copied()).unwrap()
}

#[test]
fn a_verdict_is_found_for_its_lifetime_by_the_values_that_decided() {
    let (verdicts, now) = (Verdicts::new(LIFETIME), Instant::now());
    let asked = deciding(&[Some(b"127.0.0.1"), Some(b"key"), None]);
    assert!(verdicts.find(&asked, now).is_none());
    verdicts.remember(&asked, now, "may write");
    assert_eq!(verdicts.find(&asked, now + MOMENT).as_deref(), Some(&"may write"));
    assert!(verdicts.find(&asked, now + LIFETIME).is_none());
    for other in [
        deciding(&[Some(b"127.0.0.1"), Some(b"kez"), None]),
        deciding(&[Some(b"127.0.0.1"), Some(b"key"), Some(b"")]),
        deciding(&[Some(b"127.0.0.1"), Some(b"key")]),
        deciding(&[Some(b"127.0.0.1k"), Some(b"ey"), None]),
        deciding(&[Some(b"127.0.0.1"), None, Some(b"key")]),
    ] {
        assert!(verdicts.find(&other, now).is_none());
    }
}

#[test]
fn a_verdict_goes_with_its_time_and_the_newest_counts() {
    let (verdicts, now) = (Verdicts::new(LIFETIME), Instant::now());
    let asked = deciding(&[Some(b"key")]);
    verdicts.remember(&asked, now, 1);
    verdicts.remember(&asked, now, 2);
    assert_eq!(verdicts.find(&asked, now).as_deref(), Some(&2));
    verdicts.tidy(now + MOMENT);
    assert_eq!(verdicts.len(), 1);
    verdicts.tidy(now + LIFETIME);
    assert!(verdicts.is_empty());
}

#[test]
fn what_is_asked_within_a_lifetime_is_asked_again() {
    let (verdicts, now) = (Verdicts::<()>::new(LIFETIME), Instant::now());
    let asked = deciding(&[Some(b"key")]);
    assert!(!verdicts.is_asked_again(&asked, now));
    assert!(verdicts.is_asked_again(&asked, now + MOMENT));
    assert!(!verdicts.is_asked_again(&asked, now + MOMENT + LIFETIME));
    assert!(!verdicts.is_asked_again(&deciding(&[Some(b"kez")]), now));
}

#[test]
fn verdicts_are_bounded_and_the_old_ones_go_first() {
    let (verdicts, now) = (Verdicts::new(LIFETIME), Instant::now());
    let later = now + 2 * LIFETIME;
    for number in 0..4_096_u32 {
        let made_at = if number < 4_000 { now } else { later };
        verdicts.remember(&deciding(&[Some(&number.to_le_bytes())]), made_at, number);
    }
    verdicts.remember(&deciding(&[Some(b"one more")]), later, 0);
    assert_eq!(verdicts.len(), 97);
    for number in 0..10_000_u32 {
        verdicts.remember(&deciding(&[Some(&number.to_le_bytes())]), later, number);
        assert!(verdicts.len() <= 4_096);
    }
}

#[test]
fn more_values_than_may_decide_decide_nothing() {
    assert!(Deciding::of([None; 16]).is_some());
    assert!(Deciding::of([None; 17]).is_none());
}

proptest! {
    /// Two requests have one verdict where all values are the same, and only there.
    #[test]
    fn values_are_the_same_or_not(
        a in prop::collection::vec(prop::option::of(prop::collection::vec(0..3_u8, 0..3)), 0..4),
        b in prop::collection::vec(prop::option::of(prop::collection::vec(0..3_u8, 0..3)), 0..4),
    ) {
        let text = Deciding::of(a.iter().map(Option::as_deref)).unwrap().text();
        prop_assert_eq!(Deciding::of(b.iter().map(Option::as_deref)).unwrap().is(&text), a == b);
    }
}

fn write_lmdb(path: &Path, transactions: [u64; 2]) {
    let file = File::create(path).unwrap();
    for (page, transaction) in transactions.iter().enumerate() {
        let start = page as u64 * PAGE_BYTES;
        let words = [0xBEEF_C0DE_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
        file.write_all_at(&words, start + 16).unwrap();
        file.write_all_at(&u32::try_from(PAGE_BYTES).unwrap().to_le_bytes(), start + 40).unwrap();
        file.write_all_at(&transaction.to_le_bytes(), start + 144).unwrap();
    }
    file.set_len(2 * PAGE_BYTES).unwrap();
}

#[test]
fn a_store_has_the_version_of_its_last_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.mdb");
    let lmdb = LmdbFile::new(path.clone());
    assert_eq!(lmdb.version(), None);
    write_lmdb(&path, [6, 7]);
    let seven = lmdb.version().unwrap();
    assert_eq!(seven.transaction, 7);
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&8_u64.to_le_bytes(), 144).unwrap();
    let eight = lmdb.version().unwrap();
    assert_eq!(eight.transaction, 8);
    assert_eq!((eight.device, eight.inode), (seven.device, seven.inode));
}

/// Another file at the path is another store, also where it is as old as the first.
#[test]
fn a_store_that_was_replaced_has_another_version() {
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["data.mdb", "other"].map(|name| folder.path().join(name));
    let lmdb = LmdbFile::new(path.clone());
    write_lmdb(&path, [2, 1]);
    write_lmdb(&other, [2, 1]);
    let before = lmdb.version().unwrap();
    fs::rename(&other, &path).unwrap();
    assert_ne!(lmdb.version().unwrap(), before);
    fs::remove_file(&path).unwrap();
    assert_eq!(lmdb.version(), None);
}

/// The pages with its version are whole; the rest of what was read is gone.
#[test]
fn a_store_that_was_cut_short_has_another_version() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.mdb");
    let lmdb = LmdbFile::new(path.clone());
    write_lmdb(&path, [2, 1]);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(9 * PAGE_BYTES).unwrap();
    let before = lmdb.version().unwrap();
    file.set_len(2 * PAGE_BYTES).unwrap();
    assert_ne!(lmdb.version().unwrap(), before);
}

/// As `accounts.usage_span` writes them.
fn say(folder: &Path, states: [&StoreVersion; 2]) {
    let words = states.map(|state| {
        let (seconds, nanoseconds) = state.changed_at;
        format!("{} {} {seconds} {nanoseconds}", state.transaction, state.bytes)
    });
    fs::write(folder.join("usage.span"), words.join(" ")).unwrap();
}

#[test]
fn states_between_which_only_usage_was_written_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.mdb");
    let lmdb = LmdbFile::new(path.clone());
    write_lmdb(&path, [6, 7]);
    let (seven, before) = (lmdb.version().unwrap(), lmdb.span().unwrap());
    write_lmdb(&path, [8, 7]);
    let eight = lmdb.version().unwrap();
    assert!(!lmdb.span().unwrap().continues(&before), "nobody has said so yet");
    say(folder.path(), [&seven, &eight]);
    let span = lmdb.span().unwrap();
    assert!(span.continues(&before) && span.has(7) && span.has(8) && !span.has(6) && !span.has(9));
    write_lmdb(&path, [8, 9]);
    let nine = lmdb.version().unwrap();
    say(folder.path(), [&seven, &nine]);
    assert!(lmdb.span().unwrap().continues(&before));
    write_lmdb(&path, [10, 9]);
    assert!(!lmdb.span().unwrap().continues(&before), "that was no usage");
    let ten = lmdb.version().unwrap();
    say(folder.path(), [&nine, &ten]);
    assert!(!lmdb.span().unwrap().continues(&before), "nor is this span the same");
    fs::write(folder.path().join("usage.span"), "7 x").unwrap();
    write_lmdb(&path, [10, 11]);
    assert!(!lmdb.span().unwrap().continues(&span));
}

#[test]
fn what_is_no_store_has_no_version() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.mdb");
    let lmdb = LmdbFile::new(path.clone());
    fs::write(&path, [0; 8192]).unwrap();
    assert_eq!(lmdb.version(), None);
    write_lmdb(&path, [1, 2]);
    let file = File::options().write(true).open(&path).unwrap();
    assert!(lmdb.version().is_some());
    file.set_len(100).unwrap();
    assert_eq!(lmdb.version(), None);
}

#[test]
fn a_plane_stands_on_its_files_while_they_are_the_same_and_no_shorter() {
    let folder = tempfile::tempdir().unwrap();
    let [plane, key] = ["plane.mdb", "key"].map(|name| folder.path().join(name));
    let write = || {
        fs::write(&plane, "plane").unwrap();
        fs::write(&key, "key").unwrap();
    };
    write();
    let opened = || {
        let states = [&plane, &key].map(|path| FileState::of(path).unwrap());
        PlaneFiles::new(folder.path(), states[0], states[1])
    };
    let files = opened();
    assert!(files.carry());
    fs::write(&plane, "plane that grew").unwrap();
    assert!(files.carry());
    fs::write(&plane, "cut").unwrap();
    assert!(!files.carry());
    write();
    let files = opened();
    let moved = folder.path().join("moved");
    fs::rename(&plane, &moved).unwrap();
    assert!(!files.carry());
    fs::rename(&moved, &plane).unwrap();
    assert!(files.carry());
    File::options().write(true).open(&key).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    assert!(!files.carry());
    fs::remove_file(&key).unwrap();
    assert!(!files.carry());
}
