//! The promises of a store, kept by an LMDB environment and files of segments.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use heed::types::Bytes;
use heed::{PutFlags, RoTxn, RwTxn};

use super::environment::Environment;
use super::errors::TxnResult;
use super::records;
use super::shrink::shrink;
use super::tables::{Tables, copy_after};
use crate::model::error::{Error, Result};
use crate::storage::seal::fill_random;
use crate::storage::store::entries::{Counts, LogEntry, NewBlock, View};
use crate::storage::store::interface::{
    CompactionLock, Link, NewSegment, SegmentId, SegmentsLock, Space, Store,
};
use crate::storage::store::log::flaw::{self, Part};
use crate::storage::store::log::{self, Log, Opening};
use crate::storage::store::names::{FirstIds, NamesPage, NewNames};
use crate::storage::store::segment_files::SegmentFiles;
use crate::storage::store::snapshot::Snapshot;

/// A store in `DIRECTORY/plane.mdb` and `DIRECTORY/log`. Several processes may have it open at once,
/// each once.
pub struct LmdbStore {
    /// Given up before the environment, whose locks it uses.
    pub(super) log: Log,
    pub(super) env: Environment,
    pub(super) tables: Tables,
    pub(super) segments: SegmentFiles,
    directory: PathBuf,
    poisoned: AtomicBool,
}

const TABLE_COUNT: u32 = 5;
/// Looks at tables and log, where compaction moves blocks from one to the other meanwhile.
const LOOKS_MAX: u32 = 64;
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
            return Err(Error::exists(&path));
        }
        let opening = Opening::begin(directory)?;
        let env = Environment::open(&path, TABLE_COUNT, &opening)?;
        let tables = env.create_tables(|open, txn| {
            let meta = open.create_database::<Bytes, Bytes>(txn, Some("meta"))?;
            let mut sequenced = |name| open.create_database(txn, Some(name));
            Ok((meta, (sequenced("names")?, sequenced("log")?)))
        })?;
        let (meta, (names, log)) = tables;
        let tables = Tables { meta, names, log, version_1: [None, None] };
        Self::with_tables(directory, opening, env, tables)
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
                return Err(Error::missing(&path));
            }
            Err(error) => return Err(Error::io("read", &path, error)),
        };
        // LMDB would make a new environment out of an empty file, and that of a tenant who has
        // lost everything would look like one who never wrote.
        if length < FILE_BYTES_MIN {
            return Err(Error::Corrupt { what: "the store's database" });
        }
        let opening = Opening::begin(directory)?;
        let (mut env, mut tables) = open_tables(&path, &opening)?;
        if opening.is_alone && shrink(&path, &env, &tables)? {
            drop(env);
            (env, tables) = open_tables(&path, &opening)?;
        }
        Self::with_tables(directory, opening, env, tables)
    }

    fn with_tables(
        directory: &Path,
        opening: Opening,
        env: Environment,
        tables: Tables,
    ) -> Result<Self> {
        // Refuses a file of another format before anything of it is used.
        let mut head = env.read("open the store", |txn| tables.head(txn))?;
        if head.log.is_none() && opening.is_alone {
            env.read("open the store", |txn| tables.check_first_head(txn))?;
            head = begin_log(&opening, &env, &tables, head)?;
        }
        let id = head.log.ok_or(Error::Corrupt { what: "the store's head record" })?;
        let log = opening.finish(id, head.taken(), env.byte_locks())?;
        Ok(Self {
            log,
            env,
            tables,
            segments: SegmentFiles::of(directory),
            directory: directory.to_owned(),
            poisoned: AtomicBool::new(false),
        })
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

    /// Head of the tables, at least as new as what the log shows from then on.
    fn head_after_log(&self) -> Result<records::Head> {
        self.log.follow()?;
        self.env.read("read the head", |txn| self.tables.head(txn))
    }
}

fn open_tables(path: &Path, opening: &Opening) -> Result<(Environment, Tables)> {
    let corrupt = Error::Corrupt { what: "the store's database" };
    let env = Environment::open(path, TABLE_COUNT, opening)?;
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
    Ok((env, Tables { meta, names, log, version_1 }))
}

/// Begins the log of a store that has none: it was just made, or by an older version. The log is
/// durable before the head tells of it, and only then anything is appended.
fn begin_log(
    opening: &Opening,
    env: &Environment,
    tables: &Tables,
    head: records::Head,
) -> Result<records::Head> {
    let mut id = [0; 8];
    fill_random(&mut id)?;
    let id = u64::from_le_bytes(id);
    opening.create(id, head.table_last, head.counts)?;
    env.write("begin the log", |txn| {
        let head = records::Head { log: Some(id), ..tables.head(txn)? };
        tables.put_head(txn, head)?;
        tables.head(txn)
    })
}

