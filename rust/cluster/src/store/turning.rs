//! The turn of a data key, as one compactor does it for all nodes.
//!
//! Each statement has the fence of the compactor's lease, so a compactor that slept changes no data.

use std::time::Instant;

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::seal::{KeyId, KeySlot};
use fleetcast_core::storage::store::{KeyLock, KeyTurns, NamesPage, SegmentsLock, encode_names};
use tokio_postgres::types::ToSql;

use super::small::signed;
use super::{ClusterStore, SegmentRetention};
use crate::identity::Id;

const WHAT: &str = "turn the data key";

/// Closes all keys but `$3`, some time after the turn. A batch that waits for the row of the head is
/// checked again by PostgreSQL, so no batch under a closed key comes later.
const CLOSE: &str = "\
    WITH p AS (UPDATE plane SET open_keys = ARRAY[$3::uuid] WHERE plane = $1 AND fence = $2 \
        AND coalesce(turned_at < clock_timestamp() - interval '10 s', true) RETURNING plane) \
    UPDATE head SET open_keys = ARRAY[$3::uuid] FROM p WHERE head.plane = p.plane RETURNING 1";

/// Finds readers that began before the last segment was removed. They may still open segments under
/// the old key.
const READERS: &str = "SELECT EXISTS (SELECT FROM pin WHERE plane = $1 AND until > clock_timestamp() \
    AND since <= (SELECT max(removed_at) FROM segment WHERE plane = $1))";

/// The row of the plane is locked, so that no other compactor takes the lease before this commit.
/// `$2` is the fence, or 0 as in `REPLACE`.
macro_rules! fenced {
    ($change:literal) => {
        concat!(
            "WITH p AS MATERIALIZED (SELECT plane FROM plane \
                WHERE plane = $1 AND ($2::int8 = 0 OR fence = $2) FOR SHARE), c AS (",
            $change,
            ") SELECT FROM p"
        )
    };
}

/// A page keeps its id, by which other handles know it.
const REPLACE_PAGES: &str = fenced!(
    "UPDATE names SET page_bytes = u.bytes FROM p, unnest($3::int8[], $4::bytea[]) AS u(page, bytes) \
     WHERE names.plane = p.plane AND names.page = u.page"
);

const POSITIONS: &str = "SELECT key, position FROM import WHERE plane = $1";
const REPLACE_POSITIONS: &str = fenced!(
    "UPDATE import SET position = u.now FROM p, unnest($3::uuid[], $4::bytea[], $5::bytea[]) AS u(key, before, now) \
     WHERE import.plane = p.plane AND import.key = u.key AND import.position = u.before"
);

/// A key that the database has closed, by the compactor with this fence.
struct ClosedKey {
    fence: i64,
}

impl KeyLock for ClosedKey {
    fn fence(&self) -> i64 {
        self.fence
    }
}

impl KeyTurns for ClusterStore {
    fn hold_key(&self, _slot: KeySlot) -> Result<bool> {
        Ok(true)
    }

    fn note_key(&self, slot: KeySlot, id: KeyId, known_at: Instant) {
        self.keys.note(slot, id, known_at);
    }

    fn may_have_turned(&self) -> bool {
        self.keys.may_have_turned()
    }

    fn lock_key(&self, _old: KeySlot, kept: KeyId) -> Result<Option<Box<dyn KeyLock>>> {
        self.check()?;
        let fence = self.fence();
        let closed = self.cluster.change(WHAT, CLOSE, &[&self.plane, &fence, &Id(kept)])?;
        Ok((!closed.is_empty()).then(|| Box::new(ClosedKey { fence }) as _))
    }

    fn lock_reads(&self) -> Result<Option<Box<dyn SegmentsLock>>> {
        self.check()?;
        let rows = self.cluster.read(WHAT, READERS, &[&self.plane])?;
        let has_readers: bool = rows.first().is_some_and(|row| row.get(0));
        Ok((!has_readers).then(|| Box::new(SegmentRetention) as _))
    }

    fn replace_positions(&self, change: &dyn Fn(&[u8]) -> Result<Vec<u8>>) -> Result<()> {
        self.check()?;
        let rows = self.cluster.read(WHAT, POSITIONS, &[&self.plane])?;
        let keys: Vec<Id> = rows.iter().map(|row| row.get(0)).collect();
        let before: Vec<&[u8]> = rows.iter().map(|row| row.get(1)).collect();
        let now: Vec<_> = before.iter().map(|sealed| change(sealed)).collect::<Result<_>>()?;
        self.change_fenced(REPLACE_POSITIONS, &[&keys, &before, &now])
    }
}

impl ClusterStore {
    pub(super) fn replace_pages(&self, pages: &[NamesPage]) -> Result<()> {
        let numbers: Vec<i64> = pages.iter().map(|page| signed(page.sequence)).collect();
        let bytes: Vec<Vec<u8>> = pages.iter().map(encode_names).collect();
        self.change_fenced(REPLACE_PAGES, &[&numbers, &bytes])
    }

    /// # Errors
    /// Returns [`Error::Overtaken`] if this handle has lost its lease.
    fn change_fenced(&self, sql: &'static str, content: &[&(dyn ToSql + Sync)]) -> Result<()> {
        let fence = self.fence();
        let own: [&(dyn ToSql + Sync); 2] = [&self.plane, &fence];
        let rows = self.cluster.change(WHAT, sql, &[&own, content].concat())?;
        if rows.is_empty() { Err(Error::Overtaken) } else { Ok(()) }
    }
}
