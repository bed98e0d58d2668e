//! The promises of a store, kept by an LMDB environment and files of segments.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use heed::types::Bytes;
use heed::{PutFlags, RwTxn};

use super::environment::Environment;
use super::errors::TxnResult;
use super::records;
use super::tables::{Tables, copy_after};
use crate::model::error::{Error, Result};
use crate::storage::store::group_commit::GroupCommit;
use crate::storage::store::interface::{
    CompactionLock, Link, NewSegment, SegmentId, SegmentsLock, Store,
};
use crate::storage::store::log::{Counts, LogEntry, NewBlock, View};
use crate::storage::store::names::{FirstIds, NamesPage, NewNames};
use crate::storage::store::segment_files::SegmentFiles;
use crate::storage::store::snapshot::Snapshot;

/// A store in `DIRECTORY/plane.mdb`. Several processes may have it open at once, each once.
pub struct LmdbStore {
    pub(super) env: Environment,
    pub(super) tables: Tables,
    pub(super) segments: SegmentFiles,
    group: GroupCommit<Vec<NewBlock>>,
    poisoned: AtomicBool,
}

const TABLE_COUNT: u32 = 5;
/// LMDB's two head pages, of the smallest page there is.
const FILE_BYTES_MIN: u64 = 2 * 4_096;

impl LmdbStore {
    /// Makes an empty store in `directory`, which must exist.
    ///
    /// # Errors
    /// [`Error::Exists`] where there is one, and the errors of [`Self::open`].
    pub fn create(directory: &Path) -> Result<Self> {
        let path = plane_path(directory);
        if path.exists() {
            return Err(Error::Exists(path));
        }
        let env = Environment::open(&path, TABLE_COUNT)?;
        let tables = env.create_tables(|open, txn| {
            let meta = open.create_database::<Bytes, Bytes>(txn, Some("meta"))?;
            let mut sequenced = |name| open.create_database(txn, Some(name));
            Ok((meta, (sequenced("names")?, sequenced("log")?)))
        })?;
        let (meta, (names, log)) = tables;
        Self::with_tables(directory, env, Tables { meta, names, log, version_1: [None, None] })
    }

    /// Opens the store in `directory`.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Corrupt`] for a file that is no store of this format,
    /// [`Error::Database`] where this process has it open already, [`Error::Io`].
    pub fn open(directory: &Path) -> Result<Self> {
        let path = plane_path(directory);
        let length = match path.metadata() {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::Missing(path));
            }
            Err(error) => return Err(Error::io("read", &path, error)),
        };
        // LMDB would make a new environment out of an empty file, and that of a tenant who has
        // lost everything would look like one who never wrote.
        let corrupt = Error::Corrupt { what: "the store's database" };
        if length < FILE_BYTES_MIN {
            return Err(corrupt);
        }
        let env = Environment::open(&path, TABLE_COUNT)?;
        if env.is_new() {
            return Err(corrupt);
        }
        let tables = env.open_tables(|open, txn| {
            let meta = open.open_database::<Bytes, Bytes>(txn, Some("meta"))?;
            let sequenced = |name| open.open_database(txn, Some(name));
            let version_1 = |name| open.open_database::<Bytes, Bytes>(txn, Some(name));
            let sequenced = (sequenced("names")?, sequenced("log")?);
            Ok(((meta, sequenced), [version_1("series")?, version_1("fields")?]))
        })?;
        let ((Some(meta), (Some(names), Some(log))), version_1) = tables else {
            return Err(corrupt);
        };
        Self::with_tables(directory, env, Tables { meta, names, log, version_1 })
    }

    fn with_tables(directory: &Path, env: Environment, tables: Tables) -> Result<Self> {
        let store = Self {
            env,
            tables,
            segments: SegmentFiles::of(directory),
            group: GroupCommit::new(),
            poisoned: AtomicBool::new(false),
        };
        // Refuses a file of another format before anything of it is used.
        store.env.read("open the store", |txn| store.tables.head(txn))?;
        Ok(store)
    }

    /// Bytes of a segment.
    ///
    /// # Errors
    /// [`Error::Stale`] where it is gone, [`Error::Io`].
    pub fn segment_bytes(&self, id: &SegmentId) -> Result<u64> {
        self.segments.bytes(id)
    }

    pub(super) fn write<R>(
        &self,
        what: &'static str,
        work: impl Fn(&mut RwTxn<'_>) -> TxnResult<R>,
    ) -> Result<R> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(Error::Poisoned);
        }
        let result = self.env.write(what, work);
        if matches!(result, Err(Error::Io { .. } | Error::Database { .. })) {
            // The pages of a failed sync may be lost although the kernel calls them clean; only
            // a new look at the file can tell, so nothing more is acknowledged from here.
            self.poisoned.store(true, Ordering::Release);
        }
        result
    }

    fn commit(&self, group: &[Vec<NewBlock>]) -> Result<()> {
        self.write("append to the log", |txn| {
            let mut head = self.tables.head(txn)?;
            for block in group.iter().flatten() {
                let log_bytes = block.sealed.len() as u64;
                head.counts.add(&Counts { log_bytes, ..block.counts });
                if !block.sealed.is_empty() {
                    head.log_last += 1;
                    let key = head.log_last;
                    self.tables.log.put_with_flags(txn, PutFlags::APPEND, &key, &block.sealed)?;
                }
            }
            let moved = group.iter().flatten().filter_map(|block| block.cursor.as_ref());
            self.tables.put_cursors(txn, moved)?;
            self.tables.put_head(txn, head)
        })
    }
}

