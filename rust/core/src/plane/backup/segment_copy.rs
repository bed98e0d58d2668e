//! Copies of segments into a backup and out of it.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::files::{Hash, Hasher, PIECE_BYTES, create, pieces_of};
use crate::model::error::{Error, Result};
use crate::storage::store::{NewSegment, SegmentId, Store};

/// Copies a segment into a new file, makes it durable and returns the hash of the bytes on disk.
///
/// A second thread reads and hashes each piece after it was written. Hashing takes about as long as
/// writing, and neither waits for the other.
pub(super) fn copy_segment(
    store: &dyn Store,
    (id, bytes): (SegmentId, u64),
    path: &Path,
) -> Result<Hash> {
    let failed = |error| Error::io("write", path, error);
    let file = create(path)?;
    thread::scope(|scope| {
        let (written, pieces) = channel();
        let hashing = scope.spawn(|| hash_pieces(&file, path, pieces));
        for (offset, length) in pieces_of(bytes) {
            let piece = store.read_segment(&id, offset, length)?;
            file.write_all_at(&piece, offset).map_err(failed)?;
            if written.send((offset, length)).is_err() {
                break; // The hashing thread ended with an error, which `join` returns.
            }
        }
        drop(written);
        file.sync_all().map_err(failed)?;
        hashing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn hash_pieces(file: &File, path: &Path, pieces: Receiver<(u64, usize)>) -> Result<Hash> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; PIECE_BYTES];
    for (offset, length) in pieces {
        let piece = &mut buffer[..length];
        file.read_exact_at(piece, offset).map_err(|error| Error::io("read", path, error))?;
        hasher.add(piece);
    }
    Ok(hasher.finish())
}

/// Copies a file of `bytes` bytes into a segment.
pub(super) fn load_segment(path: &Path, bytes: u64, segment: &mut dyn NewSegment) -> Result<()> {
    let failed = |error| Error::io("read", path, error);
    let mut file = File::open(path).map_err(failed)?;
    let mut buffer = vec![0; PIECE_BYTES];
    for (_, length) in pieces_of(bytes) {
        let piece = &mut buffer[..length];
        file.read_exact(piece).map_err(failed)?;
        segment.append(piece)?;
    }
    Ok(())
}
