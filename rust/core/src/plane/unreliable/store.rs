//! A handle on the engine of [`World`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::world::{Hook, World};
use crate::model::error::{Error, Result};
use crate::storage::seal::{KeyId, KeySlot};
use crate::storage::store::{
    CompactionLock, FirstIds, KeyLock, KeyTurns, Link, LogEntry, LogView, MemoryStore, NamesPage,
    NewBlock, NewNames, NewSegment, SegmentId, SegmentsLock, Space, Store, StoreCounts,
    StoreSnapshot,
};

/// The store of one process.
pub(super) struct FaultyStore {
    world: Arc<World>,
    /// The history that this handle has seen. Another history may have replaced it.
    history: u64,
    number: u64,
    /// Lease that this handle took last.
    lease: AtomicU64,
    is_closed: AtomicBool,
}

struct Lease {
    world: Arc<World>,
    number: u64,
}

impl CompactionLock for Lease {}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut leases = self.world.leases.lock().unwrap();
        leases.1 = leases.1.filter(|held| *held != self.number);
    }
}

struct Pin;

impl SegmentsLock for Pin {}

/// A segment that counts only if the lease under which it began is still held at its end.
struct FencedSegment {
    world: Arc<World>,
    lease: u64,
    id: SegmentId,
    bytes: Vec<u8>,
}

impl NewSegment for FencedSegment {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        call(&self.world.in_segment);
        check_lease(&self.world, self.lease)?;
        self.world.change(|store| put_segment(store, &self.id, &self.bytes))
    }

    fn finish_content(self: Box<Self>) -> Result<()> {
        self.finish()
    }
}

fn call(hook: &Hook) {
    let taken = hook.lock().unwrap().take();
    if let Some(hook) = taken {
        hook();
    }
}

fn put_segment(store: &MemoryStore, id: &SegmentId, bytes: &[u8]) -> Result<()> {
    let mut new = store.create_segment(id)?;
    new.append(bytes)?;
    new.finish()
}

fn check_lease(world: &World, lease: u64) -> Result<()> {
    if world.goes_wrong() && world.draw(2) == 0 {
        world.lose_lease();
    }
    let held = world.leases.lock().unwrap().1;
    if held == Some(lease) { Ok(()) } else { Err(Error::Overtaken) }
}

/// Returns a copy of `store` with all its content.
pub(super) fn loaded_copy(store: &MemoryStore) -> MemoryStore {
    let copy = MemoryStore::default();
    copy.load_names(&store.names_after(0).unwrap()).unwrap();
    let mut after = 0;
    loop {
        let entries = store.log_after(after).unwrap();
        let Some(last) = entries.last() else { break };
        after = last.sequence;
        copy.load_log(&entries).unwrap();
    }
    for id in store.segments().unwrap() {
        let length = usize::try_from(store.segment_bytes(&id).unwrap()).unwrap();
        put_segment(&copy, &id, &store.read_segment(&id, 0, length).unwrap()).unwrap();
    }
    copy.load_snapshot(&store.snapshot().unwrap()).unwrap();
    copy
}

impl FaultyStore {
    pub(super) fn new(world: Arc<World>) -> Self {
        let history = world.history.load(Ordering::Relaxed);
        let number = world.handles.fetch_add(1, Ordering::Relaxed);
        Self { world, history, number, lease: AtomicU64::new(0), is_closed: AtomicBool::new(false) }
    }

    /// Returns the engine if this handle may still use it.
    fn world(&self) -> Result<&World> {
        self.check_open()?;
        let is_forked = self.world.history.load(Ordering::Relaxed) != self.history;
        if is_forked { Err(Error::Poisoned) } else { Ok(&self.world) }
    }
}

impl Drop for FaultyStore {
    fn drop(&mut self) {
        self.world.held.lock().unwrap().0.remove(&self.number);
    }
}

struct LockedKey(Arc<World>);

impl KeyLock for LockedKey {}

impl Drop for LockedKey {
    fn drop(&mut self) {
        self.0.held.lock().unwrap().1 = None;
    }
}

impl KeyTurns for FaultyStore {
    fn hold_key(&self, slot: KeySlot) -> Result<bool> {
        let mut held = self.world.held.lock().unwrap();
        let is_free = held.1 != Some(slot);
        if is_free {
            held.0.insert(self.number, slot);
        }
        Ok(is_free)
    }

    fn lock_key(&self, slot: KeySlot, _kept: KeyId) -> Result<Option<Box<dyn KeyLock>>> {
        let mut held = self.world.held.lock().unwrap();
        let is_held = held.0.iter().any(|(number, of)| *number != self.number && *of == slot);
        if is_held {
            return Ok(None);
        }
        held.1 = Some(slot);
        Ok(Some(Box::new(LockedKey(Arc::clone(&self.world)))))
    }

    fn lock_reads(&self) -> Result<Option<Box<dyn SegmentsLock>>> {
        self.lock_removal()
    }

    fn replace_positions(&self, change: &dyn Fn(&[u8]) -> Result<Vec<u8>>) -> Result<()> {
        self.world()?.change(|store| store.replace_positions(change))
    }
}

impl Store for FaultyStore {
    fn key_turns(&self) -> Option<&dyn KeyTurns> {
        Some(self)
    }

    fn append_names(&self, after: u64, names: &NewNames) -> Result<Option<FirstIds>> {
        self.world()?.change(|store| store.append_names(after, names))
    }

