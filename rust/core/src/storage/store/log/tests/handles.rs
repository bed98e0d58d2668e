//! Several handles, files that end, and files that are removed.

use super::*;
use crate::storage::store::cursor::{Cursor, Cursors};

#[test]
fn two_handles_append_in_turn_and_see_all() {
    let directory = tempfile::tempdir().unwrap();
    let handles = [create(directory.path()), open(directory.path()).unwrap()];
    let mut expected = Vec::new();
    for number in 0..40_u8 {
        let handle = &handles[usize::from(number % 3 / 2)];
        let content = vec![number; 1 + usize::from(number) * 100];
        append(handle, &content);
        expected.push(content);
        if number % 8 == 7 {
            // The bytes of the log are the bytes of all blocks, for every handle.
            assert!(handles.iter().all(|handle| sealed(handle) == expected));
        }
    }
    let bytes = expected.iter().map(|content| content.len() as u64).sum();
    let counts =
        StoreCounts { rows: 120, values: 200, rejected: 40, batches: 40, log_bytes: bytes };
    assert!(handles.iter().all(|handle| handle.seen().2 == counts));
    drop(handles);
    let reopened = open(directory.path()).unwrap();
    assert_eq!((sealed(&reopened), reopened.seen().2), (expected, counts));
}

#[test]
fn a_group_is_there_whole_and_counts_without_blocks_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let log = create(directory.path());
    log.append(vec![block(vec![1; 10]), block(Vec::new()), block(vec![2; 20])]).unwrap();
    log.append(vec![block(Vec::new())]).unwrap();
    drop(log);
    let log = open(directory.path()).unwrap();
    let found = read(&log).unwrap();
    assert_eq!(found.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(log.seen().2.batches, 4);
    assert!(log.get([2, 1].into_iter()).unwrap().unwrap()[0].sealed == [2; 20]);
    assert!(log.get([3].into_iter()).unwrap().is_none());
}

#[test]
fn compacted_files_go_under_another_handle_that_has_not_read_them() {
    let directory = tempfile::tempdir().unwrap();
    let log = create(directory.path());
    let [reader, idle] = [open(directory.path()).unwrap(), open(directory.path()).unwrap()];
    append(&log, b"before");
    assert_eq!(sealed(&reader), [b"before"]);
    let mut last = 1;
    for _ in 0..3 {
        (0..10).for_each(|_| append(&log, &vec![1; 20_000]));
        last += 10;
        log.follow().unwrap();
        let taken = CompactedLog { compacted: last, cursors: log.seen().0 };
        log.trim(taken).unwrap();
        log.forget(taken);
    }
    append(&log, b"behind");
    for handle in [&log, &reader, &idle] {
        handle.follow().unwrap();
        let entries = handle.between(last, u64::MAX).unwrap().unwrap();
        assert_eq!(entries, [LogEntry { sequence: last + 1, sealed: b"behind".to_vec() }]);
    }
    // An index that begins behind compacted blocks has no place for them.
    assert!(idle.between(0, u64::MAX).unwrap().is_none());
    let left: u64 =
        file::list(&directory.path().join(DIRECTORY)).unwrap().iter().map(|(_, bytes)| bytes).sum();
    assert!(left <= 256 << 10, "{left} bytes");
    append(&idle, b"idle");
    drop([log, reader, idle]);
    let taken = CompactedLog { compacted: last, cursors: u64::MAX };
    let log = open_taken(directory.path(), taken).unwrap();
    log.follow().unwrap();
    assert_eq!(log.between(last, u64::MAX).unwrap().unwrap().len(), 2);
}

#[test]
fn cursors_are_kept_with_the_frames_they_came_with() {
    let directory = tempfile::tempdir().unwrap();
    let log = create(directory.path());
    let with = |position: &[u8], sealed: &[u8]| {
        let cursor = Cursor { key: [1; 16], position: position.to_vec() };
        let block = NewBlock { cursor: Some(cursor), ..block(sealed.to_vec()) };
        log.append(vec![block]).unwrap();
    };
    with(b"a", b"block");
    let taken = CompactedLog {
        compacted: 1,
        cursors: {
            log.follow().unwrap();
            log.seen().0
        },
    };
    with(b"b", b"");
    let found = |log: &Log, position| {
        log.follow().unwrap();
        let mut cursors = Cursors::default();
        log.move_cursors(position, &mut cursors);
        cursors.get(&[1; 16]).map(<[u8]>::to_vec)
    };
    assert_eq!(found(&log, 0), Some(b"b".to_vec()));
    log.restart(1).unwrap();
    // The file with the second cursor is needed, although all of its blocks were compacted.
    log.trim(taken).unwrap();
    drop(log);
    let log = open_taken(directory.path(), taken).unwrap();
    assert_eq!(found(&log, taken.cursors), Some(b"b".to_vec()));
}

#[test]
fn many_threads_of_two_handles_share_syncs() {
    let directory = tempfile::tempdir().unwrap();
    let handles = [create(directory.path()), open(directory.path()).unwrap()];
    std::thread::scope(|scope| {
        for writer in 0..16_u8 {
            let handle = &handles[usize::from(writer % 2)];
            scope.spawn(move || (0..20).for_each(|number| append(handle, &[writer, number])));
        }
    });
    let syncs = handles[0].syncs();
    assert!(syncs < 320, "{syncs} syncs for 320 batches");
    let found = sealed(&handles[0]);
    assert_eq!(found.len(), 320);
    for writer in 0..16 {
        let numbers = found.iter().filter(|block| block[0] == writer).map(|block| block[1]);
        assert!(numbers.eq(0..20));
    }
    drop(handles);
    assert_eq!(sealed(&open(directory.path()).unwrap()), found);
}
