//! The turn of the data key: writes again what the old key sealed, and then drops the old key.
//!
//! Each part of the work is complete by itself. A turn that broke off goes on with the next
//! compaction, which finds what is left in the heads of the segments and of the blocks.

use super::rest::CompactionTrigger;
use super::{CompactionReport, Compactor, unless_overtaken};
use crate::model::error::{Error, Result};
use crate::plane::sealed::{open_names, seal_names};
use crate::storage::manifest::SegmentEntry;
use crate::storage::seal::{BlobKind, KeySlot, blob_slot};
use crate::storage::segment::Representatives;
use crate::storage::store::{NamesPage, NewBlock};

/// Bytes of segments and names that one compaction writes again under a new key, unless a single
/// segment has more. Other work of the tenant and of other tenants comes in between.
const RESEALED_BYTES_MAX: u64 = 64 << 20;

impl Compactor {
    /// Turns the data key as [`crate::plane::Plane::rekey`] says. Returns `None` if another process
    /// compacts, or took over meanwhile.
    pub(in crate::plane) fn begin_turn(&self) -> Result<Option<()>> {
        unless_overtaken(self.try_to_begin_turn())
    }

    fn try_to_begin_turn(&self) -> Result<Option<()>> {
        let file = self.sealed.key_file()?;
        let Some(_lock) = self.sealed.lock_compaction()? else { return Ok(None) };
        file.turn()?;
        self.sealed.renew_keys(&self.sealed.sealer());
        self.follower.follow_heads()?;
        // Schedulers notice the new generation.
        let manifest = self.follower.manifest();
        self.replace(&manifest, (*manifest).clone())?;
        Ok(Some(()))
    }

