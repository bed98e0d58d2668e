//! The log alone: its bytes, the effects of damage and crashes, and two handles at work.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::{self, DIRECTORY, LogFile};
use super::frame;
use super::index::LogIndex;
use super::shared::LOCK_FILE;
use super::writer::LogWriter;
use super::{CompactedLog, Log, OpenPermit};
use crate::model::error::{Error, Result};
use crate::storage::store::byte_locks::ByteLocks;
use crate::storage::store::entries::{LogEntry, NewBlock, StoreCounts};

mod crashes;
mod damage;
mod handles;
mod pending;

const LOG: u64 = 0x0123_4567_89ab_cdef;

fn block(sealed: Vec<u8>) -> NewBlock {
    let counts = StoreCounts { rows: 3, values: 5, rejected: 1, batches: 1, log_bytes: 0 };
    NewBlock { sealed, counts, cursor: None }
}

/// Makes a new log in `plane`.
fn create(plane: &Path) -> Log {
    let opening = OpenPermit::begin(plane).unwrap();
    assert!(opening.is_alone);
    opening.create(LOG).unwrap();
    drop(opening);
    open(plane).unwrap()
}

fn open(plane: &Path) -> Result<Log> {
    open_taken(plane, CompactedLog::default())
}

fn open_taken(plane: &Path, taken: CompactedLog) -> Result<Log> {
    let mut options = File::options();
    let locks = options.create(true).truncate(false).read(true).write(true);
    let locks = locks.open(plane.join("marks")).unwrap();
    OpenPermit::begin(plane)?.finish(LOG, taken, &Arc::new(ByteLocks::on(locks)))
}

fn append(log: &Log, sealed: &[u8]) {
    log.append(vec![block(sealed.to_vec())]).unwrap();
}

/// Returns everything that reads see.
fn read(log: &Log) -> Result<Vec<LogEntry>> {
    log.follow()?;
    let mut found: Vec<LogEntry> = Vec::new();
    loop {
        let after = found.last().map_or(0, |entry| entry.sequence);
        let next = log.between(after, u64::MAX)?.ok_or(Error::Stale)?;
        if next.is_empty() {
            return Ok(found);
        }
        found.extend(next);
    }
}

fn sealed(log: &Log) -> Vec<Vec<u8>> {
    read(log).unwrap().into_iter().map(|entry| entry.sealed).collect()
}

fn newest_file(plane: &Path) -> PathBuf {
    let directory = plane.join(DIRECTORY);
    let (base, _) = file::list(&directory).unwrap().pop().unwrap();
    file::path_of(&directory, base)
}

#[test]
fn the_bytes_are_those_of_the_format_text() {
    let directory = tempfile::tempdir().unwrap();
    let log = create(directory.path());
    let cursor = super::super::cursor::Cursor { key: [9; 16], position: b"at".to_vec() };
    let first = NewBlock { cursor: Some(cursor), ..block(b"sealed".to_vec()) };
    log.append(vec![first, block(Vec::new())]).unwrap();
    let bytes = std::fs::read(newest_file(directory.path())).unwrap();

    let long = |number: u64| number.to_le_bytes().to_vec();
    let short = |number: u32| number.to_le_bytes().to_vec();
    let with_sum = |bytes: Vec<u8>| {
        let sum = crc32fast::hash(&bytes);
        [bytes, short(sum)].concat()
    };
    let mut head = [b"fleetlgf".to_vec(), short(1), short(0), long(LOG), vec![0; 56]].concat();
    head.resize(508, 0);
    assert_eq!(bytes[..512], with_sum(head));

    let cursors = [&[9; 16], [2].as_slice(), b"at"].concat();
    let body = [short(6), cursors, b"sealed".to_vec(), vec![0; 3]].concat();
    let numbers: Vec<_> = [512, 32, 1, 6, 10, 2, 2, 6, 512].into_iter().flat_map(long).collect();
    let body_sum = short(crc32fast::hash(&body));
    let head = [b"flfr".to_vec(), short(1), numbers, short(19), short(0), body_sum].concat();
    let sum = crc32fast::hash(&[long(LOG), head.clone()].concat());
    assert_eq!(bytes[512..640], [head, short(sum), body].concat());
    assert_eq!(bytes.len() % 4_096, 0);
    assert!(bytes[640..].iter().all(|byte| *byte == 0));
}
