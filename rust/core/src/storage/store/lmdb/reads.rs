//! Reads of the log together with the tables; compaction takes blocks meanwhile.

use super::records;
use super::store::LmdbStore;
use crate::model::error::{Error, Result};
use crate::storage::store::entries::{LogEntry, View};

/// Looks at tables and log, from which compaction takes blocks meanwhile.
const LOOKS_MAX: u32 = 64;

impl LmdbStore {
    /// Manifest, positions and blocks that a reader at `after` and `generation` has not seen.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Stale`] where compaction takes the blocks at each look, those of
    /// the machine.
    pub(super) fn read_view(&self, after: u64, generation: u64) -> Result<View> {
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
                // Names of a block are stored before it, so these pages have those of all up to `last`.
                let is_news = manifest.is_some() || last > after;
                let pages = if is_news { self.tables.pages(txn)? } else { 0 };
                Ok((head, manifest, pages))
            })?;
            let mut entries = Vec::new();
            // A view without news asks the log for nothing more.
            if last > after || manifest.is_some() {
                let Some(in_log) = self.in_log(&head, after, last)? else { continue };
                entries = in_log;
            }
            return Ok(View {
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

    /// Blocks after `after`, at least one if there are any.
    ///
    /// # Errors
    /// Those of [`Self::read_view`].
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

    /// The blocks at these positions, which ascend.
    ///
    /// # Errors
    /// [`Error::Stale`] where one of them was compacted, [`Error::Corrupt`], those of the machine.
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

    /// Head of the tables, at least as new as what the log shows from then on.
    pub(super) fn head_after_log(&self) -> Result<records::Head> {
        self.log.follow()?;
        self.env.read("read the head", |txn| self.tables.head(txn))
    }

    /// Blocks after `after` up to `last` in the log; `None` where compaction has taken them since
    /// `head` was read.
    fn in_log(&self, head: &records::Head, after: u64, last: u64) -> Result<Option<Vec<LogEntry>>> {
        let entries = self.log.between(after.max(head.compacted), last)?;
        self.log.forget(head.taken());
        Ok(entries)
    }
}
