//! The end of a log as its writer knows it, and the reserved space behind the end.

use std::sync::Arc;

use super::file::LogFile;
use super::tail::Tail;

/// Bytes to reserve at a time: as many as the file has, within these bounds.
const RESERVE_BYTES: std::ops::RangeInclusive<u64> = 16 << 10..=1 << 20;
/// Bytes that are always left over. Compaction gives them back. So a store does not grow by the
/// pages that LMDB takes for its first manifests. Nor does it grow by the disk blocks that its
/// first files leave partly empty: a checkpoint, rows of today, and rows of earlier days.
const SPARE_BYTES: u64 = 24 << 10;
/// Files grow by whole pages.
const PAGE_BYTES: u64 = 4_096;

/// State of the log when this process last wrote or read it.
#[derive(Default)]
pub(super) struct LogWriter {
    pub(super) file: Option<Arc<LogFile>>,
    pub(super) tail: Tail,
    /// Position up to which the file has space on disk.
    pub(super) space_end: u64,
}

impl LogWriter {
    /// Returns the bytes to reserve behind a frame that ends at `tail`. Example: a small frame that
    /// ends at 100 KiB reserves 24 KiB to spare and 100 KiB more, 124 KiB in all.
    pub(super) fn space_after(&self, file: &LogFile, tail: &Tail) -> usize {
        if tail.end + SPARE_BYTES <= self.space_end {
            return 0;
        }
        let used = file.offset(tail.end);
        let reserve = used.clamp(*RESERVE_BYTES.start(), *RESERVE_BYTES.end());
        // A large frame needs no further space, because it takes space for itself.
        let is_large = tail.end - self.tail.end > reserve;
        let wanted = used + SPARE_BYTES + if is_large { 0 } else { reserve };
        usize::try_from(wanted.next_multiple_of(PAGE_BYTES) - used).unwrap_or(0)
    }

    pub(super) fn enter(&mut self, file: &Arc<LogFile>) {
        self.tail = file.start;
        self.space_end = file.start.end;
        self.file = Some(Arc::clone(file));
    }
}
