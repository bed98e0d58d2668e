//! Continues the log in another file, and removes files that are no longer needed.

use std::sync::{Arc, PoisonError};

use super::file::{self, LogFile};
use super::handle::Log;
use super::recovery::CompactedLog;
use super::shared::ends;
use super::tail::Tail;
use super::writer::LogWriter;
use crate::model::error::{Error, Result};

/// If the live file has so many compacted bytes, the log continues in another file, even if the
/// live file has blocks that are needed. Once these are compacted as well, the file can be removed.
const COMPACTED_BYTES_MAX: u64 = 64 << 10;

impl Log {
    /// Continues the log in another file. The caller has the right to append.
    ///
    /// # Errors
    /// Returns [`Error::DiskFull`] if the log is unchanged, and [`Error::Io`].
    pub(super) fn rotate(&self, writer: &mut LogWriter) -> Result<Arc<LogFile>> {
        // Only the last file may have frames that are not durable.
        let syncing = self.shared.lock_syncing()?;
        if self.shared.synced() < self.shared.written() {
            if self.shared.is_sync_cut_off() {
                self.write_end_again()?;
            } else {
                self.sync_written()?;
            }
        }
        drop(syncing);
        self.begin_file(writer, &writer.tail.clone())
    }

    fn begin_file(&self, writer: &mut LogWriter, tail: &Tail) -> Result<Arc<LogFile>> {
        let begin = || self.shared.set_rotating(true);
        let created = LogFile::create(&self.files.directory, self.id(), tail, begin);
        let file = created.inspect_err(|error| {
            if !matches!(error, Error::DiskFull) {
                self.poisoned();
            }
        })?;
        let file = self.files.add(file);
        self.shared.publish_ends(ends(file.base, file.base, &file.start));
        self.shared.set_rotating(false);
        writer.enter(&file);
        Ok(file)
    }

    /// Completes a rotation whose process died or failed. If the new file has its name, it becomes
    /// the live file. The caller has the right to append.
    pub(super) fn settle_rotation(&self) -> Result<()> {
        if !self.shared.is_rotating() {
            return Ok(());
        }
        let newest = self.files.bases()?.last().copied().ok_or(file::CORRUPT)?;
        let file = self.files.get(newest)?;
        if file.start.end > self.shared.written() {
            file::sync_directory(&self.files.directory)?;
            self.shared.publish_ends(ends(newest, newest, &file.start));
        }
        self.shared.set_rotating(false);
        Ok(())
    }

    /// Frees the space of blocks and cursors that are stored elsewhere. If it fails, the next
    /// compaction tries again.
    ///
    /// # Errors
    /// Returns the errors of the machine.
    pub(in crate::storage::store) fn trim(&self, taken: CompactedLog) -> Result<()> {
        let live = self.live_file()?;
        let compacted = self.index().bytes_ever(taken.compacted);
        let here = compacted.unwrap_or(0).saturating_sub(live.start.counts.log_bytes);
        if here > 0 {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let _appending = self.shared.lock_appending()?;
            self.check_sound()?;
            self.settle(&mut writer)?;
            if here >= COMPACTED_BYTES_MAX || taken.has_all_until(&writer.tail) {
                self.rotate(&mut writer)?;
            }
        }
        let bases = self.files.bases()?;
        for pair in bases.windows(2) {
            if !taken.has_all_before(self.files.get(pair[1])?.as_ref()) {
                break;
            }
            file::remove(&self.files.directory, pair[0])?;
        }
        Ok(())
    }

    /// Continues behind block `sequence` in another file, in a store that is being loaded.
    ///
    /// # Errors
    /// Returns the errors of the machine.
    pub(in crate::storage::store) fn restart(&self, sequence: u64) -> Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let _appending = self.shared.lock_appending()?;
        self.check_sound()?;
        self.settle(&mut writer)?;
        let tail = Tail { sequence, ..writer.tail };
        self.begin_file(&mut writer, &tail).map(drop)
    }

    /// Returns the position of the first byte of the live file.
    pub(in crate::storage::store) fn live(&self) -> u64 {
        self.shared.live()
    }
}
