//! Follows the log: first reads names that other processes registered, then the blocks that use
//! them.

mod state;

mod newest;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use self::newest::NewestSamples;
pub(super) use self::state::{ALWAYS_NS, PlaneSnapshot};
use self::state::{FollowerState, apply_visible};
use super::registry::NamesRegistry;
use super::sealed::SealedStore;
use crate::codec::{BlockReader, decode_block};
use crate::model::batch::Block;
use crate::model::clock::CallTime;
use crate::model::error::{Error, Result};
use crate::query::latest::Latest;
use crate::storage::manifest::Manifest;
use crate::storage::seal::BlobKind;
use crate::storage::store::{Committer, LogEntry, LogView};
use crate::storage::tombstone::{Origin, visible};

/// Views that a read takes before it gives up, if compaction overtakes each of them.
pub(super) const VIEWS_MAX: usize = 100;

/// Sealed bytes of blocks that are decoded at a time, unless a single block has more. Bounds
/// memory: decoded blocks take about five times as much.
const DECODED_TOGETHER_BYTES_MAX: usize = 512 << 10;

/// A segment that the newest manifest names and that is missing all the same.
pub(super) const MISSING: Error = Error::Corrupt { what: "a segment that is missing" };

/// Contents of a plane as this process knows them, and how far it has followed the log.
///
/// Invariant: the state holds the blocks up to [`FollowerPosition::log`] and the manifest of
/// [`FollowerPosition::generation`]. If the state holds the newest samples, the registry has all
/// names in them. The locks leave this type only as [`NewestSamples`], which locks the registry
/// before `state`, so no caller can lock them in another order. Blocks are opened and decoded under
/// `cursor` alone, so reads in progress continue.
pub(super) struct Follower {
    sealed: Arc<SealedStore>,
    registry: Arc<NamesRegistry>,
    /// Calls that wait for the same view. A call that arrives while a view is in progress shares
    /// the next view. So each call sees every commit before its arrival, and a remote store is
    /// asked once for all of them.
    reads: Committer<RowUse>,
    /// Lock of the call that follows the log for its group, so that blocks are applied once and in
    /// order. It is taken before the registry's locks, which are taken before `state`.
    cursor: Mutex<FollowerPosition>,
    state: RwLock<FollowerState>,
}

#[derive(Default)]
struct FollowerPosition {
    /// Position of the last block applied.
    log: u64,
    /// Generation of the manifest.
    generation: u64,
    /// If true, rows were asked for since the last call of [`Follower::forget_rows`].
    is_read: bool,
}

/// How a call uses the rows of the blocks that it follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowUse {
    /// The call reads rows now.
    Read,
    /// A later read may want the rows.
    Kept,
    /// The call needs no rows. Blocks are opened only for their heads, unless rows are kept
    /// already. Decoding blocks and finding the newest samples is most of the cost of following.
    Unwanted,
}

/// State that decides when the next compaction is due.
pub(super) struct Backlog {
    pub(super) manifest: Arc<Manifest>,
    /// Seconds that rows are kept, 0 for ever.
    pub(super) retention_seconds: u64,
    /// Ingest instant of the log's oldest block.
    pub(super) oldest_ingest_ns: Option<i64>,
    /// True if an old data key is to be dropped.
    pub(super) is_turning: bool,
}

impl Follower {
    pub(super) fn new(sealed: Arc<SealedStore>, registry: Arc<NamesRegistry>) -> Self {
        let (reads, cursor) = (Committer::default(), Mutex::default());
        Self { sealed, registry, reads, cursor, state: RwLock::default() }
    }

    // A poisoned lock is taken over. Each change under it is complete before a panic can happen, or
    // is made again from the log.
    fn cursor(&self) -> MutexGuard<'_, FollowerPosition> {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> RwLockReadGuard<'_, FollowerState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, FollowerState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies everything that any process has committed so far. After an error the blocks applied
    /// before it stay, and the next call continues from there.
    pub(super) fn follow(&self) -> Result<()> {
        self.follow_with_others(RowUse::Read)
    }

    /// Follows as [`Self::follow`] does, for a plane that was just opened and may never be read.
    pub(super) fn begin(&self) -> Result<()> {
        self.follow_with_others(RowUse::Kept)
    }

    /// Follows as [`Self::follow`] does, for a caller that reads no rows.
    pub(super) fn follow_heads(&self) -> Result<()> {
        self.follow_with_others(RowUse::Unwanted)
    }

    fn follow_with_others(&self, rows: RowUse) -> Result<()> {
        self.reads.submit(rows, 0, &|all: &[RowUse]| {
            let mut cursor = self.cursor();
            cursor.is_read |= all.contains(&RowUse::Read);
            let wants_rows = all.iter().any(|rows| *rows != RowUse::Unwanted);
            self.follow_log(&mut cursor, wants_rows)
        })?;
        self.sealed.caches.settle();
        Ok(())
    }

