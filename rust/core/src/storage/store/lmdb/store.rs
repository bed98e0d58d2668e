//! The promises of a store, kept by an LMDB environment and segment files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use heed::{PutFlags, RwTxn};

use super::environment::PlaneEnvironment;
use super::errors::TxnResult;
use super::records;
use super::tables::{PlaneTables, copy_after};
use crate::model::error::{Error, Result};
use crate::storage::store::entries::{LogEntry, LogView, NewBlock, StoreCounts};
use crate::storage::store::interface::{Link, NewSegment, SegmentId, Space, Store};
use crate::storage::store::key_turns::KeyTurns;
use crate::storage::store::locks::{CompactionLock, SegmentsLock};
use crate::storage::store::log::{self, Log};
use crate::storage::store::names::{FirstIds, NamesPage, NewNames};
use crate::storage::store::segment_files::SegmentFiles;
use crate::storage::store::snapshot::StoreSnapshot;

/// A store in `DIRECTORY/plane.mdb` and `DIRECTORY/log`. Several processes may have the store open
/// at the same time, each process once.
pub struct LmdbStore {
    /// The log is dropped before the environment, whose locks it uses.
    pub(super) log: Log,
    pub(super) env: PlaneEnvironment,
    pub(super) tables: PlaneTables,
    pub(super) segments: SegmentFiles,
    directory: PathBuf,
    poisoned: AtomicBool,
}

impl LmdbStore {
    pub(super) fn new(
        log: Log,
        env: PlaneEnvironment,
        tables: PlaneTables,
        directory: &Path,
    ) -> Self {
        Self {
            log,
            env,
            tables,
            segments: SegmentFiles::of(directory),
            directory: directory.to_owned(),
            poisoned: AtomicBool::new(false),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Commits `work` on the tables. After a failed commit, this handle writes no more.
    ///
    /// # Errors
    /// Returns the errors of `work` and of the machine, and [`Error::Poisoned`] after a failed
    /// commit.
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
            // The pages of a failed sync may be lost although the kernel reports them as clean.
            // Only opening the file again can tell, so this handle acknowledges no more writes.
            self.poisoned.store(true, Ordering::Release);
        }
        result
    }
}

