//! Reads the log and the tables together, while compaction may take blocks from the log.

use super::records;
use super::store::LmdbStore;
use crate::model::error::{Error, Result};
use crate::storage::store::entries::{LogEntry, LogView};

/// Most attempts at a read of tables and log while compaction takes blocks from the log.
const LOOKS_MAX: u32 = 64;

impl LmdbStore {
    /// Returns the manifest, the positions and the blocks that a reader at `after` and `generation`
    /// has not seen.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the store is damaged, [`Error::Stale`] if compaction takes
    /// blocks during each attempt, and the errors of the machine.
    pub(super) fn read_view(&self, after: u64, generation: u64) -> Result<LogView> {
        for _ in 0..LOOKS_MAX {
            self.env.check_usable()?;
            let last = self.log.follow()?;
            let (head, manifest, pages) = self.env.read("read the log", |txn| {
                let head = self.tables.head(txn)?;
                let mut manifest = None;
                if head.generation != generation && head.generation > 0 {
                    let stored = self.tables.meta.get(txn, records::MANIFEST)?;
                    manifest = stored.map(records::decode_manifest).transpose()?;
                    if manifest.is_none() {
                        return Err(Error::Corrupt { what: "the manifest" }.into());
                    }
                }
                // Names of a block are stored before the block. So these pages have the names of
                // all blocks up to `last`.
                let is_news = manifest.is_some() || last > after;
                let pages = if is_news { self.tables.pages(txn)? } else { 0 };
                Ok((head, manifest, pages))
            })?;
            let mut entries = Vec::new();
            // A view without news needs no blocks.
            if last > after || manifest.is_some() {
                let Some(in_log) = self.in_log(&head, after, last)? else { continue };
                entries = in_log;
            }
            return Ok(LogView {
                generation: head.generation,
                manifest,
                compacted: head.compacted,
                retention_seconds: head.retention_seconds,
                pages,
                last,
                entries,
            });
        }
        Err(Error::Stale)
    }

    /// Returns blocks after `after`: at least one, if the log has any.
    ///
    /// # Errors
    /// Returns the errors of [`Self::read_view`].
    pub(super) fn read_after(&self, after: u64) -> Result<Vec<LogEntry>> {
        for _ in 0..LOOKS_MAX {
            self.env.check_usable()?;
            let last = self.log.follow()?;
            let head = self.env.read("read the log", |txn| self.tables.head(txn))?;
            if let Some(entries) = self.in_log(&head, after, last)? {
                return Ok(entries);
            }
        }
        Err(Error::Stale)
    }

    /// Returns the blocks at these positions, which ascend.
    ///
    /// # Errors
    /// Returns [`Error::Stale`] if a block was compacted, [`Error::Corrupt`] if a block is missing,
    /// and the errors of the machine.
    pub(super) fn read_at(&self, sequences: &[u64]) -> Result<Vec<LogEntry>> {
        let head = self.head_after_log()?;
        if sequences.iter().any(|sequence| *sequence <= head.compacted) {
            return Err(Error::Stale);
        }
        if let Some(entries) = self.log.get(sequences.iter().copied())? {
            return Ok(entries);
        }
        let compacted = self.head_after_log()?.compacted;
        let was_compacted = sequences.iter().any(|sequence| *sequence <= compacted);
        Err(if was_compacted { Error::Stale } else { Error::Corrupt { what: "the log" } })
    }

    /// Returns the head of the tables. The head is at least as new as the log that was just read.
    pub(super) fn head_after_log(&self) -> Result<records::HeadRecord> {
        self.log.follow()?;
        self.env.read("read the head", |txn| self.tables.head(txn))
    }

    /// Returns blocks after `after` up to `last` from the log. Returns `None` if compaction has
    /// taken a block since `head` was read.
    fn in_log(
        &self,
        head: &records::HeadRecord,
        after: u64,
        last: u64,
    ) -> Result<Option<Vec<LogEntry>>> {
        let entries = self.log.between(after.max(head.compacted), last)?;
        self.log.forget(head.taken());
        Ok(entries)
    }
}
