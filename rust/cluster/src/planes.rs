//! Planes of an installation, by name.

use std::sync::Arc;

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::seal::KeyId;
use fleetcast_core::storage::store::{KeyLock, PeekedCounts, Planes, Store};
use tokio_postgres::Row;

use crate::cluster::Cluster;
use crate::identity::Id;
use crate::store::ClusterStore;

const MAKING: &str = "make a plane";
const FINDING: &str = "find a plane";
const TURNING: &str = "turn the data key";
const DESTROYING: &str = "destroy a plane";

const MAKE: &str = "\
    WITH p AS (INSERT INTO plane (plane) VALUES ($1) ON CONFLICT DO NOTHING RETURNING plane) \
    INSERT INTO head (plane) SELECT plane FROM p RETURNING 1";
/// The key is stored last: a plane without a key was never acknowledged and cannot be opened.
const NAME: &str = "\
    UPDATE plane SET wrapped_key = $2 WHERE plane = $1 AND wrapped_key IS NULL \
    AND EXISTS (SELECT FROM head WHERE head.plane = $1) RETURNING 1";
const REPLACE_KEY: &str = "\
    UPDATE plane SET wrapped_key = $2 WHERE plane = $1 AND wrapped_key = $3 RETURNING 1";
/// Keys are opened by the statement that brings them to the key file.
const TURN_KEY: &str = "\
    WITH p AS (UPDATE plane SET wrapped_key = $2, open_keys = $4, turned_at = clock_timestamp() \
        WHERE plane = $1 AND wrapped_key = $3 RETURNING plane) \
    UPDATE head SET open_keys = $4 FROM p WHERE head.plane = p.plane RETURNING 1";
/// `$4` is the fence of the compactor that has found no bytes under the old key.
const DROP_KEY: &str = "\
    UPDATE plane SET wrapped_key = $2 WHERE plane = $1 AND wrapped_key = $3 AND fence = $4 RETURNING 1";
const KEY: &str = "SELECT wrapped_key FROM plane WHERE plane = $1";
/// One of these numbers changes with every change of rows, names or segments.
const STATES: &str = "SELECT plane, last, generation, pages FROM plane JOIN head USING (plane)";
/// Without the head, no process can append to the plane. The next sweeps remove the remaining rows.
const DESTROY: &str = "\
    WITH p AS (UPDATE plane SET wrapped_key = NULL, manifest = NULL, fence = fence + 1 WHERE plane = $1 RETURNING plane), \
        s AS (UPDATE segment SET removed_at = clock_timestamp() FROM p \
            WHERE segment.plane = p.plane AND removed_at IS NULL), \
        i AS (DELETE FROM import USING p WHERE import.plane = p.plane) \
    DELETE FROM head USING p WHERE head.plane = p.plane RETURNING 1";

/// The numbers of the last entry, the manifest and the last page of names of a plane.
pub type PlaneRevision = (i64, i64, i64);

impl Cluster {
    /// Returns the name and the state of each plane. One statement asks for all planes. So a process
    /// that looks for changes sends as many statements with a thousand tenants as with one.
    ///
    /// # Errors
    /// Returns an error if the database cannot be used.
    pub fn plane_states(&self) -> Result<Vec<(String, PlaneRevision)>> {
        let rows = self.read("read the states of planes", STATES, &[])?;
        let state = |row: &Row| {
            let plane: Id = row.get(0);
            (plane.hyphenated(), (row.get(1), row.get(2), row.get(3)))
        };
        Ok(rows.iter().map(state).collect())
    }
}

/// The planes of an installation.
pub struct ClusterPlanes {
    cluster: Arc<Cluster>,
}

impl ClusterPlanes {
    /// Makes the planes of `cluster`, which must have objects.
    #[must_use]
    pub fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster }
    }

    fn store(&self, plane: Id) -> ClusterStore {
        ClusterStore::new(Arc::clone(&self.cluster), plane)
    }
}

impl Planes for ClusterPlanes {
    fn create(
        &self,
        plane: &str,
        wrapped_key: &[u8],
        fill: &mut dyn FnMut(&dyn Store) -> Result<()>,
    ) -> Result<()> {
        let id = Id::of_plane(plane)?;
        if self.cluster.change(MAKING, MAKE, &[&id])?.is_empty() {
            return Err(Error::Exists(format!("the plane {plane}")));
        }
        fill(&self.store(id))?;
        let named = self.cluster.change(MAKING, NAME, &[&id, &wrapped_key])?;
        if named.is_empty() { Err(Error::Missing(format!("the plane {plane}"))) } else { Ok(()) }
    }

    fn wrapped_key(&self, plane: &str) -> Result<Vec<u8>> {
        let rows = self.cluster.read(FINDING, KEY, &[&Id::of_plane(plane)?])?;
        let key = rows.first().and_then(|row| row.get(0));
        key.ok_or_else(|| Error::Missing(format!("the plane {plane}")))
    }

    fn open(&self, plane: &str) -> Result<Box<dyn Store>> {
        self.open_with_key(plane).map(|(_, store)| store)
    }

    fn open_with_key(&self, plane: &str) -> Result<(Vec<u8>, Box<dyn Store>)> {
        Ok((self.wrapped_key(plane)?, Box::new(self.store(Id::of_plane(plane)?))))
    }

    fn replace_key(&self, plane: &str, before: &[u8], wrapped_key: &[u8]) -> Result<bool> {
        let id = Id::of_plane(plane)?;
        let named = self.cluster.change(MAKING, REPLACE_KEY, &[&id, &wrapped_key, &before])?;
        if named.is_empty() { self.wrapped_key(plane).map(|_| false) } else { Ok(true) }
    }

    fn turn_key(
        &self,
        plane: &str,
        before: &[u8],
        wrapped_key: &[u8],
        open: &[KeyId],
    ) -> Result<bool> {
        let id = Id::of_plane(plane)?;
        let open: Vec<Id> = open.iter().copied().map(Id).collect();
        self.cluster.refuse_earlier_releases()?;
        let turned =
            self.cluster.change(TURNING, TURN_KEY, &[&id, &wrapped_key, &before, &open])?;
        if turned.is_empty() { self.wrapped_key(plane).map(|_| false) } else { Ok(true) }
    }

    fn drop_key(
        &self,
        plane: &str,
        before: &[u8],
        wrapped_key: &[u8],
        lock: &dyn KeyLock,
    ) -> Result<bool> {
        let (id, fence) = (Id::of_plane(plane)?, lock.fence());
        let dropped =
            self.cluster.change(TURNING, DROP_KEY, &[&id, &wrapped_key, &before, &fence])?;
        let is_same = dropped.is_empty() && self.wrapped_key(plane)? == before;
        if is_same { Err(Error::Overtaken) } else { Ok(!dropped.is_empty()) }
    }

    fn destroy(&self, plane: &str) -> Result<()> {
        self.cluster.change(DESTROYING, DESTROY, &[&Id::of_plane(plane)?]).map(drop)
    }

    fn counts(&self, plane: &str) -> Result<PeekedCounts> {
        let numbers = self.store(Id::of_plane(plane)?).numbers()?;
        Ok(PeekedCounts {
            counts: numbers.counts,
            generation: numbers.generation,
            series: numbers.series,
            segments: numbers.segments,
            space: numbers.space,
        })
    }
}
