//! A store read for a backup and loaded by a restore.

use heed::PutFlags;

use super::records::{self, Head};
use super::store::LmdbStore;
use crate::model::error::{Error, Result};
use crate::storage::store::cursor::Cursors;
use crate::storage::store::log::LogEntry;
use crate::storage::store::names::NamesPage;
use crate::storage::store::snapshot::Snapshot;

impl LmdbStore {
    pub(super) fn saved_snapshot(&self) -> Result<Snapshot> {
        self.env.read("read the head", |txn| {
            let head = self.tables.head(txn)?;
            let stored = self.tables.meta.get(txn, records::MANIFEST)?;
            let manifest = stored.map(records::decode_manifest).transpose()?;
            if manifest.is_none() && head.generation > 0 {
                return Err(Error::Corrupt { what: "the manifest" }.into());
            }
            Ok(Snapshot {
                log_last: head.log_last,
                names_last: self.tables.names.last(txn)?.map_or(0, |(key, _)| key),
                counts: head.counts,
                compacted: head.compacted,
                generation: head.generation,
                retention_seconds: head.retention_seconds,
                next_ids: self.tables.next_ids(txn, &head)?,
                cursors: self.tables.cursors(txn)?.encode(),
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
        self.write("load the log", |txn| {
            for LogEntry { sequence, sealed } in entries {
                self.tables.log.put_with_flags(txn, PutFlags::APPEND, sequence, sealed)?;
            }
            Ok(())
        })
    }

    pub(super) fn put_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        self.segments.sync()?;
        self.write("load the head", |txn| {
            let head = Head {
                log_last: snapshot.log_last,
                counts: snapshot.counts,
                compacted: snapshot.compacted,
                generation: snapshot.generation,
                retention_seconds: snapshot.retention_seconds,
                next_ids: Some(snapshot.next_ids),
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
