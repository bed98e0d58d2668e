//! Remains of a process or a machine that stops between two steps.

use super::super::tail::Tail;
use super::*;

/// Writes a frame of this block behind the log at `position`, whole or in part. A writer that dies
/// before it publishes the frame leaves the same. Returns the state behind the frame.
fn leave_frame(log: &Log, tail: &Tail, sealed: &[u8], kept: usize) -> Tail {
    let groups = [vec![block(sealed.to_vec())]];
    let (bytes, after) = frame::encode(LOG, tail, log.shared.synced(), &groups);
    let file = log.files.get(log.shared.live()).unwrap();
    let kept = kept.min(bytes.len());
    file.write(tail.end, &bytes[..kept], kept).unwrap();
    after
}

fn tail_of(log: &Log) -> Tail {
    let mut writer = LogWriter::default();
    log.settle(&mut writer).unwrap();
    writer.tail
}

#[test]
fn a_frame_of_a_dead_writer_is_there_for_the_first_read_or_never() {
    for kept in [0, 1, 95, 96, 130, usize::MAX] {
        let directory = tempfile::tempdir().unwrap();
        let log = create(directory.path());
        append(&log, b"first");
        let after = leave_frame(&log, &tail_of(&log), &[7; 50], kept);
        log.shared.reserve(after.end);
        let is_whole = kept == usize::MAX;
        assert_eq!(sealed(&log).len(), 1 + usize::from(is_whole), "{kept} bytes");
        assert_eq!(log.shared.synced(), log.shared.written());
        append(&log, b"next");
        drop(log);
        let found = sealed(&open(directory.path()).unwrap());
        assert_eq!(found.len(), 2 + usize::from(is_whole), "{kept} bytes");
        assert_eq!(found.last().unwrap(), b"next");
    }
}

#[test]
fn the_next_writer_takes_in_what_a_dead_one_has_left() {
    let directory = tempfile::tempdir().unwrap();
    let log = create(directory.path());
    let after = leave_frame(&log, &tail_of(&log), b"left", usize::MAX);
    log.shared.reserve(after.end);
    append(&log, b"next");
    assert_eq!(sealed(&log), [b"left", b"next"]);
    assert_eq!(sealed(&open(directory.path()).unwrap()), [b"left", b"next"]);
}

/// A power cut left the second of two frames but not the first. Then a frame of the same length is
/// written in the place of the first. The frame behind it must not be taken for its successor.
#[test]
fn a_frame_left_behind_by_a_power_cut_never_comes_back() {
    for new in [b"again", b"other"] {
        let directory = tempfile::tempdir().unwrap();
        let log = create(directory.path());
        append(&log, b"first");
        let tail = tail_of(&log);
        let gone = frame::encode(LOG, &tail, tail.end, &[vec![block(b"again".to_vec())]]).1;
        leave_frame(&log, &gone, b"stale", usize::MAX);
        drop(log);
        // No head may say that all of this was durable.
        let log = open(directory.path()).unwrap();
        append(&log, new);
        assert_eq!(sealed(&log), [b"first", new]);
        drop(log);
        assert_eq!(sealed(&open(directory.path()).unwrap()), [b"first", new]);
    }
}

#[test]
fn a_rotation_that_was_cut_off_is_ended_by_the_next_writer() {
    for has_name in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let log = create(directory.path());
        append(&log, b"first");
        let tail = tail_of(&log);
        log.shared.set_rotating(true);
        if has_name {
            drop(LogFile::create(&directory.path().join(DIRECTORY), LOG, &tail, || ()).unwrap());
        } else {
            std::fs::write(directory.path().join(DIRECTORY).join("new"), b"torn").unwrap();
        }
        append(&log, b"next");
        assert_eq!(log.shared.live() > 0, has_name);
        assert_eq!(sealed(&log), [b"first".as_slice(), b"next"]);
        drop(log);
        assert_eq!(sealed(&open(directory.path()).unwrap()), [b"first".as_slice(), b"next"]);
    }
}

#[test]
fn after_a_failed_sync_the_handle_takes_no_more_and_the_next_one_writes_the_end_again() {
    let directory = tempfile::tempdir().unwrap();
    let log = create(directory.path());
    let other = open(directory.path()).unwrap();
    append(&log, b"first");
    let before = tail_of(&log);
    let tail = leave_frame(&log, &before, b"in doubt", usize::MAX);
    log.shared.reserve(tail.end);
    log.shared.publish_written(before.end, tail.end);
    log.shared.note_failure();
    for handle in [&log, &other] {
        assert_eq!(sealed(handle), [b"first"]);
        let refused = handle.append(vec![block(b"refused".to_vec())]);
        assert!(matches!(refused, Err(Error::Poisoned)), "{refused:?}");
    }
    let healed = open(directory.path()).unwrap();
    assert_eq!(sealed(&healed), [b"first".as_slice(), b"in doubt"]);
    append(&healed, b"next");
    assert!(other.append(vec![block(b"refused".to_vec())]).is_err());
    let expected = [b"first".as_slice(), b"in doubt", b"next"];
    assert_eq!([sealed(&healed), sealed(&other)], [expected, expected]);
}
