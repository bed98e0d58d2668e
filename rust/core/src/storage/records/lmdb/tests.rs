use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::thread;

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::RecordTransaction;
use super::super::testing::{SPACES, agrees, transactions};
use super::*;

const MIB: usize = 1 << 20;

fn store_in(folder: &TempDir) -> LmdbRecords {
    let spaces = SPACES.map(str::to_owned).to_vec();
    LmdbRecords::new(&folder.path().join("store"), spaces, b"test 1")
}

fn made() -> (TempDir, LmdbRecords) {
    let folder = TempDir::new().unwrap();
    let store = store_in(&folder);
    store.create(Changes::new()).unwrap();
    (folder, store)
}

fn put(store: &LmdbRecords, key: &[u8], value: &[u8]) -> Result<()> {
    let mut view = RecordTransaction::new(store.begin(true)?);
    view.put("a", key, value);
    view.commit()
}

fn get(store: &LmdbRecords, key: &[u8]) -> Result<Option<Vec<u8>>> {
    RecordTransaction::new(store.begin(false)?).get("a", key)
}

fn failure<R>(outcome: Result<R>) -> String {
    outcome.err().expect("it fails").to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn it_answers_as_the_twin_in_memory(transactions in transactions()) {
        let (_folder, store) = made();
        agrees(&store, &transactions)?;
    }
}

#[test]
fn what_was_committed_is_there_when_it_is_opened_anew() {
    let (folder, store) = made();
    put(&store, b"k", b"1").unwrap();
    store.close();
    assert_eq!(get(&store_in(&folder), b"k").unwrap(), Some(b"1".to_vec()));
}

#[test]
fn a_store_whose_making_broke_off_is_made_by_the_next_attempt() {
    let folder = TempDir::new().unwrap();
    let staged = folder.path().join("store.new");
    fs::create_dir(&staged).unwrap();
    fs::write(staged.join(DATA_FILE), b"half").unwrap();
    let store = store_in(&folder);
    store.create(Changes::new()).unwrap();
    put(&store, b"k", b"1").unwrap();
    let names: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["store"]);
}

#[test]
fn it_may_begin_with_records() {
    let folder = TempDir::new().unwrap();
    let records = BTreeMap::from([(b"k".to_vec(), Some(b"1".to_vec()))]);
    store_in(&folder).create(Changes::from([("a".to_owned(), records)])).unwrap();
    assert_eq!(get(&store_in(&folder), b"k").unwrap(), Some(b"1".to_vec()));
}

#[test]
fn its_files_are_of_their_owner_alone() {
    let (folder, _store) = made();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let root = folder.path().join("store");
    assert_eq!(mode(&root), 0o700);
    assert_eq!([DATA_FILE, "lock.mdb"].map(|name| mode(&root.join(name))), [0o600; 2]);
}

#[test]
fn a_snapshot_stays_as_it_was_and_waits_for_no_writer() {
    let (_folder, store) = made();
    let mut writer = RecordTransaction::new(store.begin(true).unwrap());
    writer.put("a", b"k", b"1");
    let mut before = RecordTransaction::new(store.begin(false).unwrap());
    writer.commit().unwrap();
    assert_eq!(before.get("a", b"k").unwrap(), None);
    assert_eq!(get(&store, b"k").unwrap(), Some(b"1".to_vec()));
}

#[test]
fn one_writes_at_a_time_and_sees_what_the_one_before_wrote() {
    let (_folder, store) = made();
    let writer = store.begin(true).unwrap();
    let (sent, began) = mpsc::channel();
    thread::scope(|threads| {
        threads.spawn(|| {
            let mut view = RecordTransaction::new(store.begin(true).unwrap());
            sent.send(view.get("a", b"k").unwrap()).unwrap();
        });
        let mut view = RecordTransaction::new(writer);
        view.put("a", b"k", b"1");
        assert!(began.try_recv().is_err());
        view.commit().unwrap();
        assert_eq!(began.recv().unwrap(), Some(b"1".to_vec()));
    });
}

#[test]
fn it_grows_past_its_map() {
    let (_folder, store) = made();
    let value = vec![b'x'; 5 * MIB];
    for key in 0..30_u8 {
        put(&store, &[key], &value).unwrap();
    }
    assert_eq!(get(&store, &[29]).unwrap().unwrap().len(), value.len());
}

#[test]
fn a_change_larger_than_the_map_is_undone_and_finds_room_when_it_is_tried_again() {
    let (_folder, store) = made();
    let value = vec![b'x'; 80 * MIB];
    let refused = failure(put(&store, b"k", &value));
    assert_eq!(refused, "it is full: try again, it has grown then; nothing was changed");
    assert_eq!(get(&store, b"k").unwrap(), None);
    put(&store, b"k", &value).unwrap();
    assert_eq!(get(&store, b"k").unwrap().unwrap().len(), value.len());
}

#[test]
fn a_file_that_was_cut_short_is_not_used_and_is_when_it_is_whole_again() {
    let (folder, store) = made();
    let file = folder.path().join("store").join(DATA_FILE);
    put(&store, b"k", &vec![1; 20_000]).unwrap();
    let whole = fs::read(&file).unwrap();
    for bytes in [0, 4_096, 6_000, 8_192, 12_288, 16_384] {
        let cut = fs::File::options().write(true).open(&file).unwrap();
        cut.set_len(bytes).unwrap();
        for _ in 0..2 {
            assert!(get(&store, b"k").is_err(), "{bytes} bytes");
        }
        fs::write(&file, &whole).unwrap();
        assert_eq!(get(&store, b"k").unwrap(), Some(vec![1; 20_000]), "{bytes} bytes");
    }
}

#[test]
fn a_file_of_something_else_is_damaged() {
    let (folder, store) = made();
    let file = folder.path().join("store").join(DATA_FILE);
    fs::write(&file, vec![b'x'; 65_536]).unwrap();
    let refused = failure(get(&store, b"k"));
    assert_eq!(refused, "data.mdb is damaged or was written with another key");
    let other = LmdbRecords::new(&folder.path().join("store"), Vec::new(), b"test 2");
    fs::remove_dir_all(folder.path().join("store")).unwrap();
    store_in(&folder).create(Changes::new()).unwrap();
    let refused = failure(other.begin(false).map(drop));
    assert_eq!(refused, "the format of data.mdb is damaged or was written with another key");
}

#[test]
fn files_that_were_replaced_are_opened_once_nobody_uses_the_old_ones() {
    let (folder, store) = made();
    put(&store, b"k", b"1").unwrap();
    let (root, away) = (folder.path().join("store"), folder.path().join("away"));
    let mut before = RecordTransaction::new(store.begin(false).unwrap());
    fs::rename(&root, &away).unwrap();
    let other = store_in(&folder);
    other.create(Changes::new()).unwrap();
    let refused = failure(other.begin(false));
    assert!(refused.contains("is open already"), "{refused}");
    assert_eq!(before.get("a", b"k").unwrap(), Some(b"1".to_vec()));
    drop(before);
    store.close();
    assert_eq!(get(&other, b"k").unwrap(), None);
    other.close();
    assert_eq!(get(&store, b"k").unwrap(), None);
}

#[test]
fn a_transaction_that_reads_changes_nothing() {
    let (_folder, store) = made();
    let mut view = RecordTransaction::new(store.begin(false).unwrap());
    view.put("a", b"k", b"1");
    assert_eq!(failure(view.commit()), "this transaction only reads");
}
