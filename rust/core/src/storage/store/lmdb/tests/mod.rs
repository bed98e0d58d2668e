//! The store on disk: against its twin, at its limits, among threads and processes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use heed::RwTxn;
use heed::types::Bytes;

use self::child::Child;
use super::opening::plane_path;
use super::{LmdbStore, environment, records};
use crate::model::batch::FieldType;
use crate::model::error::{Error, Result};
use crate::storage::store::peeked::Peeked;
use crate::storage::store::{Counts, FirstIds, LogEntry, NewBlock, NewNames, Store};

mod child;
mod killed;
mod peek;
mod pending;
mod space;
mod twin;

fn block(sealed: Vec<u8>) -> NewBlock {
    let counts = Counts { rows: 3, values: 5, rejected: 1, batches: 1, log_bytes: 0 };
    NewBlock { sealed, counts, cursor: None }
}

/// A page of so many series and of fields of these types.
fn names(series: u32, fields: &[FieldType]) -> NewNames {
    NewNames { series, fields: fields.to_vec(), sealed_names: vec![7; 5 + fields.len()] }
}

fn whole_log(store: &dyn Store) -> Vec<LogEntry> {
    let mut log: Vec<LogEntry> = Vec::new();
    loop {
        let next = store.log_after(log.last().map_or(0, |entry| entry.sequence)).unwrap();
        if next.is_empty() {
            return log;
        }
        log.extend(next);
    }
}

fn pages_used(store: &LmdbStore) -> usize {
    store.env.info().last_page_number
}

#[test]
fn one_process_opens_a_store_once_and_again_after_closing() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(LmdbStore::open(directory.path()), Err(Error::Missing(_))));
    let store = LmdbStore::create(directory.path()).unwrap();
    let second = LmdbStore::open(directory.path());
    assert!(matches!(second, Err(Error::Database { .. })), "{:?}", second.err());
    assert!(matches!(LmdbStore::create(directory.path()), Err(Error::Exists(_))));
    store.append(vec![block(vec![7])]).unwrap();
    drop(store);
    assert_eq!(LmdbStore::open(directory.path()).unwrap().head().unwrap(), 1);
}

#[test]
fn a_closed_store_ends_its_calls_and_is_opened_anew_when_the_last_one_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(LmdbStore::create(directory.path()).unwrap());
    let (entered, release) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        let under_way = std::sync::Arc::clone(&store);
        let (entered, release) = (&entered, &release);
        scope.spawn(move || {
            let read: Result<()> = under_way.env.read("hold a reader", |_| {
                entered.wait();
                release.wait();
                Ok(())
            });
            read.unwrap();
            assert!(matches!(under_way.head(), Err(Error::Closed)));
        });
        entered.wait();
        store.close();
        drop(store);
        let reopened = scope.spawn(|| LmdbStore::open(directory.path()));
        release.wait();
        let reopened = reopened.join().unwrap().unwrap();
        reopened.append(vec![block(vec![1])]).unwrap();
    });
}

/// A process that stands still with the write lock held stops nobody who only reads.
#[test]
fn a_store_is_opened_and_read_while_a_writer_stands_still() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    store.append(vec![block(vec![1])]).unwrap();
    let written = store.env.write("stand still", |_| {
        let mut child = Child::start("read", directory.path());
        assert_eq!(child.ask("head"), "1");
        child.end();
        Ok(())
    });
    written.unwrap();
}

/// `/metrics` looks at each tenant, whatever its processes do at that moment.
/// A process ended at about 1,011 tenants, as it has 1,024 keys for thread-local data.
#[test]
fn a_process_opens_more_stores_than_it_has_thread_local_keys() {
    const STORES: usize = 1_200;
    raise_descriptor_limit(STORES as u64 * 4 + 1_024);
    let memory = Path::new("/dev/shm");
    let memory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let memory = memory.unwrap();
    let stores: Vec<_> = (0..STORES)
        .map(|number| {
            let directory = memory.path().join(number.to_string());
            std::fs::create_dir(&directory).unwrap();
            let store = LmdbStore::create(&directory).unwrap();
            store.append(vec![block(vec![1])]).unwrap();
            store
        })
        .collect();
    assert!(stores.iter().all(|store| store.head().unwrap() == 1));
}

