//! Compaction: writes the log into segments, merges small segments, removes expired and deleted
//! rows.
//!
//! All work is done before one short transaction replaces the manifest, so writers wait only for
//! that transaction. A compactor that dies may leave files that no manifest names. The next
//! compaction removes them.

pub(super) mod rest;

mod growth;
mod kept;
mod segment_slots;
mod sharing;

pub(super) mod plan;

mod layout;

mod deletes;
mod hours;
mod rekeying;
mod round;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

pub use self::deletes::DeleteReport;
use self::plan::{UpkeepSchedule, expired_days, mergeable};
use self::rest::{CompactionTrigger, DayRest};
use self::segment_slots::SegmentSlots;
use self::sharing::partly_expired;
use super::follower::{ALWAYS_NS, Follower};
use super::registry::NamesRegistry;
use super::sealed::SealedStore;
use crate::codec::Effort;
use crate::model::clock::CallTime;
use crate::model::error::{Error, Result};
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::seal::BlobKind;
use crate::storage::segment::{DAY_NS, Representatives, day_of, merge};
use crate::storage::store::SegmentId;
use crate::storage::tombstone::{Extent, Origin, Tombstone, into_visible};

/// Counts of the work of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionReport {
    /// Blocks of the log that moved into segments.
    pub blocks: u64,
    /// Segments that were merged into other segments, or written again under a new data key.
    pub merged: u64,
    /// Segments that retention removed, entirely or some of their days.
    pub expired: u64,
    /// Segments that retention would remove, entirely or in part, if the clock were believed (O2).
    pub held: u64,
    /// Segments from which deleted rows were removed.
    pub purged: u64,
    /// Bytes written into segments.
    pub bytes_written: u64,
    /// Rows written into segments, the checkpoint aside. A row that was written before counts again.
    pub rows_written: u64,
}

impl CompactionReport {
    fn note_written(&mut self, entry: &SegmentEntry) {
        self.bytes_written += entry.bytes;
        self.rows_written += entry.rows;
    }
}

/// Replaces the manifest of one tenant, and sets how long its rows are kept.
///
/// Invariant: only the process that holds the store's compaction lock replaces the manifest. A
/// segment is on disk before a manifest names it, and removed after no manifest names it. The
/// compactor holds no lock of this process while it reads, sorts or writes rows.
pub(super) struct Compactor {
    sealed: Arc<SealedStore>,
    registry: Arc<NamesRegistry>,
    follower: Arc<Follower>,
    segment_slots: SegmentSlots,
}

impl Compactor {
    pub(super) fn new(
        sealed: Arc<SealedStore>,
        registry: Arc<NamesRegistry>,
        follower: Arc<Follower>,
    ) -> Self {
        Self { sealed, registry, follower, segment_slots: SegmentSlots::default() }
    }

    /// Does the work that is due. Returns `None` if another compactor is working, or took over
    /// during the work.
    ///
    /// Memory: [`crate::model::limits::ROUND_VALUES_MAX`] decoded values and a piece of the sorted
    /// ones, or a block of each merged segment. If the rows of each entity lie side by side in the
    /// log, all of them are sorted at once, which takes twice as much again. The newest row of each
    /// entity comes on top.
    pub(super) fn compact(
        &self,
        due: CompactionTrigger,
        now: CallTime,
    ) -> Result<Option<CompactionReport>> {
        unless_overtaken(self.compact_what_is_due(due, now))
    }

    fn compact_what_is_due(
        &self,
        due: CompactionTrigger,
        now: CallTime,
    ) -> Result<Option<CompactionReport>> {
        self.follower.forget_rows();
        self.follower.follow_heads()?;
        let now_ns = now.ns;
        // Decide once: segments that this compaction writes must not vouch for the clock.
        let is_held = self.follower.is_expiry_held(now);
        let vouched_ns = self.follower.doubted_from_ns(now).unwrap_or(now_ns);
        let mut done = CompactionReport::default();
        let head = self.sealed.store.head()?;
        let rest = DayRest::new(due, now_ns);
        if due != CompactionTrigger::Now && !self.is_due(due, is_held, now_ns)? {
            done.held = self.held(is_held, now_ns);
            return Ok(Some(done));
        }
        let Some(_lock) = self.sealed.lock_compaction()? else { return Ok(None) };
        // Another compactor may have worked until now.
        self.follower.follow_heads()?;
        self.remove_orphans()?;
        while self.follower.manifest().compacted < head && self.is_log_due(due, now_ns)? {
            self.compact_log(&rest, vouched_ns, &mut done)?;
        }
        if !is_held {
            self.expire(now_ns, &mut done)?;
            while self.expire_hours(now_ns, &mut done)? {}
            while self.merge_hours(&mut done)? {}
        }
        while let Some((segments, effort)) = mergeable(&self.follower.manifest(), &rest) {
            self.merge_segments(&segments, effort, &mut done)?;
            // The log does not wait until many days are finished.
            if due != CompactionTrigger::Now && self.is_log_due(due, now_ns)? {
                break;
            }
        }
        while self.purge_segment(&mut done)? {}
        self.turn_key(due, now_ns, &mut done)?;
        done.held = self.held(is_held, now_ns);
        Ok(Some(done))
    }

