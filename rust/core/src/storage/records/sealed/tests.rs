//! A record comes back in its last state, and only from its place, under its master key.

use std::fs;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::testing::{SPACES, agrees, transactions};
use super::super::{Item, LmdbRecords, MemoryRecords, RecordTransaction};
use super::*;
use crate::storage::seal::MasterKey;

const KEY: [u8; 32] = [1; 32];

fn spaces() -> Vec<String> {
    SPACES.map(str::to_owned).to_vec()
}

fn sealed(records: &Arc<MemoryRecords>) -> SealedRecords {
    SealedRecords::new(Arc::clone(records) as Arc<dyn RecordStore>, &KEY, "store", &spaces())
}

fn put(store: &dyn RecordStore, items: &[(&str, &[u8], &[u8])]) -> Result<()> {
    let mut view = RecordTransaction::new(store.begin(true)?);
    for (space, key, value) in items {
        view.put(space, key, value);
    }
    view.commit()
}

fn get(store: &dyn RecordStore, space: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
    RecordTransaction::new(store.begin(false)?).get(space, key)
}

/// Makes a store of two records. Also returns the records below the seal.
fn filled() -> (Arc<MemoryRecords>, SealedRecords) {
    let records = Arc::<MemoryRecords>::default();
    let store = sealed(&records);
    put(&store, &[("a", b"k", b"one"), ("a", b"l", b"two")]).unwrap();
    (records, store)
}

fn failure<R>(outcome: Result<R>) -> String {
    outcome.err().expect("it fails").to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn it_answers_as_the_twin_in_memory(transactions in transactions()) {
        let records = Arc::default();
        agrees(&sealed(&records), &transactions)?;
        sealed(&records).check().expect("nothing is damaged");
    }

    #[test]
    fn a_copy_of_any_earlier_record_is_noticed(transactions in transactions()) {
        let records = Arc::<MemoryRecords>::default();
        let store = sealed(&records);
        let mut before = Vec::new();
        for (steps, _) in &transactions {
            let mut view = RecordTransaction::new(store.begin(true).unwrap());
            for step in steps {
                step.of(&mut view);
            }
            view.commit().unwrap();
            before.push(stored(&records));
        }
        let last = stored(&records);
        for (space, key, value) in before.into_iter().flatten() {
            if last.contains(&(space, key.clone(), value.clone())) {
                continue;
            }
            let now = last.iter().find(|(at, held, _)| (*at, held) == (space, &key));
            put(&*records, &[(space, &key, &value)]).unwrap();
            prop_assert!(store.check().is_err());
            let mut view = RecordTransaction::new(records.begin(true).unwrap());
            match now {
                Some((_, _, value)) => view.put(space, &key, value),
                None => view.delete(space, &key),
            }
            view.commit().unwrap();
            prop_assert!(store.check().is_ok());
        }
    }
}

/// Returns all records as they are stored.
fn stored(records: &Arc<MemoryRecords>) -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let mut snapshot = records.begin(false).unwrap();
    let of = |space: &'static str, found: Vec<Item>| {
        found.into_iter().map(move |(key, value)| (space, key, value))
    };
    let spaces = SPACES.map(|space| of(space, snapshot.under(space, b"", b"", 1_000).unwrap()));
    spaces.into_iter().flatten().collect()
}

#[test]
fn nothing_lies_open_but_keys() {
    let (records, store) = filled();
    let secret = b"a text that no random bytes are by chance";
    put(&store, &[("a", b"k", secret)]).unwrap();
    for (_, _, value) in stored(&records) {
        assert!(!value.windows(8).any(|part| secret.windows(8).any(|open| open == part)));
    }
}