    fn names_after(&self, after: u64) -> Result<Vec<NamesPage>> {
        self.world.pages.fetch_add(1, Ordering::Relaxed);
        self.world()?.read(|store| store.names_after(after))
    }

    fn append_unsynced(&self, blocks: Vec<NewBlock>) -> Result<u64> {
        self.world()?.change(|store| store.append(blocks))?;
        Ok(0)
    }

    fn sync(&self, _end: u64) -> Result<()> {
        Ok(())
    }

    fn leave(&self, _end: u64) {}

    fn view(&self, after: u64, generation: u64) -> Result<LogView> {
        self.world.views.fetch_add(1, Ordering::Relaxed);
        let view = self.world()?.read(|store| store.view(after, generation));
        call(&self.world.in_view);
        view
    }

    fn log_after(&self, after: u64) -> Result<Vec<LogEntry>> {
        self.world()?.read(|store| store.log_after(after))
    }

    fn log_get(&self, sequences: &[u64]) -> Result<Vec<LogEntry>> {
        self.world()?.read(|store| store.log_get(sequences))
    }

    fn head(&self) -> Result<u64> {
        self.world()?.read(Store::head)
    }

    fn cursor(&self, key: &[u8; 16]) -> Result<Option<Vec<u8>>> {
        self.world()?.read(|store| store.cursor(key))
    }

    fn counts(&self) -> Result<StoreCounts> {
        self.world()?.read(Store::counts)
    }

    fn lock_compaction(&self) -> Result<Option<Box<dyn CompactionLock>>> {
        let world = self.world()?;
        let mut leases = world.leases.lock().unwrap();
        if leases.1.is_some() {
            return Ok(None);
        }
        let number = leases.0 + 1;
        *leases = (number, Some(number));
        self.lease.store(number, Ordering::Relaxed);
        Ok(Some(Box::new(Lease { world: Arc::clone(&self.world), number })))
    }

    fn create_segment(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>> {
        let lease = self.lease.load(Ordering::Relaxed);
        check_lease(self.world()?, lease)?;
        let world = Arc::clone(&self.world);
        Ok(Box::new(FencedSegment { world, lease, id: *id, bytes: Vec::new() }))
    }

    fn create_scratch_segment(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>> {
        self.world()?.read(|store| store.create_segment(id))
    }

    fn read_segment(&self, id: &SegmentId, offset: u64, length: usize) -> Result<Vec<u8>> {
        if let Some(bytes) = self.world()?.removed.lock().unwrap().get(id) {
            let at = usize::try_from(offset).unwrap();
            let part = bytes.get(at..at + length);
            return part.map(<[u8]>::to_vec).ok_or(Error::Corrupt { what: "a segment" });
        }
        self.world()?.read(|store| store.read_segment(id, offset, length))
    }

    fn prefetch(&self, segments: &mut dyn Iterator<Item = (SegmentId, u64)>) {
        self.world.fetched.fetch_add(segments.count(), Ordering::Relaxed);
    }

    fn segment_bytes(&self, id: &SegmentId) -> Result<u64> {
        self.world()?.read(|store| store.segment_bytes(id))
    }

    fn segments(&self) -> Result<Vec<SegmentId>> {
        self.world()?.read(Store::segments)
    }

    fn pin_segments(&self) -> Result<Box<dyn SegmentsLock>> {
        Ok(Box::new(Pin))
    }

    fn lock_removal(&self) -> Result<Option<Box<dyn SegmentsLock>>> {
        Ok(Some(Box::new(Pin)))
    }

    fn remove_segment(&self, id: &SegmentId) -> Result<()> {
        self.world()?.read(|store| {
            if let Ok(length) = store.segment_bytes(id) {
                let bytes = store.read_segment(id, 0, usize::try_from(length).unwrap())?;
                self.world.removed.lock().unwrap().insert(*id, bytes);
            }
            store.remove_segment(id)
        })
    }

    fn replace_manifest(&self, generation: u64, manifest: &[u8], compacted: u64) -> Result<bool> {
        let world = self.world()?;
        match check_lease(world, self.lease.load(Ordering::Relaxed)) {
            Err(Error::Overtaken) => Ok(false),
            held => {
                held?;
                world.change(|store| store.replace_manifest(generation, manifest, compacted))
            }
        }
    }

    fn verify(&self) -> Result<Vec<String>> {
        self.world()?.read(Store::verify)
    }

    fn set_retention(&self, seconds: u64) -> Result<()> {
        self.world()?.change(|store| store.set_retention(seconds))
    }

    fn space(&self) -> Result<Space> {
        self.world()?.read(Store::space)
    }

    fn snapshot(&self) -> Result<StoreSnapshot> {
        self.world()?.read(Store::snapshot)
    }

    fn segment_file(&self, _id: &SegmentId) -> Option<PathBuf> {
        None
    }

    fn link_segment(&self, _id: &SegmentId, _file: &Path, _link: Link) -> Result<bool> {
        Ok(false)
    }

    fn load_names(&self, pages: &[NamesPage]) -> Result<()> {
        self.world()?.change(|store| store.load_names(pages))
    }

    fn replace_names(&self, pages: &[NamesPage]) -> Result<()> {
        self.world()?.change(|store| store.replace_names(pages))
    }

    fn load_log(&self, entries: &[LogEntry]) -> Result<()> {
        self.world()?.change(|store| store.load_log(entries))
    }

    fn load_snapshot(&self, snapshot: &StoreSnapshot) -> Result<()> {
        self.world()?.change(|store| store.load_snapshot(snapshot))
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }
}
