//! The end of a log as its writer knows it, and the space behind it.

use std::sync::Arc;

use super::file::LogFile;
use super::tail::Tail;

/// Space that is reserved at a time: as much as the file has, within these bounds.
const RESERVE_BYTES: std::ops::RangeInclusive<u64> = 16 << 10..=1 << 20;
/// Space that is always left: compaction gives it back, so that a store does not get larger by the
/// pages that LMDB takes for its first manifests, nor by the blocks of the disk that its first files
/// leave empty: a checkpoint, rows of today, and those of the days before.
const SPARE_BYTES: u64 = 24 << 10;
/// Files grow by whole pages.
const PAGE_BYTES: u64 = 4_096;

/// State of the log as this process last wrote or saw it.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) file: Option<Arc<LogFile>>,
    pub(super) tail: Tail,
    /// Position up to which the file has its place on disk.
    pub(super) space_end: u64,
}

impl Writer {
    /// Bytes to reserve behind a frame that ends at `tail`.
    pub(super) fn space_after(&self, file: &LogFile, tail: &Tail) -> usize {
        if tail.end + SPARE_BYTES <= self.space_end {
            return 0;
        }
        let used = file.offset(tail.end);
        let reserve = used.clamp(*RESERVE_BYTES.start(), *RESERVE_BYTES.end());
        // A large frame pays for its own space.
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
