//! The store in memory: the promises of [`Store`] in their simplest form. Tests compare other
//! stores with it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cursor::Cursors;
use super::entries::{LogEntry, LogView, NewBlock, READ_BYTES_MAX, StoreCounts};
use super::interface::{Link, NewSegment, SegmentId, Space, Store};
use super::key_turns::KeyTurns;
use super::locks::{CompactionLock, KeyLock, SegmentsLock};
use super::names::{FirstIds, NamesPage, NewNames};
use super::snapshot::StoreSnapshot;
use crate::model::error::{Error, Result};
use crate::storage::seal::{KeyId, KeySlot};

/// A store that lives as long as the process.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<MemoryState>,
    segments: Segments,
    is_compacting: Arc<AtomicBool>,
    /// Shared with each [`MemoryPin`].
    pins: Arc<()>,
    is_closed: AtomicBool,
    /// If true, blocks are counted and dropped.
    is_forgetful: bool,
}

type Segments = Arc<Mutex<HashMap<SegmentId, Vec<u8>>>>;

struct MemoryLock(Arc<AtomicBool>);

struct MemoryPin(#[expect(dead_code, reason = "counted, never read")] Arc<()>);

impl SegmentsLock for MemoryPin {}

/// The right to remove segments. A reader that pins segments after this was taken knows only newer
/// manifests.
struct Removal;

impl SegmentsLock for Removal {}

impl CompactionLock for MemoryLock {}

/// Needs no lock: the only handle knows which key it seals with.
struct MemoryKeyLock;

impl KeyLock for MemoryKeyLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Bytes that become a segment with [`NewSegment::finish`].
struct NewMemorySegment {
    id: SegmentId,
    bytes: Vec<u8>,
    segments: Segments,
}

impl NewSegment for NewMemorySegment {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        lock(&self.segments).insert(self.id, self.bytes);
        Ok(())
    }

    fn finish_content(self: Box<Self>) -> Result<()> {
        self.finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change below is complete before any code can panic, so a poisoned lock is sound.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct MemoryState {
    next: FirstIds,
    names: Vec<NamesPage>,
    /// Blocks from `compacted + 1` on.
    log: Vec<Vec<u8>>,
    counts: StoreCounts,
    cursors: Cursors,
    compacted: u64,
    generation: u64,
    manifest: Option<Vec<u8>>,
    retention_seconds: u64,
}

impl MemoryState {
    fn last(&self) -> u64 {
        self.compacted + self.log.len() as u64
    }

    fn log_after(&self, after: u64) -> Vec<LogEntry> {
        let mut bytes = 0;
        let entries = (self.compacted + 1..).zip(&self.log);
        let entries = entries.filter(|(sequence, _)| *sequence > after);
        let chunk = entries.take_while(|(_, sealed)| {
            let fits = bytes < READ_BYTES_MAX;
            bytes += sealed.len();
            fits
        });
        chunk.map(|(sequence, sealed)| LogEntry { sequence, sealed: sealed.clone() }).collect()
    }
}

impl MemoryStore {
    /// Makes a store with the names of `other`. The store accepts blocks but does not keep them.
    ///
    /// # Errors
    /// Returns the errors of `other`.
    pub fn forgetful(other: &dyn Store) -> Result<Self> {
        let mut state = MemoryState::default();
        loop {
            let pages = other.names_after(state.names.len() as u64)?;
            let Some(last) = pages.last() else { break };
            debug_assert_eq!(last.sequence, (state.names.len() + pages.len()) as u64);
            state.names.extend(pages);
        }
        let series = state.names.iter().flat_map(|page| &page.series).max();
        let field = state.names.iter().flat_map(|page| &page.fields).map(|(id, _)| id).max();
        let next = |last: Option<&u32>| last.map_or(0, |last| last + 1);
        state.next = FirstIds { series: next(series), field: next(field) };
        Ok(Self { state: Mutex::new(state), is_forgetful: true, ..Self::default() })
    }

    fn state(&self) -> Result<MutexGuard<'_, MemoryState>> {
        self.check_open()?;
        Ok(lock(&self.state))
    }

    fn all_segments(&self) -> Result<MutexGuard<'_, HashMap<SegmentId, Vec<u8>>>> {
        self.check_open()?;
        Ok(lock(&self.segments))
    }
}

impl KeyTurns for MemoryStore {
    fn hold_key(&self, _slot: KeySlot) -> Result<bool> {
        Ok(true)
    }

