//! The promises of `Store`, kept by PostgreSQL and objects.

mod lease;
mod small;
mod tickets;

mod append;
mod compaction;
mod copies;
mod keys;
mod known;
mod names;
mod pin;
mod segments;
mod turning;

mod history;
mod view;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::store::{
    CompactionLock, FirstIds, KeyTurns, Link, LogEntry, LogView, NamesPage, NewBlock, NewNames,
    NewSegment, SegmentId, SegmentsLock, Space, Store, StoreCounts, StoreSnapshot,
};

use self::keys::HandleKeys;
use self::known::{ShownEntries, Watermarks};
use self::lease::Lease;
use self::tickets::{SealedBatch, Tickets};
use crate::cluster::Cluster;
use crate::identity::Id;

/// The store of one tenant.
pub(crate) struct ClusterStore {
    cluster: Arc<Cluster>,
    plane: Id,
    /// The last data that this handle was shown.
    known: Mutex<Watermarks>,
    shown: Mutex<ShownEntries>,
    /// True if the last read found news. The next read then does not ask first if there is news.
    expects_news: AtomicBool,
    keys: HandleKeys,
    tickets: Tickets,
    /// The lease of the compaction that runs here.
    lease: Mutex<Option<Arc<Lease>>>,
    /// True if the database holds another history than the handle was shown.
    is_forked: AtomicBool,
    is_closed: AtomicBool,
}

impl ClusterStore {
    pub(crate) fn new(cluster: Arc<Cluster>, plane: Id) -> Self {
        Self {
            cluster,
            plane,
            known: Mutex::default(),
            shown: Mutex::default(),
            expects_news: AtomicBool::new(true),
            keys: HandleKeys::default(),
            tickets: Tickets::default(),
            lease: Mutex::default(),
            is_forked: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Fails if the history has forked. A closed store passes.
    fn check_history(&self) -> Result<()> {
        if self.is_forked.load(Ordering::Acquire) { Err(Error::Poisoned) } else { Ok(()) }
    }

    fn check(&self) -> Result<()> {
        self.check_open()?;
        self.check_history()?;
        self.proven().map(drop)
    }

    /// Marks the history as forked, so that every later call fails, and returns the error.
    fn forked(&self) -> Error {
        self.is_forked.store(true, Ordering::Release);
        Error::Poisoned
    }

    fn missing(&self) -> Error {
        Error::Missing(format!("the plane {}", self.plane.hex()))
    }
}

/// Segments that a compactor removes stay for a day, or for as long as a reader has pinned them.
struct SegmentRetention;

impl SegmentsLock for SegmentRetention {}

impl Store for ClusterStore {
    fn append_names(&self, after: u64, names: &NewNames) -> Result<Option<FirstIds>> {
        self.check()?;
        self.append_page(after, names)
    }

    fn names_after(&self, after: u64) -> Result<Vec<NamesPage>> {
        self.check()?;
        self.pages_after(after)
    }

    fn append(&self, blocks: Vec<NewBlock>) -> Result<()> {
        let ticket = self.append_unsynced(blocks)?;
        let synced = self.sync(ticket);
        self.leave(ticket);
        synced
    }

    fn append_unsynced(&self, blocks: Vec<NewBlock>) -> Result<u64> {
        self.check()?;
        Ok(self.tickets.draw(SealedBatch { key: self.keys.id_of_batch(&blocks), blocks }))
    }

    fn sync(&self, end: u64) -> Result<()> {
        self.tickets.wait(end, |batches| {
            self.check_history()?;
            self.commit(batches)
        })
    }

    fn leave(&self, end: u64) {
        self.tickets.leave(end);
    }

    fn view(&self, after: u64, generation: u64) -> Result<LogView> {
        self.check()?;
        self.look(after, generation)
    }

    fn log_after(&self, after: u64) -> Result<Vec<LogEntry>> {
        self.check()?;
        self.entries_after(after)
    }

    fn log_get(&self, sequences: &[u64]) -> Result<Vec<LogEntry>> {
        self.check()?;
        self.entries_at(sequences)
    }

    fn head(&self) -> Result<u64> {
        self.check()?;
        Ok(self.numbers()?.last)
    }

    fn cursor(&self, key: &[u8; 16]) -> Result<Option<Vec<u8>>> {
        self.check()?;
        self.import_position(*key)
    }

    fn counts(&self) -> Result<StoreCounts> {
        self.check()?;
        Ok(self.numbers()?.counts)
    }

    fn lock_compaction(&self) -> Result<Option<Box<dyn CompactionLock>>> {
        self.check()?;
        self.take_lease()
    }

    fn create_segment(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>> {
        self.check()?;
        self.begin_segment(Id(*id))
    }

    fn read_segment(&self, id: &SegmentId, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.check_open()?;
        self.segment_part(Id(*id), offset, length)
    }

    fn segment_bytes(&self, id: &SegmentId) -> Result<u64> {
        self.check_open()?;
        self.segment_length(Id(*id))
    }

    fn prefetch(&self, segments: &mut dyn Iterator<Item = (SegmentId, u64)>) {
        let segments: Vec<_> = segments.collect();
        if !segments.is_empty() {
            self.fetch_ends(&segments);
        }
    }

    fn segments(&self) -> Result<Vec<SegmentId>> {
        self.check()?;
        self.registered()
    }

    fn pin_segments(&self) -> Result<Box<dyn SegmentsLock>> {
        self.check()?;
        self.pin()
    }

    fn lock_removal(&self) -> Result<Option<Box<dyn SegmentsLock>>> {
        self.check_open()?;
        Ok(Some(Box::new(SegmentRetention)))
    }

    fn remove_segment(&self, id: &SegmentId) -> Result<()> {
        self.check()?;
        self.retire_segment(Id(*id))
    }

    fn replace_manifest(&self, generation: u64, manifest: &[u8], compacted: u64) -> Result<bool> {
        self.check()?;
        self.swap_manifest(generation, manifest, compacted)
    }

    fn set_retention(&self, seconds: u64) -> Result<()> {
        self.check()?;
        self.keep_rows(seconds)
    }

    fn space(&self) -> Result<Space> {
        self.check()?;
        Ok(self.numbers()?.space)
    }

    fn verify(&self) -> Result<Vec<String>> {
        self.check()?;
        self.look_at_all()
    }

    fn snapshot(&self) -> Result<StoreSnapshot> {
        self.check()?;
        self.whole()
    }

    fn segment_file(&self, _id: &SegmentId) -> Option<PathBuf> {
        None
    }

    fn link_segment(&self, _id: &SegmentId, _file: &Path, _link: Link) -> Result<bool> {
        Ok(false)
    }

    fn load_names(&self, pages: &[NamesPage]) -> Result<()> {
        self.check()?;
        self.put_pages(pages)
    }

    fn replace_names(&self, pages: &[NamesPage]) -> Result<()> {
        self.check()?;
        self.replace_pages(pages)
    }

    fn load_log(&self, entries: &[LogEntry]) -> Result<()> {
        self.check()?;
        self.put_entries(entries)
    }

    fn load_snapshot(&self, snapshot: &StoreSnapshot) -> Result<()> {
        self.check()?;
        self.put_whole(snapshot)
    }

    fn key_turns(&self) -> Option<&dyn KeyTurns> {
        Some(self)
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }
}