/// As each child of the service does it.
#[expect(unsafe_code, reason = "the standard library knows no limits of a process")]
fn raise_descriptor_limit(wanted: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to `limit` and nowhere else.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur = limit.rlim_cur.max(wanted);
    // SAFETY: the call reads `limit` and nothing else.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
}

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

/// An environment of version 1 had a table of series and one of fields, and a head without ids.
#[test]
fn a_store_of_version_1_goes_on_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    store.append_names(0, &names(3, &[FieldType::Bool])).unwrap();
    let old = ["series", "fields"];
    let created = store.env.create_tables(|open, txn| {
        let mut make = |name| open.create_database::<Bytes, Bytes>(txn, Some(name));
        Ok([make(old[0])?, make(old[1])?])
    });
    let fill = |txn: &mut RwTxn<'_>| {
        let [series, fields] = created.as_ref().unwrap();
        (0..3).try_for_each(|id: u8| series.put(txn, &[id], &[id]))?;
        fields.put(txn, &[0], &[0])?;
        Ok(store.tables.meta.delete(txn, records::HEAD)?)
    };
    assert!(store.env.write("write as version 1 did", fill).unwrap());
    drop(store);
    let store = LmdbStore::open(directory.path()).unwrap();
    assert_eq!(LmdbStore::peek(directory.path()).unwrap().series, 3);
    let first = store.append_names(1, &names(1, &[FieldType::Text])).unwrap();
    assert_eq!(first, Some(FirstIds { series: 3, field: 1 }));
    drop(store);
    let store = LmdbStore::open(directory.path()).unwrap();
    assert_eq!(LmdbStore::peek(directory.path()).unwrap().series, 4);
    let is_empty = store.env.read("look at the old tables", |txn| {
        let [series, fields] = store.tables.version_1.map(|table| table.unwrap().is_empty(txn));
        Ok(series? && fields?)
    });
    assert!(is_empty.unwrap());
}

/// A file that was cut longer ago than this process looked at it, but that is longer than it was
/// then: only its own head tells. Touching what is gone would end the process.
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

/// A page of one series whose sealed names have so many bytes.
fn large_names(bytes: usize) -> NewNames {
    NewNames { series: 1, fields: Vec::new(), sealed_names: vec![7; bytes] }
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

/// A block of one MiB that says who wrote it and when.
fn large_block(writer: u8, number: u8) -> NewBlock {
    let mut sealed = vec![writer ^ number; 1 << 20];
    sealed[..2].copy_from_slice(&[writer, number]);
    block(sealed)
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
    // The child has mapped the file at its first size and stays asleep while it outgrows that.
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

/// A store whose head record is gone must not pass for one that has no log yet.
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

#[test]
fn a_reader_that_was_killed_does_not_stop_the_reuse_of_space() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    let commit = |count| (0..count).for_each(|_| store.set_retention(1).unwrap());
    commit(20);
    let mut child = Child::start("read", directory.path());
    child.ask("hold");
    let before = pages_used(&store);
    commit(40);
    assert!(pages_used(&store) > before, "the reader pins nothing: this test shows nothing");
    child.kill();
    commit(environment::COMMITS_PER_CHECK);
    let freed = pages_used(&store);
    commit(100);
    assert!(pages_used(&store) <= freed + 4, "{freed} then {}", pages_used(&store));
}

#[test]
fn more_readers_than_slots_are_refused_and_the_store_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    let (started, release) = (AtomicU32::new(0), AtomicBool::new(false));
    let refused = Mutex::new(Vec::new());
    let readers = store.env.info().maximum_number_of_readers + 8;
    thread::scope(|scope| {
        for _ in 0..readers {
            let (store, started, release, refused) = (&store, &started, &release, &refused);
            let small = thread::Builder::new().stack_size(64 << 10);
            let reader = small.spawn_scoped(scope, move || {
                let outcome = store.env.read("hold a reader", |_| {
                    started.fetch_add(1, Ordering::AcqRel);
                    while !release.load(Ordering::Acquire) {
                        thread::park_timeout(Duration::from_millis(20));
                    }
                    Ok(())
                });
                if let Err(error) = outcome {
                    started.fetch_add(1, Ordering::AcqRel);
                    refused.lock().unwrap().push(error);
                }
            });
            reader.unwrap();
        }
        while started.load(Ordering::Acquire) < readers {
            thread::sleep(Duration::from_millis(5));
        }
        release.store(true, Ordering::Release);
    });
    let refused = refused.into_inner().unwrap();
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|error| matches!(error, Error::Database { .. })), "{refused:?}");
    store.append(vec![block(vec![1])]).unwrap();
    // A table of readers that was full once is no reason to refuse a process that opens now.
    let mut child = Child::start("read", directory.path());
    assert_eq!(child.ask("head"), "1");
    child.end();
}