    /// Number of calls that wait for the view after the view in progress.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.reads.waiting()
    }

    /// Forgets newest samples and decoded blocks, unless rows were asked for since the last call.
    /// So a process that only compacts does not keep them. The next read builds them again.
    pub(super) fn forget_rows(&self) {
        let mut cursor = self.cursor();
        if !std::mem::take(&mut cursor.is_read) {
            self.state_mut().latest = None;
            self.sealed.caches.recent().clear();
        }
    }

    fn follow_log(&self, cursor: &mut FollowerPosition, wants_rows: bool) -> Result<()> {
        let mut overtaken = None;
        loop {
            let view = self.sealed.store.view(cursor.log, cursor.generation)?;
            if self.state().retention_seconds != view.retention_seconds {
                self.state_mut().retention_seconds = view.retention_seconds;
            }
            let applied = self.apply_manifest(cursor, &view);
            let applied = applied.and_then(|()| self.take_up_rows(cursor, wants_rows));
            match applied.and_then(|()| self.apply_entries(cursor, &view)) {
                // A segment was replaced before it was read, or the key of the view was dropped
                // before the view was opened. The next view has the newer segment and key.
                Err(Error::Stale | Error::Corrupt { .. }) if overtaken != Some(view.generation) => {
                    overtaken = Some(view.generation);
                    continue;
                }
                Err(Error::Stale) => return Err(MISSING),
                outcome => outcome?,
            }
            if view.entries.is_empty() || cursor.log >= view.last {
                return Ok(());
            }
        }
    }

    fn apply_manifest(&self, cursor: &mut FollowerPosition, view: &LogView) -> Result<()> {
        let Some(sealed) = &view.manifest else { return Ok(()) };
        let manifest = Manifest::decode(&self.sealed.open_blob(BlobKind::Manifest, sealed)?)?;
        if (manifest.generation, manifest.compacted) != (view.generation, view.compacted) {
            return Err(Error::Corrupt { what: "the manifest" });
        }
        // Blocks that were not applied here may be gone from the log, with their rows in segments.
        // Or rows were deleted, and older rows may be the newest now.
        let is_anew = cursor.log < manifest.compacted || manifest.deleted > cursor.generation;
        let mut anew = None;
        if is_anew && self.state().latest.is_some() {
            self.registry.follow_until(view.pages)?;
            anew = Some(self.latest_anew(cursor.log, &manifest)?);
        }
        let names = self.registry.names();
        let mut state = self.state_mut();
        if let Some(latest) = anew {
            state.restart(latest, &names.catalog);
        }
        cursor.log = cursor.log.max(manifest.compacted);
        self.sealed.caches.recent().forget_until(manifest.compacted.max(manifest.hidden_until()));
        state.replace_manifest(manifest);
        cursor.generation = view.generation;
        Ok(())
    }

    /// Finds the newest samples if they are wanted and not kept.
    fn take_up_rows(&self, cursor: &FollowerPosition, wants_rows: bool) -> Result<()> {
        if !wants_rows || self.state().latest.is_some() {
            return Ok(());
        }
        self.registry.follow()?;
        let latest = self.latest_anew(cursor.log, &self.manifest())?;
        let names = self.registry.names();
        self.state_mut().restart(latest, &names.catalog);
        Ok(())
    }

    fn apply_entries(&self, cursor: &mut FollowerPosition, view: &LogView) -> Result<()> {
        if self.state().latest.is_some() {
            self.apply_rows(cursor, view)
        } else {
            self.apply_heads(cursor, &view.entries)
        }
    }

    fn apply_rows(&self, cursor: &mut FollowerPosition, view: &LogView) -> Result<()> {
        self.registry.follow_until(view.pages)?;
        let mut rest = &*view.entries;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |entry: &&LogEntry| {
                let is_first = bytes == 0;
                bytes += entry.sealed.len();
                is_first || bytes <= DECODED_TOGETHER_BYTES_MAX
            };
            let (some, later) = rest.split_at(rest.iter().take_while(fits).count());
            self.apply_some(cursor, some)?;
            rest = later;
        }
        Ok(())
    }

    /// Applies blocks that are decoded together.
    fn apply_some(&self, cursor: &mut FollowerPosition, entries: &[LogEntry]) -> Result<()> {
        let blocks = entries.iter().map(|entry| self.sealed.open_block(entry));
        let blocks = blocks.collect::<Result<Vec<Block>>>()?;
        let names = self.registry.names();
        let mut state = self.state_mut();
        for (entry, block) in entries.iter().zip(blocks) {
            state.apply(entry.sequence, &block, &names.catalog);
            if entry.sequence > state.manifest.hidden_until() {
                self.sealed.caches.recent().push(entry.sequence, block);
            }
        }
        if let Some(latest) = &mut state.latest {
            latest.sort(&names.catalog);
        }
        cursor.log = entries.last().map_or(cursor.log, |entry| entry.sequence);
        Ok(())
    }

    fn apply_heads(&self, cursor: &mut FollowerPosition, entries: &[LogEntry]) -> Result<()> {
        for entry in entries {
            let plain = self.sealed.open_blob(BlobKind::LogBlock, &entry.sealed)?;
            let block = BlockReader::open(&plain)?;
            let times = block.tables().iter().filter_map(|table| table.times);
            let times_ns = times.map(|times| (times.min_ns, times.max_ns));
            self.state_mut().note(entry.sequence, block.ingest_ns(), times_ns);
            cursor.log = entry.sequence;
        }
        Ok(())
    }

    /// Finds the newest samples of `manifest` and of the log up to position `last`.
    fn latest_anew(&self, last: u64, manifest: &Manifest) -> Result<Latest> {
        let mut latest = self.checkpoint(manifest)?;
        let sequences: Vec<u64> = (manifest.compacted + 1..=last).collect();
        self.sealed.visit_log(&sequences, |sequence, plain| {
            let tables = decode_block(plain)?.tables;
            let names = self.registry.names();
            apply_visible(&mut latest, (sequence, &tables), manifest, &names.catalog);
            Ok(())
        })?;
        Ok(latest)
    }

    /// Returns the newest samples as of the position that `manifest` reaches to. They come from its
    /// checkpoint. Without a checkpoint they come from all segments, which then have few rows more.
    ///
    /// # Errors
    /// Returns [`Error::Stale`] if a segment is gone, [`Error::Corrupt`] or [`Error::Io`].
    pub(super) fn checkpoint(&self, manifest: &Manifest) -> Result<Latest> {
        let mut latest = Latest::default();
        let entries = match &manifest.checkpoint {
            none if none.bytes == 0 => &*manifest.segments,
            checkpoint => std::slice::from_ref(checkpoint),
        };
        for entry in entries {
            let hiding = manifest.hiding(&Origin::Segment(entry.id));
            let segment = self.sealed.open_segment(entry)?;
            for index in 0..segment.blocks().len() {
                let block = segment.block(&*self.sealed.store, index)?;
                let names = self.registry.names();
                for table in &block.tables {
                    let table = visible(table, &hiding, &names.catalog);
                    latest.apply(&table, &ALWAYS_NS, &names.catalog);
                }
            }
        }
        Ok(latest)
    }

    /// Returns the position of the last block applied.
    pub(super) fn position(&self) -> u64 {
        self.cursor().log
    }

    /// Returns the generation of the manifest applied.
    pub(super) fn generation(&self) -> u64 {
        self.state().manifest.generation
    }

    pub(super) fn manifest(&self) -> Arc<Manifest> {
        Arc::clone(&self.state().manifest)
    }

    /// Returns the instant before which rows are no longer kept at `now`.
    pub(super) fn kept_from_ns(&self, now: CallTime) -> i64 {
        self.state().kept_from_ns(now)
    }

    /// Returns true if no row expires at `now`, because the clock may have jumped (O2).
    pub(super) fn is_expiry_held(&self, now: CallTime) -> bool {
        self.state().expiry_held_at_ns(now).is_some()
    }

    /// Returns the instant of a read if the clock says `clock_ns`.
    pub(super) fn read_instant(&self, clock_ns: i64) -> i64 {
        self.state().read_instant(clock_ns)
    }

    /// Returns how far the last ingest instant is ahead of `clock_ns`, or 0 if reads follow it.
    pub(super) fn ingest_lead_ns(&self, clock_ns: i64) -> i64 {
        self.state().ingest_lead_ns(clock_ns)
    }

    /// Returns the newest ingest instant if the clock may have jumped since then (O2).
    pub(super) fn doubted_from_ns(&self, now: CallTime) -> Option<i64> {
        self.state().doubted_from_ns(now)
    }

    /// Returns the newest ingest instant that vouches for a clock.
    pub(super) fn newest_ingest_ns(&self) -> Option<i64> {
        self.state().newest_ingest_ns()
    }

    /// Returns the instant before which hours are no longer kept at `now`, or `None` if hours do
    /// not outlive their rows.
    pub(super) fn hours_from_ns(&self, now: CallTime) -> Option<i64> {
        self.state().hours_from_ns(now)
    }

    /// Seconds that rows are kept, 0 for ever.
    pub(super) fn retention_seconds(&self) -> u64 {
        self.state().retention_seconds
    }

    pub(super) fn backlog(&self) -> Backlog {
        let state = self.state();
        Backlog {
            manifest: Arc::clone(&state.manifest),
            retention_seconds: state.retention_seconds,
            oldest_ingest_ns: state.oldest_ingest_ns(),
            is_turning: self.sealed.sealer().old().is_some(),
        }
    }

    /// Returns the newest samples as of the last [`Self::follow`] or later.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`] if the samples have been forgotten since.
    pub(super) fn newest(&self) -> Result<NewestSamples<'_>> {
        loop {
            let names = self.registry.names();
            let state = self.state();
            if state.latest.is_some() {
                return Ok(NewestSamples { names, state, caches: &self.sealed.caches });
            }
            drop((state, names));
            self.follow()?;
        }
    }

    /// Returns the segments, and the blocks of the log with a row in `range_ns`, perhaps with some
    /// blocks more.
    pub(super) fn snapshot(&self, range_ns: &Range<i64>) -> PlaneSnapshot {
        self.state().snapshot(range_ns, &self.sealed.caches)
    }
}