#[test]
fn a_record_that_was_moved_or_exchanged_names_itself() {
    let (records, store) = filled();
    let value = |key: &[u8]| get(&*records, "a", key).unwrap().unwrap();
    let (one, two) = (value(b"k"), value(b"l"));
    for (space, key, value) in
        [("a", b"l", &one), ("a", b"m", &one), ("b", b"k", &one), ("a", b"k", &two)]
    {
        put(&*records, &[(space, key, value)]).unwrap();
        let fault = format!("the record {space}/{} is damaged", key.escape_ascii());
        assert!(failure(get(&store, space, key)).starts_with(&fault));
        assert!(store.check().is_err());
    }
    let other = Arc::<MemoryRecords>::default();
    put(&*other, &[("a", b"k", &one)]).unwrap();
    let head = get(&*records, HEAD.0, HEAD.1).unwrap().unwrap();
    put(&*other, &[(HEAD.0, HEAD.1, &head)]).unwrap();
    let of_other = SealedRecords::new(other, &KEY, "other store", &spaces());
    assert!(failure(get(&of_other, "a", b"k")).contains("seal/head is damaged"));
}

#[test]
fn records_are_changed_and_read_beside_one_that_is_damaged() {
    let (records, store) = filled();
    put(&*records, &[("a", b"k", b"nonsense, but as long as a sealed record is")]).unwrap();
    assert!(get(&store, "a", b"k").is_err());
    put(&store, &[("a", b"l", b"three")]).unwrap();
    assert_eq!(get(&store, "a", b"l").unwrap(), Some(b"three".to_vec()));
}

#[test]
fn a_record_that_is_taken_away_and_all_of_them_are_noticed() {
    let (records, store) = filled();
    let mut view = RecordTransaction::new(records.begin(true).unwrap());
    view.delete("a", b"k");
    view.commit().unwrap();
    assert!(failure(store.check()).contains("is missing"));
    let mut view = RecordTransaction::new(records.begin(true).unwrap());
    view.delete(HEAD.0, HEAD.1);
    view.commit().unwrap();
    assert!(failure(store.check()).contains("without the master key"));
    assert!(failure(put(&store, &[("a", b"m", b"")])).contains("without the master key"));
}

#[test]
fn another_master_key_opens_nothing_and_is_told_from_damage() {
    let (records, store) = filled();
    let other = SealedRecords::new(records, &[2; 32], "store", &spaces());
    assert!(store.is_of_master_key().unwrap());
    assert!(!other.is_of_master_key().unwrap());
    assert!(get(&other, "a", b"k").is_err());
}

#[test]
fn what_was_written_without_a_seal_is_taken_over_once() {
    let empty = sealed(&Arc::default());
    assert!(empty.take_over(&[]).unwrap() && empty.is_sealed().unwrap());
    let records = Arc::<MemoryRecords>::default();
    put(&*records, &[("a", b"k", b"one"), (OPEN_FACTS, b"fence", b"7")]).unwrap();
    let store = sealed(&records);
    assert!(!store.is_sealed().unwrap());
    put(&*records, &[(OPEN_FACTS, OPEN_CHECK_KEY, &[3; 32])]).unwrap();
    assert!(!store.is_of_master_key().unwrap());
    put(&*records, &[(OPEN_FACTS, OPEN_CHECK_KEY, &store.sealed.seal().open_check)]).unwrap();
    assert!(store.is_of_master_key().unwrap());
    assert!(failure(get(&store, "a", b"k")).contains("without the master key"));
    assert_eq!(store.unsealed("a").unwrap(), [(b"k".to_vec(), b"one".to_vec())]);
    assert!(store.take_over(&[b"fence", b"none"]).unwrap());
    assert_eq!(store.unsealed("a").unwrap(), []);
    assert!(!store.take_over(&[b"fence"]).unwrap());
    assert_eq!(get(&store, "a", b"k").unwrap(), Some(b"one".to_vec()));
    assert_eq!(get(&store, FACTS, b"fence").unwrap(), Some(b"7".to_vec()));
    for fact in [b"fence".as_slice(), OPEN_CHECK_KEY] {
        assert_eq!(get(&*records, OPEN_FACTS, fact).unwrap(), None);
    }
    store.check().unwrap();
}

struct Files {
    folder: TempDir,
}