#[test]
#[expect(unsafe_code, reason = "a fork is what this is about")]
fn a_handle_refuses_to_work_after_a_fork() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    store.append(vec![block(vec![1])]).unwrap();
    // SAFETY: the child calls nothing that waits for a lock another thread may hold, and ends
    // without running a destructor.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let forked = [
            store.head().map(drop),
            store.append(vec![block(vec![2])]),
            store.append_names(0, &names(1, &[])).map(drop),
        ];
        let refused = forked.iter().all(|outcome| matches!(outcome, Err(Error::Forked)));
        // SAFETY: see above.
        unsafe { libc::_exit(i32::from(!refused)) }
    }
    let mut status = -1;
    // SAFETY: `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child went on with its parent's handle");
    store.append(vec![block(vec![3])]).unwrap();
    assert_eq!(whole_log(&store).len(), 2);
}

/// Work of the child processes of the tests above; started by them only.
#[test]
#[ignore = "a child process of other tests"]
fn child_process() {
    let Some((role, directory)) = Child::role() else { return };
    let alone = match &*role {
        "fill" => Some(space::fill_the_disk as fn(&Path)),
        "limit" => Some(space::reach_the_limit as fn(&Path)),
        _ => None,
    };
    if let Some(work) = alone {
        Child::serve(|_| {
            work(&directory);
            "done".to_owned()
        });
        return;
    }
    let store = LmdbStore::open(&directory).unwrap();
    Child::serve(|order| match order {
        "head" => store.head().unwrap().to_string(),
        "follow" => whole_log(&store).len().to_string(),
        "names" => {
            store.env.read("count", |txn| Ok(store.tables.names.len(txn)?)).unwrap().to_string()
        }
        "add names" => {
            let last = store.env.read("count", |txn| Ok(store.tables.names.len(txn)?)).unwrap();
            store.append_names(last, &large_names(1 << 20)).unwrap().unwrap();
            "done".to_owned()
        }
        "pour" => killed::pour(&store),
        "begin" => store.append_unsynced(vec![block(vec![1])]).unwrap().to_string(),
        "leave" => {
            store.leave(u64::MAX);
            "left".to_owned()
        }
        "append" => {
            (0..3).for_each(|number| store.append(vec![large_block(2, number)]).unwrap());
            "done".to_owned()
        }
        _ => {
            // Says so from inside the transaction, and stays there until it is killed.
            let held: Result<()> = store.env.read("hold a reader", |txn| {
                store.tables.head(txn)?;
                Child::answer("held");
                loop {
                    thread::park();
                }
            });
            format!("{held:?}")
        }
    });
}