    fn lock_key(&self, _old: KeySlot, _kept: KeyId) -> Result<Option<Box<dyn KeyLock>>> {
        Ok(Some(Box::new(MemoryKeyLock)))
    }

    fn lock_reads(&self) -> Result<Option<Box<dyn SegmentsLock>>> {
        self.lock_removal()
    }

    fn replace_positions(&self, change: &dyn Fn(&[u8]) -> Result<Vec<u8>>) -> Result<()> {
        let mut state = self.state()?;
        let mut cursors = state.cursors.clone();
        cursors.replace(change)?;
        state.cursors = cursors;
        Ok(())
    }
}

impl Store for MemoryStore {
    fn append_names(&self, after: u64, names: &NewNames) -> Result<Option<FirstIds>> {
        let mut state = self.state()?;
        if after != state.names.len() as u64 {
            return Ok(None);
        }
        let first = state.next;
        state.next = first.after(names)?;
        state.names.push(NamesPage::new(after + 1, first, names));
        Ok(Some(first))
    }

    fn names_after(&self, after: u64) -> Result<Vec<NamesPage>> {
        Ok(self.state()?.names.iter().filter(|page| page.sequence > after).cloned().collect())
    }

    fn append_unsynced(&self, blocks: Vec<NewBlock>) -> Result<u64> {
        let mut state = self.state()?;
        for mut block in blocks {
            if self.is_forgetful {
                block.sealed.clear();
            }
            let log_bytes = block.sealed.len() as u64;
            state.counts.add(&StoreCounts { log_bytes, ..block.counts });
            if let Some(cursor) = &block.cursor {
                state.cursors.set(cursor);
            }
            if !block.sealed.is_empty() {
                state.log.push(block.sealed);
            }
        }
        Ok(0)
    }

    fn sync(&self, _end: u64) -> Result<()> {
        Ok(())
    }

    fn leave(&self, _end: u64) {}

    fn view(&self, after: u64, generation: u64) -> Result<LogView> {
        let state = self.state()?;
        let manifest = state.manifest.clone().filter(|_| generation != state.generation);
        let is_news = manifest.is_some() || state.last() > after;
        Ok(LogView {
            generation: state.generation,
            manifest,
            compacted: state.compacted,
            retention_seconds: state.retention_seconds,
            pages: if is_news { state.names.len() as u64 } else { 0 },
            last: state.last(),
            entries: state.log_after(after),
        })
    }

    fn log_after(&self, after: u64) -> Result<Vec<LogEntry>> {
        Ok(self.state()?.log_after(after))
    }

    fn log_get(&self, sequences: &[u64]) -> Result<Vec<LogEntry>> {
        let state = self.state()?;
        let get = |&sequence: &u64| {
            if (1..=state.compacted).contains(&sequence) {
                return Err(Error::Stale);
            }
            let index = sequence.checked_sub(state.compacted + 1);
            let index = index.and_then(|at| usize::try_from(at).ok());
            let sealed = index.and_then(|at| state.log.get(at)).cloned();
            let sealed = sealed.ok_or(Error::Corrupt { what: "the log" })?;
            Ok(LogEntry { sequence, sealed })
        };
        sequences.iter().map(get).collect()
    }

    fn head(&self) -> Result<u64> {
        Ok(self.state()?.last())
    }

    fn cursor(&self, key: &[u8; 16]) -> Result<Option<Vec<u8>>> {
        Ok(self.state()?.cursors.get(key).map(<[u8]>::to_vec))
    }

    fn counts(&self) -> Result<StoreCounts> {
        Ok(self.state()?.counts)
    }

    fn lock_compaction(&self) -> Result<Option<Box<dyn CompactionLock>>> {
        self.check_open()?;
        let taken = self.is_compacting.swap(true, Ordering::AcqRel);
        Ok((!taken).then(|| Box::new(MemoryLock(Arc::clone(&self.is_compacting))) as _))
    }