    /// Returns the number of bytes of segments and blocks that the old key sealed, or `None` if
    /// there is no old key.
    pub(in crate::plane) fn old_key_bytes(&self) -> Result<Option<u64>> {
        let Some(old) = self.sealed.sealer().old() else {
            self.segment_slots.clear();
            return Ok(None);
        };
        let manifest = self.follower.manifest();
        let mut bytes = self.old_blocks(old)?;
        for entry in manifest.files() {
            match self.is_under(entry, old) {
                Ok(true) => bytes += entry.bytes,
                // A compaction has written it again by now.
                Ok(false) | Err(Error::Stale) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(bytes))
    }

    /// Returns true if the old key sealed blocks of the log.
    pub(super) fn log_has_old_key(&self) -> Result<bool> {
        match self.sealed.sealer().old() {
            Some(old) => Ok(self.old_blocks(old)? > 0),
            None => Ok(false),
        }
    }

    /// Writes again what the old key sealed, as far as it is time for that, and drops the old key
    /// when no bytes are left under it.
    pub(super) fn turn_key(
        &self,
        due: CompactionTrigger,
        now_ns: i64,
        done: &mut CompactionReport,
    ) -> Result<()> {
        let Some(old) = self.sealed.sealer().old() else {
            self.segment_slots.clear();
            return Ok(());
        };
        let mut left = RESEALED_BYTES_MAX;
        let manifest = self.follower.manifest();
        for entry in manifest.segments.iter().chain(&manifest.hours.segments) {
            if !self.is_under(entry, old)? {
                continue;
            }
            if due != CompactionTrigger::Now && (left == 0 || self.is_log_due(due, now_ns)?) {
                return Ok(());
            }
            self.merge_segments(&[*entry], entry.effort(), done)?;
            left = left.saturating_sub(entry.bytes);
        }
        if due == CompactionTrigger::Now {
            left = u64::MAX;
        }
        self.drop_key(old, left, done)
    }

    /// Drops the old key, unless a process still uses it, or more than `names_bytes_max` of names
    /// are left. All segments are under the new key.
    fn drop_key(
        &self,
        old: KeySlot,
        names_bytes_max: u64,
        done: &mut CompactionReport,
    ) -> Result<()> {
        let (Ok(file), Some(turns)) = (self.sealed.key_file(), self.sealed.store.key_turns())
        else {
            return Ok(());
        };
        // From here on, no process stores bytes under the old key.
        let kept = self.sealed.sealer().sealing_id();
        let Some(key) = turns.lock_key(old, kept)? else { return Ok(()) };
        self.follower.follow_heads()?;
        if self.old_blocks(old)? > 0 {
            return Ok(());
        }
        self.seal_manifest_anew(old, done)?;
        self.remove_orphans()?;
        // A stream of rows may still open segments of an earlier manifest.
        let Some(_reads) = turns.lock_reads()? else { return Ok(()) };
        let manifest = self.follower.manifest();
        let stored = self.sealed.store.segments()?;
        if stored.iter().any(|stored| !manifest.ids().any(|id| id == *stored)) {
            return Ok(());
        }
        // Blocks that were appended before are durable then, and no block is hidden from the look.
        self.sealed.store.append(vec![NewBlock::default()])?;
        if self.old_blocks(old)? > 0 {
            return Ok(());
        }
        if !self.seal_names_anew(old, names_bytes_max)? {
            return Ok(());
        }
        turns.replace_positions(&|sealed| {
            let position = self.sealed.open_blob(BlobKind::Beside, sealed)?;
            self.sealed.sealer().seal(BlobKind::Beside, &position)
        })?;
        file.drop_old(old, &*key)?;
        self.sealed.renew_keys(&self.sealed.sealer());
        Ok(())
    }

    /// Writes the checkpoint and the manifest again, if the old key sealed one of them.
    fn seal_manifest_anew(&self, old: KeySlot, done: &mut CompactionReport) -> Result<()> {
        let manifest = self.follower.manifest();
        let stored = self.sealed.store.snapshot()?.manifest;
        let is_old = stored.is_some_and(|sealed| blob_slot(&sealed) == Some(old));
        if !is_old && !self.is_under(&manifest.checkpoint, old)? {
            return Ok(());
        }
        self.registry.follow()?;
        let representatives = Representatives::new(&self.registry.names().catalog);
        let latest = self.follower.checkpoint(&manifest)?;
        let mut next = (*manifest).clone();
        self.write_checkpoint(&latest, &mut next, &representatives, done)?;
        self.replace(&manifest, next)
    }

    /// Seals pages of names under the new key, at most about `bytes_max`. Returns true if no page is
    /// left under the old key.
    fn seal_names_anew(&self, old: KeySlot, bytes_max: u64) -> Result<bool> {
        let (mut after, mut left) = (0, bytes_max);
        loop {
            let pages = self.sealed.store.names_after(after)?;
            let Some(last) = pages.last() else { return Ok(true) };
            after = last.sequence;
            let is_old = |page: &NamesPage| blob_slot(&page.sealed_names) == Some(old);
            let old: Vec<_> = pages.into_iter().filter(is_old).collect();
            if old.is_empty() {
                continue;
            }
            if left == 0 {
                return Ok(false);
            }
            let bytes: u64 = old.iter().map(|page| page.sealed_names.len() as u64).sum();
            let sealed = |page: NamesPage| {
                let names = self.sealed.opened(|sealer| open_names(sealer, &page))?;
                let sealed_names = seal_names(&self.sealed.sealer(), &page.place(), &names)?;
                Ok(NamesPage { sealed_names, ..page })
            };
            let pages = old.into_iter().map(sealed).collect::<Result<Vec<_>>>()?;
            self.sealed.store.replace_names(&pages)?;
            left = left.saturating_sub(bytes);
        }
    }

    /// Returns the number of bytes of the blocks that the key in slot `old` sealed.
    fn old_blocks(&self, old: KeySlot) -> Result<u64> {
        let mut after = self.follower.manifest().compacted;
        let mut bytes = 0;
        loop {
            let entries = self.sealed.store.log_after(after)?;
            let Some(last) = entries.last() else { return Ok(bytes) };
            after = last.sequence;
            let old = entries.iter().filter(|entry| blob_slot(&entry.sealed) == Some(old));
            bytes += old.map(|entry| entry.sealed.len() as u64).sum::<u64>();
        }
    }

    /// Returns true if the key in slot `slot` sealed a segment.
    fn is_under(&self, entry: &SegmentEntry, slot: KeySlot) -> Result<bool> {
        Ok(entry.bytes > 0 && self.segment_slots.of(&*self.sealed.store, &entry.id)? == slot)
    }
}
