//! Counts read from the files alone.

use super::*;
use crate::storage::store::peeked::PeekedCounts;

#[test]
fn counts_are_read_without_a_lock_while_commits_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let missing = LmdbStore::peek(directory.path());
    assert!(matches!(missing, Err(Error::Missing(_))), "{missing:?}");
    let store = LmdbStore::create(directory.path()).unwrap();
    let peek = || LmdbStore::peek(directory.path()).unwrap();
    assert_eq!(peek().counts, StoreCounts::default());
    store.append_names(0, &names(3, &[])).unwrap();
    let mut segment = store.create_segment(&[7; 16]).unwrap();
    segment.append(&[1; 100]).unwrap();
    segment.finish().unwrap();
    // Even a large manifest does not get in the way.
    assert!(store.replace_manifest(0, &[1; 9_000], 0).unwrap());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            (0..200).for_each(|_| store.append(vec![block(vec![1; 100])]).unwrap());
            done.store(true, Ordering::Release);
        });
        let mut batches = 0;
        while !done.load(Ordering::Acquire) {
            let counts = peek().counts;
            assert!(counts.batches >= batches && counts.rows == 3 * counts.batches);
            batches = counts.batches;
        }
    });
    let space = store.space().unwrap();
    let file_bytes = std::fs::metadata(plane_path(directory.path())).unwrap().len();
    assert_eq!((space.tables + space.free, space.segments), (file_bytes, 100));
    assert!(space.tables > 0 && space.log > 20_000);
    let counts = store.counts().unwrap();
    let expected = PeekedCounts { counts, generation: 1, series: 3, segments: 1, space };
    let while_locked: Result<PeekedCounts> = store.env.write("stand still", |_| Ok(peek()));
    assert_eq!((peek(), while_locked.unwrap()), (expected, expected));
}

#[test]
fn counts_of_a_damaged_file_are_an_error_or_numbers_never_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    (0..3).for_each(|_| store.append(vec![block(vec![1])]).unwrap());
    drop(store);
    let file = plane_path(directory.path());
    let whole = std::fs::read(&file).unwrap();
    let mut refused = 0;
    for at in (0..whole.len()).step_by(23) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x11;
        std::fs::write(&file, &bytes).unwrap();
        refused += u32::from(LmdbStore::peek(directory.path()).is_err());
    }
    for length in (0..whole.len()).step_by(1_021) {
        std::fs::write(&file, &whole[..length]).unwrap();
        drop(LmdbStore::peek(directory.path()));
    }
    assert!(refused > 0);
}