/// A store in files. The changes of its space "a" are counted.
impl Files {
    fn new() -> Self {
        let files = Self { folder: TempDir::new().unwrap() };
        fs::create_dir(files.folder.path().join("elsewhere")).unwrap();
        let store = files.store();
        files.raw().create(store.beginning().unwrap()).unwrap();
        store.note().unwrap();
        store.close();
        files
    }

    fn raw(&self) -> LmdbRecords {
        let spaces = SealedRecords::spaces(&spaces());
        LmdbRecords::new(&self.folder.path().join("store"), spaces, b"test 1")
    }

    fn revision(&self) -> std::path::PathBuf {
        self.folder.path().join("elsewhere/revision")
    }

    fn store(&self) -> SealedRecords {
        let store = SealedRecords::new(Arc::new(self.raw()), &KEY, "store", &spaces());
        store.counting(&["a".to_owned()], &self.revision())
    }

    /// Returns the content of the data file.
    fn content(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("store/data.mdb")).unwrap()
    }

    fn put_back(&self, content: &[u8]) {
        fs::write(self.folder.path().join("store/data.mdb"), content).unwrap();
    }
}

fn change(store: &SealedRecords, space: &str) {
    put(store, &[(space, b"k", b"value")]).unwrap();
    store.close();
}

#[test]
fn an_older_copy_of_the_store_is_noticed_and_accepted_without_the_file() {
    let files = Files::new();
    change(&files.store(), "a");
    let earlier = files.content();
    change(&files.store(), "b");
    let uncounted = files.content();
    files.put_back(&earlier);
    files.store().check().unwrap(); // an earlier copy of uncounted records cannot be told
    files.put_back(&uncounted);
    change(&files.store(), "a");
    files.put_back(&uncounted);
    let fault = failure(get(&files.store(), "a", b"k"));
    assert!(fault.contains("is of revision 1") && fault.contains("says 2"), "{fault}");
    assert!(fault.contains("remove "), "{fault}");
    fs::remove_file(files.revision()).unwrap();
    change(&files.store(), "a");
    files.put_back(&uncounted);
    assert!(files.store().check().is_err());
}

#[test]
fn a_file_of_its_revision_that_is_behind_catches_up_and_one_of_another_store_is_refused() {
    let (files, other) = (Files::new(), Files::new());
    change(&files.store(), "a");
    let behind = fs::read(files.revision()).unwrap();
    change(&files.store(), "a");
    let last = fs::read(files.revision()).unwrap();
    fs::write(files.revision(), behind).unwrap();
    files.store().check().unwrap();
    let caught_up = fs::read(files.revision()).unwrap();
    let seal = RecordSeal::new(&KEY, "store");
    assert_eq!(seal.open_revision(&caught_up), seal.open_revision(&last));
    fs::copy(other.revision(), files.revision()).unwrap();
    assert!(failure(files.store().check()).contains("of another store"));
    fs::write(files.revision(), b"").unwrap();
    assert!(failure(files.store().check()).contains("damaged"));
}

#[test]
fn a_change_that_cannot_be_noted_is_not_made() {
    let files = Files::new();
    change(&files.store(), "a");
    fs::remove_dir_all(files.revision().parent().unwrap()).unwrap();
    let store = files.store();
    assert!(failure(put(&store, &[("a", b"k", b"other")])).contains("could not write"));
    assert_eq!(get(&store, "a", b"k").unwrap(), Some(b"value".to_vec()));
    put(&store, &[("b", b"k", b"other")]).unwrap();
}

#[test]
fn a_store_that_lost_its_seal_is_not_taken_over() {
    let files = Files::new();
    let raw = files.raw();
    put(&raw, &[("a", b"k", b"forged")]).unwrap();
    let mut view = RecordTransaction::new(raw.begin(true).unwrap());
    view.delete(HEAD.0, HEAD.1);
    view.commit().unwrap();
    raw.close();
    assert!(failure(files.store().take_over(&[])).contains("has no seal, and "));
}

const NEW_KEY: [u8; 32] = [2; 32];