impl Store for LmdbStore {
    fn append_names(&self, after: u64, names: &NewNames) -> Result<Option<FirstIds>> {
        self.write("append names", |txn| {
            let last = self.tables.pages(txn)?;
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

    fn append_unsynced(&self, blocks: Vec<NewBlock>) -> Result<u64> {
        self.env.check_usable()?;
        if self.poisoned.load(Ordering::Acquire) {
            return Err(Error::Poisoned);
        }
        self.log.append_unsynced(blocks, || self.env.touch())
    }

    fn sync(&self, end: u64) -> Result<()> {
        self.log.sync(end)
    }

    fn leave(&self, end: u64) {
        self.log.leave(end);
    }

    fn view(&self, after: u64, generation: u64) -> Result<View> {
        for _ in 0..LOOKS_MAX {
            self.env.check_usable()?;
            let last = self.log.follow()?;
            let (head, manifest, pages, mut entries) = self.env.read("read the log", |txn| {
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
                let entries = self.in_table(txn, &head, after)?;
                Ok((head, manifest, pages, entries))
            })?;
            // A view without news asks the log for nothing more.
            if entries.is_empty() && (last > after || manifest.is_some()) {
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

    fn log_after(&self, after: u64) -> Result<Vec<LogEntry>> {
        for _ in 0..LOOKS_MAX {
            self.env.check_usable()?;
            let last = self.log.follow()?;
            let (head, entries) = self.env.read("read the log", |txn| {
                let head = self.tables.head(txn)?;
                let entries = self.in_table(txn, &head, after)?;
                Ok((head, entries))
            })?;
            if !entries.is_empty() {
                return Ok(entries);
            }
            if let Some(entries) = self.in_log(&head, after, last)? {
                return Ok(entries);
            }
        }
        Err(Error::Stale)
    }

    fn log_get(&self, sequences: &[u64]) -> Result<Vec<LogEntry>> {
        let head = self.head_after_log()?;
        if sequences.iter().any(|sequence| *sequence <= head.compacted) {
            return Err(Error::Stale);
        }
        let split = sequences.partition_point(|sequence| *sequence <= head.table_last);
        let (in_table, in_log) = sequences.split_at(split);
        let mut entries = self.env.read("read the log", |txn| {
            let get = |&sequence: &u64| {
                let sealed = self.tables.log.get(txn, &sequence)?.ok_or(Error::Stale)?;
                Ok(LogEntry { sequence, sealed: sealed.to_vec() })
            };
            in_table.iter().map(get).collect::<TxnResult<Vec<_>>>()
        })?;
        let Some(others) = self.log.get(in_log.iter().copied())? else {
            let compacted = self.head_after_log()?.compacted;
            let was_compacted = in_log.iter().any(|sequence| *sequence <= compacted);
            let lost = Error::Corrupt { what: "the log" };
            return Err(if was_compacted { Error::Stale } else { lost });
        };
        entries.extend(others);
        Ok(entries)
    }

    fn head(&self) -> Result<u64> {
        self.env.check_usable()?;
        // Also a look at the tables: a store that cannot read them is not well.
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

    fn counts(&self) -> Result<Counts> {
        self.env.check_usable()?;
        let head = self.head_after_log()?;
        Ok(head.counts_of(self.log.seen().2))
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

    fn segment_bytes(&self, id: &SegmentId) -> Result<u64> {
        self.segments.bytes(id)
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
        self.env.check_usable()?;
        self.log.follow()?;
        let stored = records::encode_manifest(manifest);
        let (log_end, log_last, _) = self.log.seen();
        if !flaw::has(Part::ManifestFirst) {
            drop(self.log.trim(log::Taken { compacted, cursors: log_end }));
        }
        self.segments.sync_names()?;
        let replaced = self.write("replace the manifest", |txn| {
            let mut head = self.tables.head(txn)?;
            if head.generation != generation && flaw::has(Part::Generation) {
                return Ok(None);
            }
            let gone = ..=compacted;
            for item in self.tables.log.range(txn, &gone)? {
                head.table_bytes = head.table_bytes.saturating_sub(item?.1.len() as u64);
            }
            self.tables.log.delete_range(txn, &gone)?;
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
            // The next compaction does it where there is no space for it now.
            Ok(()) | Err(Error::DiskFull | Error::Stale) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn verify(&self) -> Result<Vec<String>> {
        self.verify_tables()
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

    fn space(&self) -> Result<Space> {
        let segments = self.segments.list()?.iter().map(|(_, bytes)| bytes).sum();
        let (used, file_bytes) = (self.tables.used_bytes(&self.env)?, self.env.file_bytes()?);
        let tables = used.min(file_bytes);
        let log = log::file_bytes(&self.directory)?;
        Ok(Space { log, segments, tables, free: file_bytes - tables })
    }
}

impl LmdbStore {
    /// Blocks after `after` that an older version has stored and that are not compacted.
    fn in_table(
        &self,
        txn: &RoTxn<'_>,
        head: &records::Head,
        after: u64,
    ) -> TxnResult<Vec<LogEntry>> {
        let after = after.max(head.compacted);
        if after >= head.table_last {
            return Ok(Vec::new());
        }
        let copied = copy_after(self.tables.log, txn, after)?;
        let entry = |(sequence, sealed)| LogEntry { sequence, sealed };
        Ok(copied.into_iter().map(entry).collect())
    }

    /// Blocks after `after` up to `last` in the log; `None` where compaction has taken them since
    /// `head` was read.
    fn in_log(&self, head: &records::Head, after: u64, last: u64) -> Result<Option<Vec<LogEntry>>> {
        let entries = self.log.between(after.max(head.compacted), last)?;
        self.log.forget(head.taken());
        Ok(entries)
    }
}

pub(super) fn plane_path(directory: &Path) -> PathBuf {
    directory.join("plane.mdb")
}
