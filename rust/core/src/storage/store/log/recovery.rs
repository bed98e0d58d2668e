//! Recovery: reads the log to find its end, and makes the end durable.

use std::sync::Arc;

use super::file::{self, CORRUPT, LogFile};
use super::files::LogFiles;
use super::frame::{self, ALIGNMENT, FrameHead};
use super::tail::Tail;
use crate::model::error::Result;

/// Bytes that are copied or cleared at a time. Bounds memory.
const PIECE_BYTES: usize = 1 << 20;

/// The end of a log.
pub(super) struct LogEnd {
    pub(super) tail: Tail,
    /// Position of the last frame, or of the live file if it has no frame.
    pub(super) last: u64,
    pub(super) live: u64,
    /// Position up to which the log was certainly durable before recovery read it.
    safe: u64,
}

/// Parts of a log that are now stored elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompactedLog {
    /// Blocks up to this sequence are stored elsewhere.
    pub(crate) compacted: u64,
    /// Cursors of frames before this position are stored elsewhere.
    pub(crate) cursors: u64,
}

impl CompactedLog {
    /// Returns true if no frame before `file` is needed.
    pub(super) fn has_all_before(self, file: &LogFile) -> bool {
        self.has_all_until(&Tail { end: file.base, ..file.start })
    }

    /// Returns true if no frame before the end of `tail` is needed.
    pub(super) fn has_all_until(self, tail: &Tail) -> bool {
        tail.sequence <= self.compacted && tail.end <= self.cursors
    }
}

/// Finds the end of a log without writers, and makes it durable. The log is known to have been
/// durable up to `witnessed`.
///
/// # Errors
/// Returns [`crate::model::error::Error::Corrupt`] if durable bytes are missing, and the errors of
/// the machine.
pub(super) fn recover(
    files: &LogFiles,
    taken: CompactedLog,
    witnessed: Option<u64>,
) -> Result<LogEnd> {
    file::remove_new(&files.directory)?;
    let mut unneeded = Vec::new();
    let end = find_end(files, taken, witnessed, |base| unneeded.push(base))?;
    let live = files.get(end.live)?;
    make_durable(&live, &end)?;
    // A failed rotation may have left a file whose name is not durable. No file before it may be
    // removed until the name is.
    if witnessed != Some(end.tail.end) || !unneeded.is_empty() {
        file::sync_directory(&files.directory)?;
    }
    unneeded.into_iter().try_for_each(|base| file::remove(&files.directory, base))?;
    Ok(end)
}

/// Reads all of a log that is needed, up to `synced`.
///
/// # Errors
/// Returns [`crate::model::error::Error::Corrupt`] if the log is damaged, and the errors of the
/// machine.
pub(super) fn verify(files: &LogFiles, taken: CompactedLog, synced: u64) -> Result<Tail> {
    let (end, _) = read(files, taken, synced, |_| ())?;
    if end.tail.end < synced { Err(CORRUPT) } else { Ok(end.tail) }
}

/// Finds the end as [`recover`] does, but changes no file. Calls `drop_file` with the files that
/// are not needed.
fn find_end(
    files: &LogFiles,
    taken: CompactedLog,
    witnessed: Option<u64>,
    drop_file: impl FnMut(u64),
) -> Result<LogEnd> {
    let (mut end, file) = read(files, taken, u64::MAX, drop_file)?;
    let later = synced_later(&file, end.tail.end)?;
    end.safe = end.safe.max(witnessed.unwrap_or(0)).max(later);
    // Compacted blocks were durable, so the log must reach the last of them.
    let is_short = end.safe > end.tail.end || end.tail.sequence < taken.compacted;
    if is_short { Err(CORRUPT) } else { Ok(end) }
}