impl Store for LmdbStore {
    fn append_names(&self, after: u64, names: &NewNames) -> Result<Option<FirstIds>> {
        self.write("append names", |txn| {
            let last = self.tables.names.last(txn)?.map_or(0, |(key, _)| key);
            if last != after {
                return Ok(None);
            }
            let mut head = self.tables.head(txn)?;
            let first = self.tables.next_ids(txn, &head)?;
            head.next_ids = Some(first.after(names)?);
            let page = records::encode_names(&NamesPage::new(last + 1, first, names));
            self.tables.names.put_with_flags(txn, PutFlags::APPEND, &(last + 1), &page)?;
            self.tables.put_head(txn, head)?;
            Ok(Some(first))
        })
    }

    fn names_after(&self, after: u64) -> Result<Vec<NamesPage>> {
        let pages = self.env.read("read names", |txn| copy_after(self.tables.names, txn, after))?;
        pages.into_iter().map(|(sequence, bytes)| records::decode_names(sequence, &bytes)).collect()
    }

    fn append(&self, blocks: Vec<NewBlock>) -> Result<()> {
        self.group.submit(blocks, |group| self.commit(group))
    }

    fn view(&self, after: u64, generation: u64) -> Result<View> {
        self.env.read("read the log", |txn| {
            let head = self.tables.head(txn)?;
            let mut manifest = None;
            if head.generation != generation && head.generation > 0 {
                let stored = self.tables.meta.get(txn, records::MANIFEST)?;
                manifest = stored.map(records::decode_manifest).transpose()?;
                if manifest.is_none() {
                    return Err(Error::Corrupt { what: "the manifest" }.into());
                }
            }
            let entries = copy_after(self.tables.log, txn, after.max(head.compacted))?;
            Ok(View {
                generation: head.generation,
                manifest,
                compacted: head.compacted,
                retention_seconds: head.retention_seconds,
                entries: log_entries(entries),
            })
        })
    }

    fn log_after(&self, after: u64) -> Result<Vec<LogEntry>> {
        self.env.read("read the log", |txn| {
            let compacted = self.tables.head(txn)?.compacted;
            Ok(log_entries(copy_after(self.tables.log, txn, after.max(compacted))?))
        })
    }

    fn log_get(&self, sequences: &[u64]) -> Result<Vec<LogEntry>> {
        self.env.read("read the log", |txn| {
            let get = |&sequence: &u64| {
                let Some(sealed) = self.tables.log.get(txn, &sequence)? else {
                    let was_compacted = sequence <= self.tables.head(txn)?.compacted;
                    let lost = Error::Corrupt { what: "the log" };
                    return Err(if was_compacted { Error::Stale } else { lost }.into());
                };
                Ok(LogEntry { sequence, sealed: sealed.to_vec() })
            };
            sequences.iter().map(get).collect()
        })
    }

