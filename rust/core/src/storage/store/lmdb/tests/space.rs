//! A full disk, and a limit on the size of files.

use super::*;

#[test]
fn a_full_disk_loses_nothing_and_writing_goes_on_when_space_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut child) = Child::start_on_small_disk("fill", directory.path()) else {
        eprintln!("skipped: this user may not mount a small file system");
        return;
    };
    assert_eq!(child.ask("fill"), "done");
    child.end();
}

pub(super) fn fill_the_disk(directory: &Path) {
    let ballast = directory.join("ballast");
    std::fs::write(&ballast, vec![1; 1 << 20]).unwrap();
    let plane = directory.join("plane");
    std::fs::create_dir(&plane).unwrap();
    let store = LmdbStore::create(&plane).unwrap();
    let mut acknowledged = Vec::new();
    for size in [300_000, 50_000, 3_000, 100] {
        let error = loop {
            let sealed = vec![u8::try_from(acknowledged.len() % 251).unwrap(); size];
            match store.append(vec![block(sealed.clone())]) {
                Ok(()) => acknowledged.push(sealed),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::DiskFull), "{error}");
        assert!(matches!(store.append(vec![block(vec![0; 500_000])]), Err(Error::DiskFull)));
        let pages = store.names_after(0).unwrap().len() as u64;
        let appended = store.append_names(pages, &names(200, &[]));
        assert!(matches!(appended, Ok(Some(_)) | Err(Error::DiskFull)), "{appended:?}");
    }
    // Readers on a full disk: every slot of the lock file must have its page by now.
    let hold = Barrier::new(600);
    thread::scope(|scope| {
        for _ in 0..600 {
            let reader = || store.env.read("hold a reader", |_| Ok(hold.wait())).map(drop).unwrap();
            let small = thread::Builder::new().stack_size(64 << 10);
            small.spawn_scoped(scope, reader).unwrap();
        }
    });
    let stored = |store: &LmdbStore| whole_log(store).into_iter().map(|entry| entry.sealed);
    assert!(stored(&store).eq(acknowledged.iter().cloned()));
    std::fs::remove_file(&ballast).unwrap();
    store.append(vec![block(vec![9; 300_000])]).unwrap();
    acknowledged.push(vec![9; 300_000]);
    drop(store);
    let store = LmdbStore::open(&plane).unwrap();
    assert!(stored(&store).eq(acknowledged.iter().cloned()));
    assert_eq!(store.counts().unwrap().batches, acknowledged.len() as u64);
}

#[test]
fn a_limit_on_the_size_of_files_is_a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Child::start("limit", directory.path());
    assert_eq!(child.ask("fill"), "done");
    child.end();
}

/// Sets this process's limit on the size of files.
#[expect(unsafe_code, reason = "the standard library knows no limits of a process")]
fn limit_files(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call reads `limit`. Ignoring the signal, as Python does, disturbs no other test.
    let outcome = unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit)
    };
    assert_eq!(outcome, 0);
}

pub(super) fn reach_the_limit(directory: &Path) {
    // The limit is not at the end of a page, so the last write is cut short.
    limit_files(1_000_003);
    let store = LmdbStore::create(directory).unwrap();
    let mut acknowledged = 0;
    for size in [300_000, 50_000, 3_000, 100] {
        let error = loop {
            match store.append(vec![block(vec![1; size])]) {
                Ok(()) => acknowledged += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::DiskFull), "{error}");
    }
    assert_eq!(whole_log(&store).len(), acknowledged);
    limit_files(libc::RLIM_INFINITY);
    store.append(vec![block(vec![2; 300_000])]).unwrap();
    assert_eq!(whole_log(&store).len(), acknowledged + 1);
}
