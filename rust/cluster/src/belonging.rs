//! The object store of an installation, known again by its marker.
//!
//! A node with another bucket or prefix finds no segment there, and its first compaction would hide
//! rows from all nodes. So a process compares the marker's id with the id in the database before it
//! uses the first object.

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::seal::random_plane_id;
use tokio::time::timeout;
use tokio_postgres::Row;

use crate::cluster::{BEGIN, CHANGE_TIMEOUT, Cluster, LATE};
use crate::failure::{self, StatementFailure};
use crate::identity::Id;
use crate::objects::Objects;
use crate::pool::Pool;

const WHAT: &str = "find the object store's id";

/// The id, and a segment that the object store must have, if either is known.
const FIND: &str = "SELECT (SELECT value FROM record WHERE store = 'objects' AND space = '' AND key = ''), \
    s.plane, s.id FROM (SELECT 1) one LEFT JOIN \
    (SELECT plane, id FROM segment WHERE removed_at IS NULL AND bytes IS NOT NULL ORDER BY made_at DESC LIMIT 1) s ON true";
const NOTE: &str =
    "INSERT INTO record VALUES ('objects', '', '', $1) ON CONFLICT DO NOTHING RETURNING 1";

/// The id in the database; plane and id of a segment.
type NotedIds = (Option<Id>, Option<(Id, Id)>);

impl Cluster {
    /// Returns the objects, once it is certain that they belong to this installation. The first
    /// call of a process asks the database and the object store.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the settings name no objects, and [`Error::Unavailable`] if the
    /// objects belong to another installation or cannot be asked.
    pub(crate) fn objects(&self) -> Result<&Objects> {
        if self.has_own_objects()? {
            self.objects_unchecked()
        } else {
            Err(Error::Unavailable { what: ANOTHER.to_owned() })
        }
    }

    /// Returns true if the objects belong to this installation.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the settings name no objects, and [`Error::Unavailable`] if the
    /// database or the objects cannot be asked.
    pub(crate) fn has_own_objects(&self) -> Result<bool> {
        if !self.knows_objects()? {
            if !self.compare_marker(self.objects_unchecked()?)? {
                return Ok(false);
            }
            self.know_objects()?;
        }
        Ok(true)
    }

    fn compare_marker(&self, objects: &Objects) -> Result<bool> {
        let (noted, segment) = self.noted()?;
        let found = self.wait(|_| objects.marker())?;
        let is_here = segment.map(|segment| self.has_segment(objects, segment)).transpose()?;
        match (noted, found) {
            (Some(noted), Some(found)) => Ok(noted == found),
            // The marker was deleted, or this is another object store.
            (Some(noted), None) => {
                if is_here == Some(true) {
                    self.wait(|_| objects.put_marker(noted))?;
                }
                Ok(is_here == Some(true))
            }
            (None, _) if is_here == Some(false) => Ok(false),
            (None, found) => self.note(objects, found),
        }
    }

    /// Notes the id of the marker, which is made if there is none. The database decides between
    /// processes that do so at once: the later process waits for the earlier.
    fn note(&self, objects: &Objects, found: Option<Id>) -> Result<bool> {
        let id = found.map_or_else(|| random_plane_id().map(Id), Ok)?;
        let is_first = self.wait(|pool| async move {
            let noting = note_and_mark(&pool, objects, id, found.is_some());
            let noted = timeout(CHANGE_TIMEOUT, noting).await;
            noted.unwrap_or_else(|_| Err(failure::unknown(WHAT, LATE)))
        })?;
        // The marker of another process may have come since this process looked for one.
        Ok(is_first || self.noted()?.0 == self.wait(|_| objects.marker())?)
    }

    fn has_segment(&self, objects: &Objects, (plane, id): (Id, Id)) -> Result<bool> {
        match self.wait(|_| objects.length(plane, id)) {
            Ok(_) => Ok(true),
            Err(Error::Stale) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn noted(&self) -> Result<NotedIds> {
        let rows = self.read(WHAT, FIND, &[])?;
        let Some(row) = rows.first() else { return Ok((None, None)) };
        let id = |row: &Row| -> Option<Id> {
            let bytes: Option<Vec<u8>> = row.get(0);
            bytes.and_then(|bytes| bytes.try_into().ok()).map(Id)
        };
        let segment = row.get::<_, Option<Id>>(1).zip(row.get(2));
        Ok((id(row), segment))
    }
}

/// Notes the id, and makes the marker unless there is one. Returns false if an id is noted already.
///
/// The transaction ends after the marker is there. So no process sees an id whose marker is still to
/// come, and if this process ends before, no id is noted.
async fn note_and_mark(pool: &Pool, objects: &Objects, id: Id, is_marked: bool) -> Result<bool> {
    let connection = pool.own().await?;
    let refused = |failure: StatementFailure| failure.of_read(WHAT);
    connection.run(WHAT, BEGIN).await.map_err(refused)?;
    let rows = connection.query(WHAT, NOTE, &[&&id.0[..]]).await.map_err(refused)?;
    let is_first = !rows.is_empty();
    if is_first && !is_marked {
        objects.put_marker(id).await?;
    }
    connection.run(WHAT, "COMMIT").await.map_err(|failure| failure.of_change(WHAT))?;
    connection.keep();
    Ok(is_first)
}

/// Said to operators.
pub(crate) const ANOTHER: &str = "store.objects \
    names another object store than the installation's: give the bucket and prefix of its other nodes";
