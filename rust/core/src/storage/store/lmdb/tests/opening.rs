//! Stores that are opened, closed, forked, and opened again.

use super::*;

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

/// A process that stops while it holds the write lock does not stop readers.
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

/// A process has 1,024 keys for thread-local data, so no store may take a key.
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

/// Each child of the service does this.
#[expect(unsafe_code, reason = "the standard library knows no limits of a process")]
fn raise_descriptor_limit(wanted: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to `limit` only.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur = limit.rlim_cur.max(wanted);
    // SAFETY: the call reads `limit` only.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
}

#[test]
#[expect(unsafe_code, reason = "a fork is what this is about")]
fn a_handle_refuses_to_work_after_a_fork() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    store.append(vec![block(vec![1])]).unwrap();
    // SAFETY: the child makes no call that waits for a lock of another thread, and ends without
    // running a destructor.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let forked = [
            store.head().map(drop),
            store.append(vec![block(vec![2])]),
            store.append_names(0, &names(1, &[])).map(drop),
        ];
        let refused = forked.iter().all(|outcome| matches!(outcome, Err(Error::Forked)));
        // SAFETY: as for the fork above.
        unsafe { libc::_exit(i32::from(!refused)) }
    }
    let mut status = -1;
    // SAFETY: `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child went on with its parent's handle");
    store.append(vec![block(vec![3])]).unwrap();
    assert_eq!(whole_log(&store).len(), 2);
}
