//! Reads a store for a backup, and loads a store for a restore.

use heed::PutFlags;

use super::records::{self, HeadRecord};
use super::store::LmdbStore;
use crate::model::error::{Error, Result};
use crate::storage::store::cursor::Cursors;
use crate::storage::store::entries::{LogEntry, NewBlock};
use crate::storage::store::names::NamesPage;
use crate::storage::store::snapshot::StoreSnapshot;

impl LmdbStore {
    pub(super) fn saved_snapshot(&self) -> Result<StoreSnapshot> {
        // Names of a block are stored before the block. So the tables have the names of all blocks
        // seen here.
        self.log.follow()?;
        let (log_last, counts, moved) = self.log.seen_with_cursors();
        self.env.read("read the head", |txn| {
            let head = self.tables.head(txn)?;
            let stored = self.tables.meta.get(txn, records::MANIFEST)?;
            let manifest = stored.map(records::decode_manifest).transpose()?;
            if manifest.is_none() && head.generation > 0 {
                return Err(Error::Corrupt { what: "the manifest" }.into());
            }
            let mut cursors = self.tables.cursors(txn)?;
            let moved = moved.iter().filter(|(position, _)| *position >= head.cursors_at);
            moved.for_each(|(_, cursor)| cursors.set(cursor));
            Ok(StoreSnapshot {
                log_last,
                names_last: self.tables.pages(txn)?,
                counts: head.counts_of(counts),
                compacted: head.compacted,
                generation: head.generation,
                retention_seconds: head.retention_seconds,
                next_ids: head.next_ids,
                cursors: cursors.encode(),
                manifest,
            })
        })
    }

    pub(super) fn put_names(&self, pages: &[NamesPage]) -> Result<()> {
        self.write("load names", |txn| {
            for page in pages {
                let stored = records::encode_names(page);
                self.tables.names.put_with_flags(txn, PutFlags::APPEND, &page.sequence, &stored)?;
            }
            Ok(())
        })
    }

    pub(super) fn put_log(&self, entries: &[LogEntry]) -> Result<()> {
        let Some(first) = entries.first() else { return Ok(()) };
        self.begin_log_behind(first.sequence - 1)?;
        let blocks = entries
            .iter()
            .map(|entry| NewBlock { sealed: entry.sealed.clone(), ..NewBlock::default() });
        self.log.append(blocks.collect())
    }

    /// Makes the log continue behind `sequence`.
    fn begin_log_behind(&self, sequence: u64) -> Result<()> {
        self.log.follow()?;
        if self.log.seen().1 == sequence { Ok(()) } else { self.log.restart(sequence) }
    }

    pub(super) fn put_snapshot(&self, snapshot: &StoreSnapshot) -> Result<()> {
        self.segments.sync()?;
        self.begin_log_behind(snapshot.log_last)?;
        let counts = NewBlock { counts: snapshot.counts, ..NewBlock::default() };
        self.log.append(vec![counts])?;
        self.write("load the head", |txn| {
            let head = HeadRecord {
                compacted: snapshot.compacted,
                cursors_at: self.log.live(),
                generation: snapshot.generation,
                retention_seconds: snapshot.retention_seconds,
                next_ids: snapshot.next_ids,
                log: self.tables.head(txn)?.log,
                compacted_bytes: 0,
            };
            if let Some(sealed) = &snapshot.manifest {
                let stored = records::encode_manifest(sealed);
                self.tables.meta.put(txn, records::MANIFEST, &stored)?;
            }
            if !snapshot.cursors.is_empty() {
                let cursors = Cursors::decode(&snapshot.cursors)?;
                let stored = records::encode_cursors(&cursors);
                self.tables.meta.put(txn, records::CURSORS, &stored)?;
            }
            self.tables.put_head(txn, head)
        })
    }
}
