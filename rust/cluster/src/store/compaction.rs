//! The single compactor: a lease with a fence, and the manifest that only the lease's holder
//! replaces.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fleetcast_core::model::error::Result;
use fleetcast_core::storage::store::CompactionLock;
use tokio::task::AbortHandle;
use tokio::time::interval;
use tokio_postgres::types::ToSql;

use super::ClusterStore;
use super::lease::Lease;
use super::small::{lock, signed};
use crate::cluster::{Cluster, change};
use crate::failure::StatementFailure;
use crate::identity::Id;
use crate::seen::timeline;

const WHAT: &str = "take the lease of compaction";
const REPLACING: &str = "replace the manifest";

/// Time between renewals of a lease of 30 seconds.
const RENEW_EVERY: Duration = Duration::from_secs(10);

const TAKE: &str = "\
    UPDATE plane SET fence = fence + 1, held_until = clock_timestamp() + '30 s' \
    WHERE plane = $1 AND held_until < clock_timestamp() AND wrapped_key IS NOT NULL RETURNING fence";
const RENEW: &str = "\
    UPDATE plane SET held_until = clock_timestamp() + '30 s' WHERE plane = $1 AND fence = $2 RETURNING fence";
const GIVE_BACK: &str =
    "UPDATE plane SET held_until = '-infinity' WHERE plane = $1 AND fence = $2 RETURNING fence";

/// Replaces the manifest, notes the compacted position, and subtracts the bytes that leave the log.
/// `$3` is the fence, or 0 for a process that loads a plane that no other process knows. `$7` is the
/// timeline that the segments were made under: a new primary may lack their rows.
const REPLACE: &str = concat!(
    "\
    WITH p AS (SELECT plane, compacted AS before, least(greatest($5, compacted), last) AS upto \
            FROM plane JOIN head USING (plane) WHERE plane = $1), \
        u AS (UPDATE plane SET generation = generation + 1, manifest = $4, manifest_id = $6, compacted = p.upto FROM p \
            WHERE plane.plane = $1 AND generation = $2 AND ($3::int8 = 0 OR fence = $3) \
            AND $7 = ",
    timeline!(),
    " RETURNING plane.plane), \
        gone AS (SELECT coalesce(sum(octet_length(sealed)), 0)::int8 AS bytes FROM log, p \
            WHERE log.plane = $1 AND seq > p.before AND seq <= p.upto) \
    UPDATE head SET log_bytes = log_bytes - gone.bytes FROM u, gone WHERE head.plane = u.plane RETURNING last"
);
const MANIFEST: &str = "SELECT generation, manifest_id FROM plane WHERE plane = $1";
const KEEP: &str = "UPDATE plane SET retention_seconds = $2 WHERE plane = $1 AND wrapped_key IS NOT NULL RETURNING 1";

/// Gives the lease back when it is dropped.
struct LeaseGuard {
    cluster: Arc<Cluster>,
    plane: Id,
    lease: Arc<Lease>,
    renewing: AbortHandle,
}

impl CompactionLock for LeaseGuard {}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.renewing.abort();
        self.lease.is_given_back.store(true, Ordering::Release);
        // If this fails, the lease runs out by itself.
        drop(self.cluster.change(WHAT, GIVE_BACK, &[&self.plane, &self.lease.fence]));
    }
}

impl ClusterStore {
    pub(super) fn take_lease(&self) -> Result<Option<Box<dyn CompactionLock>>> {
        let rows = self.cluster.change(WHAT, TAKE, &[&self.plane])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let lease = Arc::new(Lease { fence: row.get(0), is_given_back: AtomicBool::new(false) });
        let (plane, fence) = (self.plane, lease.fence);
        let renewing = self.cluster.spawn(move |pool| async move {
            let mut ticks = interval(RENEW_EVERY);
            ticks.tick().await;
            loop {
                ticks.tick().await;
                let parameters: [&(dyn ToSql + Sync); 2] = [&plane, &fence];
                // A renewal that fails is tried again with the next tick.
                if let Ok(Ok(rows)) = change(&pool, WHAT, RENEW, &parameters).await
                    && rows.is_empty()
                {
                    return;
                }
            }
        })?;
        *lock(&self.lease) = Some(Arc::clone(&lease));
        let cluster = Arc::clone(&self.cluster);
        Ok(Some(Box::new(LeaseGuard { cluster, plane: self.plane, lease, renewing })))
    }

    /// Returns the fence of the lease that this handle believes to hold, or 0 without a lease.
    pub(super) fn fence(&self) -> i64 {
        let lease = lock(&self.lease);
        let held = lease.as_ref().filter(|lease| !lease.is_given_back.load(Ordering::Acquire));
        held.map_or(0, |lease| lease.fence)
    }

    pub(super) fn swap_manifest(
        &self,
        generation: u64,
        manifest: &[u8],
        compacted: u64,
    ) -> Result<bool> {
        let id = Id::of_sealed(manifest, "the sealed manifest")?;
        let fence = self.fence();
        let (from, upto) = (signed(generation), signed(compacted));
        let timeline = self.timeline_text();
        let parameters: [&(dyn ToSql + Sync); 7] =
            [&self.plane, &from, &fence, &manifest, &upto, &id, &timeline];
        let replaced = self.cluster.change_surely(REPLACING, REPLACE, &parameters)?;
        let rows = replaced.map_err(|failure: StatementFailure| failure.of_change(REPLACING))?;
        // If no row changed, an earlier attempt whose answer was lost may have stored the manifest.
        let is_replaced = !rows.is_empty() || self.has_manifest(generation + 1, id)?;
        if is_replaced {
            lock(&self.known).note_manifest(generation + 1, id);
        }
        Ok(is_replaced)
    }

    fn has_manifest(&self, generation: u64, id: Id) -> Result<bool> {
        let rows = self.cluster.read(REPLACING, MANIFEST, &[&self.plane])?;
        let row = rows.first().ok_or_else(|| self.missing())?;
        Ok(row.get::<_, i64>(0) == signed(generation) && row.get::<_, Option<Id>>(1) == Some(id))
    }

    pub(super) fn keep_rows(&self, seconds: u64) -> Result<()> {
        let kept =
            self.cluster.change("set the retention", KEEP, &[&self.plane, &signed(seconds)])?;
        if kept.is_empty() { Err(self.missing()) } else { Ok(()) }
    }
}