/// Master keys that begin with `key` and may become `known`.
fn turning(key: [u8; 32], known: &'static [[u8; 32]]) -> MasterKeys {
    let source = || Some(known.iter().copied().map(MasterKey::new).collect());
    MasterKeys::following(&key, Box::new(source))
}

#[test]
fn a_turn_seals_all_records_again_and_open_stores_follow() {
    let records = Arc::<MemoryRecords>::default();
    let store = |keys| SealedRecords::new(Arc::clone(&records) as _, keys, "store", &spaces());
    let (one, other) = (store(turning(KEY, &[NEW_KEY, KEY])), store(turning(KEY, &[NEW_KEY, KEY])));
    put(&one, &[("a", b"k", b"one"), ("b", b"k", b"two")]).unwrap();
    let secret = other.secret("pepper").unwrap();
    let before = other.begin(false).unwrap();
    assert!(one.turn(&["pepper"]).unwrap());
    assert!(!one.turn(&["pepper"]).unwrap());
    assert_eq!(RecordTransaction::new(before).get("a", b"k").unwrap(), Some(b"one".to_vec()));
    put(&other, &[("a", b"l", b"three")]).unwrap();
    let fresh = store((&NEW_KEY).into());
    for store in [&one, &other, &fresh] {
        assert_eq!(get(store, "b", b"k").unwrap(), Some(b"two".to_vec()));
        assert_eq!(store.secret("pepper").unwrap(), secret);
        store.check().unwrap();
    }
    let old = store((&KEY).into());
    assert!(!old.is_of_master_key().unwrap());
    assert!(get(&old, "a", b"k").is_err() && old.secret("pepper").is_err());
    assert!(put(&old, &[("a", b"k", b"forged")]).is_err());
}

#[test]
fn a_damaged_head_asks_for_the_master_keys_once() {
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let source = move || {
        count.fetch_add(1, Ordering::SeqCst);
        Some(vec![MasterKey::new(KEY)])
    };
    let (records, store) = filled();
    drop(store);
    put(&*records, &[(HEAD.0, HEAD.1, b"damaged")]).unwrap();
    let keys = MasterKeys::following(&KEY, Box::new(source));
    let store = SealedRecords::new(records, keys, "store", &spaces());
    let begun = Instant::now();
    for _ in 0..5 {
        assert!(get(&store, "a", b"k").is_err());
    }
    assert!(asked.load(Ordering::SeqCst) <= 1 + begun.elapsed().as_secs() / 60);
}

#[test]
fn a_turn_refuses_records_that_were_put_there() {
    let (records, store) = filled();
    let before = get(&*records, "a", b"k").unwrap().unwrap();
    put(&store, &[("a", b"k", b"newer")]).unwrap();
    put(&*records, &[("a", b"k", &before)]).unwrap();
    let keys = turning(KEY, &[NEW_KEY, KEY]);
    let store = SealedRecords::new(records, keys, "store", &spaces());
    assert!(failure(store.turn(&[])).contains("put back"));
}

#[test]
fn a_file_of_the_revision_under_the_key_before_is_replaced() {
    let files = Files::new();
    let store = |key| {
        let keys = turning(key, &[NEW_KEY, KEY]);
        let store = SealedRecords::new(Arc::new(files.raw()), keys, "store", &spaces());
        store.counting(&["a".to_owned()], &files.revision())
    };
    change(&store(KEY), "a");
    let before = fs::read(files.revision()).unwrap();
    let turned = store(KEY);
    assert!(turned.turn(&[]).unwrap());
    turned.close();
    fs::write(files.revision(), &before).unwrap(); // as after a crash within the turn
    let again = store(NEW_KEY);
    assert!(!again.turn(&[]).unwrap());
    again.close();
    let after = fs::read(files.revision()).unwrap();
    assert_eq!(RecordSeal::new(&KEY, "store").open_revision(&after), None);
    assert_eq!(RecordSeal::new(&NEW_KEY, "store").open_revision(&after).unwrap().revision, 2);
}