/// Reads frames up to position `until`, or up to the last frame. Also returns the last file.
fn read(
    files: &LogFiles,
    taken: CompactedLog,
    until: u64,
    mut drop_file: impl FnMut(u64),
) -> Result<(LogEnd, Arc<LogFile>)> {
    let mut bases = files.bases()?;
    while let [first, second, ..] = *bases {
        if !taken.has_all_before(files.get(second)?.as_ref()) {
            break;
        }
        drop_file(first);
        bases.remove(0);
    }
    let first = files.get(*bases.first().ok_or(CORRUPT)?)?;
    if first.start.sequence > taken.compacted {
        return Err(CORRUPT);
    }
    let mut end =
        LogEnd { tail: first.start, last: first.base, live: first.base, safe: first.start.end };
    let mut file = first;
    let mut nexts = bases[1..].iter();
    loop {
        let next = nexts.next().map(|base| files.get(*base)).transpose()?;
        end.read_file(&file, next.as_deref(), until)?;
        let Some(next) = next.filter(|next| next.base < until) else { break };
        end.enter(&next);
        file = next;
    }
    Ok((end, file))
}

/// Finds the end of the live file, and makes it durable. The files before it are durable.
///
/// # Errors
/// Returns the errors of [`recover`].
pub(super) fn heal(files: &LogFiles, live: u64, synced: u64) -> Result<LogEnd> {
    let file = files.get(live)?;
    let mut end = LogEnd { tail: file.start, last: live, live, safe: synced };
    end.read_file(&file, None, u64::MAX)?;
    if end.tail.end < synced {
        return Err(CORRUPT);
    }
    end.safe = synced;
    make_durable(&file, &end)?;
    Ok(end)
}

impl LogEnd {
    fn enter(&mut self, file: &LogFile) {
        self.tail = file.start;
        (self.last, self.live) = (file.base, file.base);
        // A rotation syncs the old file before the new file has a name.
        self.safe = self.safe.max(file.start.end);
    }

    /// Reads the frames of `file` behind the known end, up to the beginning of `next`.
    fn read_file(&mut self, file: &LogFile, next: Option<&LogFile>, until: u64) -> Result<()> {
        while self.tail.end < until && next.is_none_or(|next| next.base > self.tail.end) {
            match frame::read(file, &self.tail, true)? {
                Some(frame) => {
                    self.safe = self.safe.max(frame.synced);
                    (self.tail, self.last) = (frame.tail, frame.start);
                }
                None if next.is_some() => return Err(CORRUPT),
                None => break,
            }
        }
        let Some(next) = next.filter(|next| next.base < until) else { return Ok(()) };
        let Tail { end, sequence, counts, chain } = self.tail;
        let begins = Tail { end: next.base, ..next.start };
        let follows = begins == (Tail { end, sequence, counts, chain });
        if follows { Ok(()) } else { Err(CORRUPT) }
    }
}

/// Returns the greatest position that heads behind `end` say was durable when they were written.
/// Heads behind `end` belong to no readable frame. So if the position is greater than `end`, a
/// durable frame before them was damaged.
fn synced_later(file: &LogFile, end: u64) -> Result<u64> {
    let (mut synced, mut at) = (0, end);
    loop {
        // A head that crosses the end of a piece is read with the piece that it begins in.
        let bytes = file.read_up_to(at, PIECE_BYTES + frame::HEAD_BYTES)?;
        for offset in (0..bytes.len().min(PIECE_BYTES)).step_by(ALIGNMENT) {
            if let Some(head) = FrameHead::decode(file.log, at + offset as u64, &bytes[offset..]) {
                synced = synced.max(head.synced);
            }
        }
        if bytes.len() <= PIECE_BYTES {
            return Ok(synced);
        }
        at += PIECE_BYTES as u64;
    }
}

/// Writes again the frames that may not be durable, because a failed sync leaves pages that no
/// later sync writes. Clears the bytes behind the end, so that they never pass for a frame.
fn make_durable(file: &LogFile, end: &LogEnd) -> Result<()> {
    let mut is_changed = end.safe < end.tail.end;
    let mut at = end.safe;
    while at < end.tail.end {
        let left = usize::try_from(end.tail.end - at).unwrap_or(PIECE_BYTES);
        let bytes = file.read_up_to(at, left.min(PIECE_BYTES))?;
        file.write(at, &bytes, bytes.len())?;
        at += bytes.len() as u64;
    }
    loop {
        let bytes = file.read_up_to(at, PIECE_BYTES)?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            file.write(at, &vec![0; last + 1], last + 1)?;
            is_changed = true;
        }
        if bytes.len() < PIECE_BYTES {
            break;
        }
        at += bytes.len() as u64;
    }
    if is_changed { file.sync() } else { Ok(()) }
}
