//! Simultaneous writers, of one process and of several.

use super::*;

#[test]
fn pages_raced_for_follow_each_other_and_no_id_is_given_twice() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            let (store, start) = (&store, &start);
            scope.spawn(move || {
                start.wait();
                let mut last = 0;
                for _ in 0..5 {
                    let names = names(3, &[FieldType::Float]);
                    while store.append_names(last, &names).unwrap().is_none() {
                        last = store.names_after(last).unwrap().last().unwrap().sequence;
                    }
                }
            });
        }
    });
    let pages = store.names_after(0).unwrap();
    assert_eq!(pages.len(), 40);
    assert!(pages.iter().flat_map(|page| &page.series).copied().eq(0..120));
    assert!(pages.iter().flat_map(|page| &page.fields).map(|(id, _)| *id).eq(0..40));
    assert_eq!(LmdbStore::peek(directory.path()).unwrap().series, 120);
}

#[test]
fn thirty_two_writers_share_syncs_and_keep_their_order() {
    const WRITERS: u8 = 32;
    const BLOCKS: u8 = 12;
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    let syncs_before = store.log.syncs();
    let start = Barrier::new(usize::from(WRITERS));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, start) = (&store, &start);
            scope.spawn(move || {
                start.wait();
                for number in 0..BLOCKS {
                    store.append(vec![block(vec![writer, number])]).unwrap();
                }
            });
        }
    });
    let batches = usize::from(WRITERS) * usize::from(BLOCKS);
    let syncs = store.log.syncs() - syncs_before;
    assert!(syncs < batches as u64, "{syncs} syncs for {batches} batches");
    let log = whole_log(&store);
    assert_eq!(log.len(), batches);
    for writer in 0..WRITERS {
        let numbers = log.iter().filter(|entry| entry.sealed[0] == writer);
        assert!(numbers.map(|entry| entry.sealed[1]).eq(0..BLOCKS));
    }
    assert_eq!(store.counts().unwrap().batches, batches as u64);
}

#[test]
fn as_many_blocks_as_may_wait_are_stored_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    let number = |entry: u32| entry.to_le_bytes();
    let blocks = (0..65_536).map(|entry| block([number(entry).as_slice(), &[1; 300]].concat()));
    store.append(blocks.collect()).unwrap();
    store.append((0..40).map(|at| large_block(1, at)).collect()).unwrap();
    let log = whole_log(&store);
    assert_eq!(log.len(), 65_576);
    assert!((0..65_536).zip(&log).all(|(entry, stored)| stored.sealed.starts_with(&number(entry))));
    assert!(
        (0..40).zip(&log[65_536..]).all(|(at, stored)| *stored.sealed == large_block(1, at).sealed)
    );
    assert!(store.replace_manifest(0, b"all", 65_576).unwrap());
    drop(store);
    let store = LmdbStore::open(directory.path()).unwrap();
    assert_eq!(store.verify().unwrap(), [""; 0]);
    store.append(vec![block(vec![1])]).unwrap();
    assert_eq!(whole_log(&store).len(), 1);
}

#[test]
fn the_map_grows_under_several_writers_and_another_process_follows() {
    const PAGE_BYTES: usize = 1 << 20;
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    let map_before = store.env.info().map_size;
    let pages = map_before as u64 / PAGE_BYTES as u64 + 16;
    let add_page = |store: &LmdbStore| {
        let mut last = store.env.read("count", |txn| Ok(store.tables.names.len(txn)?)).unwrap();
        while store.append_names(last, &large_names(PAGE_BYTES)).unwrap().is_none() {
            last += 1;
        }
    };
    // The child has mapped the file at its first size. It sleeps while the file outgrows that size.
    let mut child = Child::start("grow", directory.path());
    thread::scope(|scope| {
        for _ in 0..2 {
            let (store, add_page) = (&store, &add_page);
            scope.spawn(move || (0..pages / 2).for_each(|_| add_page(store)));
        }
    });
    let map_after = store.env.info().map_size;
    assert!(map_after > map_before, "{map_after}");
    assert_eq!(child.ask("names"), format!("{pages}"));
    assert_eq!(child.ask("add names"), "done");
    child.end();
    let found = store.env.read("count", |txn| Ok(store.tables.names.len(txn)?)).unwrap();
    assert_eq!(found, pages + 1);
    let last = store.names_after(pages).unwrap();
    assert_eq!(last[0].sealed_names, large_names(PAGE_BYTES).sealed_names);
}

#[test]
fn blocks_of_several_processes_keep_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    let mut child = Child::start("follow", directory.path());
    thread::scope(|scope| {
        for writer in 0..2 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..24 {
                    store.append(vec![large_block(writer, number)]).unwrap();
                    assert!(!store.log_after(store.head().unwrap() - 1).unwrap().is_empty());
                }
            });
        }
        assert_eq!(child.ask("append"), "done");
    });
    assert_eq!(child.ask("follow"), "51");
    child.end();
    let log = whole_log(&store);
    assert_eq!(log.len(), 51);
    for writer in 0..3 {
        let entries = log.iter().filter(|entry| entry.sealed[0] == writer);
        for (number, entry) in (0..).zip(entries) {
            assert_eq!(entry.sealed, large_block(writer, number).sealed);
        }
    }
}