impl Store for LmdbStore {
    fn append_names(&self, after: u64, names: &NewNames) -> Result<Option<FirstIds>> {
        self.write("append names", |txn| {
            let last = self.tables.pages(txn)?;
            if last != after {
                return Ok(None);
            }
            let mut head = self.tables.head(txn)?;
            let first = head.next_ids;
            head.next_ids = first.after(names)?;
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

    fn append_unsynced(&self, blocks: Vec<NewBlock>) -> Result<u64> {
        self.env.check_usable()?;
        if self.poisoned.load(Ordering::Acquire) {
            return Err(Error::Poisoned);
        }
        self.log.append_unsynced(blocks)
    }

    fn sync(&self, end: u64) -> Result<()> {
        self.log.sync(end, || self.env.touch())
    }

    fn leave(&self, end: u64) {
        self.log.leave(end);
    }

    fn view(&self, after: u64, generation: u64) -> Result<LogView> {
        self.read_view(after, generation)
    }

    fn log_after(&self, after: u64) -> Result<Vec<LogEntry>> {
        self.read_after(after)
    }

    fn log_get(&self, sequences: &[u64]) -> Result<Vec<LogEntry>> {
        self.read_at(sequences)
    }

    fn head(&self) -> Result<u64> {
        self.env.check_usable()?;
        // Reads the tables as well, because a store that cannot read its tables is not healthy.
        self.head_after_log()?;
        Ok(self.log.seen().1)
    }

    fn cursor(&self, key: &[u8; 16]) -> Result<Option<Vec<u8>>> {
        self.env.check_usable()?;
        self.log.follow()?;
        let (head, mut cursors) = self.env.read("read the cursors", |txn| {
            Ok((self.tables.head(txn)?, self.tables.cursors(txn)?))
        })?;
        self.log.move_cursors(head.cursors_at, &mut cursors);
        Ok(cursors.get(key).map(<[u8]>::to_vec))
    }

    fn counts(&self) -> Result<StoreCounts> {
        self.env.check_usable()?;
        let head = self.head_after_log()?;
        Ok(head.counts_of(self.log.seen().2))
    }

    fn lock_compaction(&self) -> Result<Option<Box<dyn CompactionLock>>> {
        self.env.check_process()?;
        self.segments.lock()
    }

    fn create_segment(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>> {
        self.env.check_usable()?;
        self.segments.create(id)
    }

    fn read_segment(&self, id: &SegmentId, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.check_open()?;
        self.segments.read(id, offset, length)
    }

    fn segment_bytes(&self, id: &SegmentId) -> Result<u64> {
        self.segments.bytes(id)
    }

    fn segments(&self) -> Result<Vec<SegmentId>> {
        Ok(self.segments.list()?.into_iter().map(|(id, _)| id).collect())
    }

    fn pin_segments(&self) -> Result<Box<dyn SegmentsLock>> {
        self.env.check_usable()?;
        self.segments.pin()
    }

    fn lock_removal(&self) -> Result<Option<Box<dyn SegmentsLock>>> {
        self.env.check_process()?;
        self.segments.lock_removal()
    }

    fn remove_segment(&self, id: &SegmentId) -> Result<()> {
        // A stream removes its segments when it is dropped. In a forked child these segments still
        // belong to the parent.
        self.env.check_process()?;
        self.segments.remove(id)
    }

    fn replace_manifest(&self, generation: u64, manifest: &[u8], compacted: u64) -> Result<bool> {
        self.env.check_usable()?;
        self.log.follow()?;
        let stored = records::encode_manifest(manifest);
        let (log_end, log_last, _) = self.log.seen();
        self.segments.sync_names()?;
        let replaced = self.write("replace the manifest", |txn| {
            let mut head = self.tables.head(txn)?;
            if head.generation != generation {
                return Ok(None);
            }
            head.compacted = head.compacted.max(compacted.min(log_last));
            head.compacted_bytes =
                self.log.bytes_ever(head.compacted).unwrap_or(head.compacted_bytes);
            head.generation += 1;
            let mut cursors = self.tables.cursors(txn)?;
            let before = cursors.clone();
            self.log.move_cursors(head.cursors_at, &mut cursors);
            if cursors != before {
                self.tables.meta.put(txn, records::CURSORS, &records::encode_cursors(&cursors))?;
            }
            head.cursors_at = head.cursors_at.max(log_end);
            self.tables.meta.put(txn, records::MANIFEST, &stored)?;
            self.tables.put_head(txn, head)?;
            Ok(Some(head.taken()))
        })?;
        let Some(taken) = replaced else { return Ok(false) };
        match self.log.trim(taken) {
            // Without disk space the trim fails now, and the next compaction tries again.
            Ok(()) | Err(Error::DiskFull | Error::Stale) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn key_turns(&self) -> Option<&dyn KeyTurns> {
        Some(self)
    }

    fn verify(&self) -> Result<Vec<String>> {
        self.verify_tables()
    }

    fn set_retention(&self, seconds: u64) -> Result<()> {
        self.write("set the retention", |txn| {
            let head = records::HeadRecord { retention_seconds: seconds, ..self.tables.head(txn)? };
            self.tables.put_head(txn, head)
        })
    }

    fn snapshot(&self) -> Result<StoreSnapshot> {
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

    fn replace_names(&self, pages: &[NamesPage]) -> Result<()> {
        self.write("replace names", |txn| {
            for page in pages {
                self.tables.names.put(txn, &page.sequence, &records::encode_names(page))?;
            }
            Ok(())
        })
    }

    fn load_log(&self, entries: &[LogEntry]) -> Result<()> {
        self.put_log(entries)
    }

    fn load_snapshot(&self, snapshot: &StoreSnapshot) -> Result<()> {
        self.put_snapshot(snapshot)
    }

    fn close(&self) {
        self.env.close();
    }

    fn check_open(&self) -> Result<()> {
        self.env.check_open()
    }

    fn space(&self) -> Result<Space> {
        let segments = self.segments.list()?.iter().map(|(_, bytes)| bytes).sum();
        let (used, file_bytes) = (self.tables.used_bytes(&self.env)?, self.env.file_bytes()?);
        let tables = used.min(file_bytes);
        let log = log::file_bytes(&self.directory)?;
        Ok(Space { log, segments, tables, free: file_bytes - tables })
    }
}