    fn head(&self) -> Result<u64> {
        Ok(self.env.read("read the head", |txn| self.tables.head(txn))?.log_last)
    }

    fn cursor(&self, key: &[u8; 16]) -> Result<Option<Vec<u8>>> {
        let cursors = self.env.read("read the cursors", |txn| self.tables.cursors(txn))?;
        Ok(cursors.get(key).map(<[u8]>::to_vec))
    }

    fn counts(&self) -> Result<Counts> {
        Ok(self.env.read("read the head", |txn| self.tables.head(txn))?.counts)
    }

    fn lock_compaction(&self) -> Result<Option<Box<dyn CompactionLock>>> {
        self.segments.lock()
    }

    fn create_segment(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>> {
        self.check_open()?;
        self.segments.create(id)
    }

    fn read_segment(&self, id: &SegmentId, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.check_open()?;
        self.segments.read(id, offset, length)
    }

    fn segments(&self) -> Result<Vec<SegmentId>> {
        Ok(self.segments.list()?.into_iter().map(|(id, _)| id).collect())
    }

    fn pin_segments(&self) -> Result<Box<dyn SegmentsLock>> {
        self.check_open()?;
        self.segments.pin()
    }

    fn lock_removal(&self) -> Result<Option<Box<dyn SegmentsLock>>> {
        self.segments.lock_removal()
    }

    fn remove_segment(&self, id: &SegmentId) -> Result<()> {
        self.segments.remove(id)
    }

    fn replace_manifest(&self, generation: u64, manifest: &[u8], compacted: u64) -> Result<bool> {
        let stored = records::encode_manifest(manifest);
        self.write("replace the manifest", |txn| {
            let mut head = self.tables.head(txn)?;
            if head.generation != generation {
                return Ok(false);
            }
            let gone = ..=compacted;
            for item in self.tables.log.range(txn, &gone)? {
                head.counts.log_bytes = head.counts.log_bytes.saturating_sub(item?.1.len() as u64);
            }
            self.tables.log.delete_range(txn, &gone)?;
            head.compacted = head.compacted.max(compacted.min(head.log_last));
            head.generation += 1;
            self.tables.meta.put(txn, records::MANIFEST, &stored)?;
            self.tables.put_head(txn, head)?;
            Ok(true)
        })
    }

    fn set_retention(&self, seconds: u64) -> Result<()> {
        self.write("set the retention", |txn| {
            let head = records::Head { retention_seconds: seconds, ..self.tables.head(txn)? };
            self.tables.put_head(txn, head)
        })
    }

    fn snapshot(&self) -> Result<Snapshot> {
        self.saved_snapshot()
    }

    fn segment_file(&self, id: &SegmentId) -> Option<PathBuf> {
        Some(self.segments.path(id))
    }

    fn link_segment(&self, id: &SegmentId, file: &Path, link: Link) -> Result<bool> {
        self.segments.link(id, file, link)
    }

    fn load_names(&self, pages: &[NamesPage]) -> Result<()> {
        self.put_names(pages)
    }

    fn load_log(&self, entries: &[LogEntry]) -> Result<()> {
        self.put_log(entries)
    }

    fn load_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        self.put_snapshot(snapshot)
    }

    fn close(&self) {
        self.env.close();
    }

    fn check_open(&self) -> Result<()> {
        self.env.check_open()
    }

    fn stored_bytes(&self) -> Result<u64> {
        let segments: u64 = self.segments.list()?.iter().map(|(_, bytes)| bytes).sum();
        Ok(self.env.file_bytes()? + segments)
    }
}

pub(super) fn plane_path(directory: &Path) -> PathBuf {
    directory.join("plane.mdb")
}

fn log_entries(copied: Vec<(u64, Vec<u8>)>) -> Vec<LogEntry> {
    copied.into_iter().map(|(sequence, sealed)| LogEntry { sequence, sealed }).collect()
}