    fn create_segment(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>> {
        self.check_open()?;
        let segments = Arc::clone(&self.segments);
        Ok(Box::new(NewMemorySegment { id: *id, bytes: Vec::new(), segments }))
    }

    fn read_segment(&self, id: &SegmentId, offset: u64, length: usize) -> Result<Vec<u8>> {
        let segments = self.all_segments()?;
        let bytes = segments.get(id).ok_or(Error::Stale)?;
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
        let part = rest.and_then(|rest| rest.get(..length));
        Ok(part.ok_or(Error::Corrupt { what: "a segment" })?.to_vec())
    }

    fn segment_bytes(&self, id: &SegmentId) -> Result<u64> {
        self.all_segments()?.get(id).map(|bytes| bytes.len() as u64).ok_or(Error::Stale)
    }

    fn segments(&self) -> Result<Vec<SegmentId>> {
        Ok(self.all_segments()?.keys().copied().collect())
    }

    fn pin_segments(&self) -> Result<Box<dyn SegmentsLock>> {
        let _segments = self.all_segments()?;
        Ok(Box::new(MemoryPin(Arc::clone(&self.pins))))
    }

    fn lock_removal(&self) -> Result<Option<Box<dyn SegmentsLock>>> {
        let _segments = self.all_segments()?;
        Ok((Arc::strong_count(&self.pins) == 1).then(|| Box::new(Removal) as _))
    }

    fn remove_segment(&self, id: &SegmentId) -> Result<()> {
        self.all_segments()?.remove(id);
        Ok(())
    }

    fn replace_manifest(&self, generation: u64, manifest: &[u8], compacted: u64) -> Result<bool> {
        let mut state = self.state()?;
        if state.generation != generation {
            return Ok(false);
        }
        let gone = compacted.saturating_sub(state.compacted);
        let gone = usize::try_from(gone).unwrap_or(usize::MAX).min(state.log.len());
        let bytes: usize = state.log.drain(..gone).map(|sealed| sealed.len()).sum();
        state.counts.log_bytes -= bytes as u64;
        state.compacted += gone as u64;
        state.generation += 1;
        state.manifest = Some(manifest.to_vec());
        Ok(true)
    }

    fn key_turns(&self) -> Option<&dyn KeyTurns> {
        Some(self)
    }

    fn verify(&self) -> Result<Vec<String>> {
        self.check_open()?;
        Ok(Vec::new())
    }

    fn set_retention(&self, seconds: u64) -> Result<()> {
        self.state()?.retention_seconds = seconds;
        Ok(())
    }

    fn snapshot(&self) -> Result<StoreSnapshot> {
        let state = self.state()?;
        Ok(StoreSnapshot {
            log_last: state.last(),
            names_last: state.names.len() as u64,
            counts: state.counts,
            compacted: state.compacted,
            generation: state.generation,
            retention_seconds: state.retention_seconds,
            next_ids: state.next,
            cursors: state.cursors.encode(),
            manifest: state.manifest.clone(),
        })
    }

    fn segment_file(&self, _id: &SegmentId) -> Option<PathBuf> {
        None
    }

    fn link_segment(&self, _id: &SegmentId, _file: &Path, _link: Link) -> Result<bool> {
        Ok(false)
    }

    fn load_names(&self, pages: &[NamesPage]) -> Result<()> {
        self.state()?.names.extend_from_slice(pages);
        Ok(())
    }

    fn replace_names(&self, pages: &[NamesPage]) -> Result<()> {
        let mut state = self.state()?;
        for page in pages {
            let stored = state.names.iter_mut().find(|stored| stored.sequence == page.sequence);
            *stored.ok_or(Error::Corrupt { what: "a page of names" })? = page.clone();
        }
        Ok(())
    }

    fn load_log(&self, entries: &[LogEntry]) -> Result<()> {
        self.state()?.log.extend(entries.iter().map(|entry| entry.sealed.clone()));
        Ok(())
    }

    fn load_snapshot(&self, snapshot: &StoreSnapshot) -> Result<()> {
        let mut state = self.state()?;
        let StoreSnapshot { counts, compacted, generation, retention_seconds, .. } = *snapshot;
        let (names, log) = (std::mem::take(&mut state.names), std::mem::take(&mut state.log));
        let (next, manifest) = (snapshot.next_ids, snapshot.manifest.clone());
        let cursors = Cursors::decode(&snapshot.cursors)?;
        *state = MemoryState {
            next,
            names,
            log,
            counts,
            cursors,
            compacted,
            generation,
            manifest,
            retention_seconds,
        };
        Ok(())
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    fn space(&self) -> Result<Space> {
        let segments: usize = self.all_segments()?.values().map(Vec::len).sum();
        let state = self.state()?;
        let log = state.counts.log_bytes;
        let tables: usize = state.names.iter().map(|page| page.sealed_names.len()).sum();
        Ok(Space { log, segments: segments as u64, tables: tables as u64, ..Space::default() })
    }
}
