//! Files with missing parts.

use super::*;

/// A file that was cut short, but is still longer than when this process last looked at its length.
/// Only its head tells that pages are missing. Touching a missing page would end the process.
#[test]
fn f12_a_file_cut_short_under_an_open_store_is_damaged_and_ends_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    let path = plane_path(directory.path());
    for number in 0..40 {
        store.append_names(number, &large_names(3_000)).unwrap();
    }
    let whole = std::fs::read(&path).unwrap();
    let pages_of_names = store.names_after(0).unwrap();
    let cut = |length: u64| {
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
    };
    for pages in 2..whole.len() as u64 / 4_096 {
        cut(pages * 4_096 + 100);
        let read = store.names_after(0);
        assert!(matches!(read, Err(Error::Corrupt { .. })), "{pages} pages: {:?}", read.err());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), pages * 4_096 + 100);
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(store.names_after(0).unwrap(), pages_of_names);
    }
    cut(20_000);
    let written = store.append_names(40, &large_names(1));
    assert!(matches!(written, Err(Error::Corrupt { .. })), "{:?}", written.err());
    std::fs::write(&path, &whole).unwrap();
    drop(store);
    let reopened = LmdbStore::open(directory.path()).unwrap();
    assert_eq!(reopened.names_after(0).unwrap(), pages_of_names);
}

/// A store with a lost head record must not pass for a store without a log.
#[test]
fn a_store_without_its_head_record_keeps_its_log() {
    let directory = tempfile::tempdir().unwrap();
    for is_compacted in [false, true] {
        let plane = directory.path().join(is_compacted.to_string());
        std::fs::create_dir(&plane).unwrap();
        let store = LmdbStore::create(&plane).unwrap();
        store.append(vec![block(vec![1; 100_000])]).unwrap();
        if is_compacted {
            assert!(store.replace_manifest(0, b"manifest", 1).unwrap());
        }
        let forget = |txn: &mut RwTxn<'_>| Ok(store.tables.meta.delete(txn, records::HEAD)?);
        assert!(store.env.write("forget the head", forget).unwrap());
        drop(store);
        let opened = LmdbStore::open(&plane);
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{:?}", opened.err());
        assert!(std::fs::read_dir(plane.join("log")).unwrap().next().is_some());
    }
}
