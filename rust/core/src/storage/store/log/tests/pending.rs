//! Blocks that were appended and are not durable yet.

use super::*;

/// Appends a block without a sync.
fn leave_unsynced(log: &Log, content: u8) -> u64 {
    log.append_unsynced(vec![block(vec![content; 50])]).unwrap()
}

fn first_bytes(log: &Log) -> Vec<u8> {
    sealed(log).iter().map(|block| block[0]).collect()
}

#[test]
fn what_was_appended_is_seen_once_it_is_durable_and_one_sync_is_enough_for_all_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let log = create(directory.path());
    let ends = [1, 2, 3].map(|content| leave_unsynced(&log, content));
    assert_eq!(first_bytes(&log), [0; 0]);
    log.sync(ends[1], || ()).unwrap();
    assert_eq!(first_bytes(&log), [1, 2, 3], "a sync covers all that was written before it");
    for end in ends {
        log.sync(end, || ()).unwrap();
    }
    assert_eq!(log.syncs(), 1);
    let last = leave_unsynced(&log, 4);
    assert_eq!(first_bytes(&log), [1, 2, 3]);
    log.sync(last, || ()).unwrap();
    assert_eq!((first_bytes(&log), log.syncs()), (vec![1, 2, 3, 4], 2));
}

#[test]
fn what_nobody_will_sync_is_there_for_the_next_read() {
    let directory = tempfile::tempdir().unwrap();
    let log = create(directory.path());
    let [first, second] = [1, 2].map(|content| leave_unsynced(&log, content));
    log.leave(first);
    assert_eq!(first_bytes(&log), [1, 2]);
    // A caller that waits for the second block finds that the read has synced it.
    log.sync(second, || ()).unwrap();
    assert_eq!(log.syncs(), 1);
    log.leave(leave_unsynced(&log, 3));
    append(&log, &[4; 50]);
    assert_eq!(first_bytes(&log), [1, 2, 3, 4]);
}

#[test]
fn a_failed_sync_is_everybodys_who_waits_for_what_was_appended_before() {
    let directory = tempfile::tempdir().unwrap();
    let log = create(directory.path());
    let ends = [1, 2].map(|content| leave_unsynced(&log, content));
    log.shared.note_failure();
    for end in ends {
        let failed = log.sync(end, || ());
        assert!(matches!(failed, Err(Error::Poisoned)), "{failed:?}");
    }
    assert_eq!(first_bytes(&log), [0; 0], "nothing in doubt is shown");
}

#[test]
fn another_file_begins_behind_blocks_that_nobody_has_synced() {
    let directory = tempfile::tempdir().unwrap();
    let log = create(directory.path());
    let end = leave_unsynced(&log, 1);
    log.restart(1).unwrap();
    let next = leave_unsynced(&log, 2);
    assert!(log.live() >= end);
    for end in [end, next] {
        log.sync(end, || ()).unwrap();
    }
    drop(log);
    assert_eq!(first_bytes(&open(directory.path()).unwrap()), [1, 2]);
}