    /// Returns the work left from `now_ns` on if blocks may become `age_ns` old.
    pub(super) fn upcoming(&self, age_ns: i64, now_ns: i64) -> Result<UpkeepSchedule> {
        self.follower.follow_heads()?;
        Ok(UpkeepSchedule::new(&self.follower.backlog(), age_ns, now_ns))
    }

    /// Sets how many seconds rows are kept. 0 keeps them forever.
    pub(super) fn set_retention(&self, seconds: u64) -> Result<()> {
        self.follower.follow_heads()?;
        if self.follower.retention_seconds() == seconds {
            Ok(())
        } else {
            self.sealed.store.set_retention(seconds)
        }
    }

    /// Counts the segments with rows to expire at `now_ns`, if expiry is held.
    fn held(&self, is_held: bool, now_ns: i64) -> u64 {
        if !is_held {
            return 0;
        }
        let manifest = self.follower.manifest();
        let kept_from_ns = self.follower.kept_from_ns(now_ns.into());
        let expired = expired_days(&manifest, kept_from_ns);
        let whole = manifest.segments.iter().filter(|entry| expired.contains(&entry.day)).count();
        (whole + partly_expired(&manifest, kept_from_ns).count()) as u64
    }

    fn is_due(&self, due: CompactionTrigger, is_held: bool, now_ns: i64) -> Result<bool> {
        let manifest = self.follower.manifest();
        let kept_from_ns = self.follower.kept_from_ns(now_ns.into());
        let has_expired = !is_held
            && (!expired_days(&manifest, kept_from_ns).is_empty()
                || partly_expired(&manifest, kept_from_ns).next().is_some());
        let is_mergeable = mergeable(&manifest, &DayRest::new(due, now_ns)).is_some();
        let hours_from_ns = self.follower.hours_from_ns(now_ns.into()).unwrap_or(i64::MIN);
        let has_hours = !is_held
            && (kept::mergeable_hours(&manifest).is_some()
                || kept::expired_hours(&manifest, hours_from_ns).is_some());
        let has_deleted = !manifest.tombstones.is_empty();
        let is_turning = self.sealed.sealer().old().is_some();
        Ok(has_expired
            || has_hours
            || is_mergeable
            || has_deleted
            || is_turning
            || self.is_log_due(due, now_ns)?)
    }

    fn is_log_due(&self, due: CompactionTrigger, now_ns: i64) -> Result<bool> {
        let CompactionTrigger::LargeOrAged { age_ns } = due else { return Ok(true) };
        let log_bytes = self.sealed.store.counts()?.log_bytes;
        Ok(plan::is_log_due(&self.follower.backlog(), log_bytes, age_ns, now_ns)
            || self.log_has_old_key()?)
    }

    /// Removes files that no manifest names. A compactor that died leaves such files.
    fn remove_orphans(&self) -> Result<()> {
        let named: HashSet<_> = self.follower.manifest().ids().collect();
        let segments = self.sealed.store.segments()?.into_iter();
        self.remove(segments.filter(|id| !named.contains(id)))
    }

    /// Removes the days whose newest row is no longer kept, from the checkpoint too. If days share
    /// a segment, removes the days that are over by then.
    fn expire(&self, now_ns: i64, done: &mut CompactionReport) -> Result<()> {
        let manifest = self.follower.manifest();
        let kept_from_ns = self.follower.kept_from_ns(now_ns.into());
        let expired = expired_days(&manifest, kept_from_ns);
        let from_ns = day_of(kept_from_ns).saturating_mul(DAY_NS);
        let mut next = (*manifest).clone();
        if let Some(hours_from_ns) = self.follower.hours_from_ns(now_ns.into()) {
            let mut keep = |entries: &[SegmentEntry], times_ns| {
                self.keep_hours_of(entries, (times_ns, hours_from_ns), &mut next, done)
            };
            let days = manifest.by_days().filter(|day| expired.contains(&day[0].day));
            days.into_iter().try_for_each(|day| keep(day, ALWAYS_NS))?;
            for entry in partly_expired(&manifest, kept_from_ns) {
                keep(&[*entry], i64::MIN..from_ns)?;
            }
        }
        next.segments.retain(|entry| !expired.contains(&entry.day));
        done.expired += (manifest.segments.len() - next.segments.len()) as u64;
        for entry in partly_expired(&manifest, kept_from_ns) {
            let left = self.rows_from(entry, from_ns, &manifest)?;
            if let Some(left) = &left {
                done.note_written(left);
            }
            done.expired += 1;
            done.purged += u64::from(!manifest.hiding(&Origin::Segment(entry.id)).is_empty());
            next.replace(&[*entry], left);
        }
        if next == *manifest {
            return Ok(());
        }
        self.registry.follow()?;
        let representatives = Representatives::new(&self.registry.names().catalog);
        let latest = self.follower.checkpoint(&manifest)?;
        self.write_checkpoint(&latest, &mut next, &representatives, done)?;
        self.replace(&manifest, next)
    }

