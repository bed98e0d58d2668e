//! Slots of readers: slots of dead processes, and more readers than slots.

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use super::*;
use crate::storage::store::lmdb::environment;

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
    // If the table of readers was full before, a process that opens now must not be refused.
    let mut child = Child::start("read", directory.path());
    assert_eq!(child.ask("head"), "1");
    child.end();
}