    /// Returns the rows of a segment from an instant on, as a new segment.
    fn rows_from(
        &self,
        entry: &SegmentEntry,
        from_ns: i64,
        manifest: &Manifest,
    ) -> Result<Option<SegmentEntry>> {
        let extent = Extent::new(i64::MIN..from_ns, None, None)?;
        let expired = Tombstone { extent, position: 0, segments: [entry.id].into() };
        let mut manifest = manifest.clone();
        manifest.tombstones.push(expired);
        self.rewritten(&[*entry], &manifest, entry.effort())
    }

    /// Merges neighbouring segments of one day or of several days.
    fn merge_segments(
        &self,
        entries: &[SegmentEntry],
        effort: Effort,
        done: &mut CompactionReport,
    ) -> Result<()> {
        let manifest = self.follower.manifest();
        let mut next = (*manifest).clone();
        let merged = self.rewritten(entries, &manifest, effort)?;
        if let Some(merged) = &merged {
            done.note_written(merged);
        }
        next.replace(entries, merged);
        done.merged += entries.len() as u64;
        self.replace(&manifest, next)
    }

    /// Writes the rows of neighbouring segments that are not deleted into one new segment. Returns
    /// `None` if there are no such rows.
    fn rewritten(
        &self,
        entries: &[SegmentEntry],
        manifest: &Manifest,
        effort: Effort,
    ) -> Result<Option<SegmentEntry>> {
        self.registry.follow()?;
        let names = self.registry.names();
        let representatives = Representatives::new(&names.catalog);
        let open = entries.iter().map(|entry| self.sealed.segment(entry, &names.catalog));
        let open = open.collect::<Result<Vec<_>>>()?;
        drop(names);
        let segments: Vec<_> = open.iter().map(|open| &open.segment).collect();
        let hiding = entries.iter().map(|entry| manifest.hiding(&Origin::Segment(entry.id)));
        let hiding: Vec<_> = hiding.collect();
        let visible = |order: usize, table| match &*hiding[order] {
            [] => table,
            hiding => into_visible(table, hiding, &self.registry.names().catalog),
        };
        let mut writer = self.begin_segment(&representatives, manifest.last_ingest_ns, effort)?;
        merge(&*self.sealed.store, &representatives, &segments, visible, &mut writer)?;
        let written = writer.finish()?;
        if written.rows == 0 {
            self.sealed.store.remove_segment(&written.id)?;
            return Ok(None);
        }
        let ingest_s = entries.iter().map(|entry| entry.ingest_s).max().unwrap_or(0);
        Ok(Some(SegmentEntry::new(&written, ingest_s)))
    }

    /// Replaces `manifest` by `next`. Removes the segments that `next` no longer names.
    fn replace(&self, manifest: &Manifest, mut next: Manifest) -> Result<()> {
        next.generation = manifest.generation + 1;
        next.forget_tombstones();
        let sealer = self.sealed.sealing();
        let sealed = sealer.seal(BlobKind::Manifest, &next.encode())?;
        let named: HashSet<_> = next.ids().collect();
        let store = &self.sealed.store;
        let is_replaced = store.replace_manifest(manifest.generation, &sealed, next.compacted)?;
        drop(sealer);
        if !is_replaced {
            // Only the holder of the lock replaces the manifest, so another process has the lock
            // now.
            return Err(Error::Overtaken);
        }
        self.follower.follow_heads()?;
        self.remove(manifest.ids().filter(|id| !named.contains(id)))
    }

    /// Removes segments that no manifest names. If a stream of rows may still read segments, leaves
    /// them to the next compaction.
    fn remove(&self, segments: impl Iterator<Item = SegmentId>) -> Result<()> {
        let mut segments = segments.peekable();
        if segments.peek().is_none() {
            return Ok(());
        }
        let Some(_removal) = self.sealed.store.lock_removal()? else { return Ok(()) };
        for id in segments {
            self.sealed.store.remove_segment(&id)?;
        }
        Ok(())
    }
}

/// Returns `None` if another compactor took over.
fn unless_overtaken<T>(outcome: Result<Option<T>>) -> Result<Option<T>> {
    match outcome {
        Err(Error::Overtaken) => Ok(None),
        outcome => outcome,
    }
}
