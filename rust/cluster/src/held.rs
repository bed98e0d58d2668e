//! Entries of the log whose segment the object store has lost. They are the only copy, so they stay
//! in a table of their own when their hour is removed, and the hours of all planes go as usual.

use std::collections::BTreeSet;

use fleetcast_core::model::error::{Error, Result};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio_postgres::Row;

use crate::connection::Session;
use crate::identity::Id;
use crate::objects::Objects;

const WHAT: &str = "keep entries whose segment is lost";

/// Bound on the concurrent requests to the object store.
pub(crate) const TOGETHER: usize = 16;

/// The table, a partition of the log that is no hour.
const MAKE: &str = "DO $$ BEGIN \
    IF to_regclass('log_held') IS NULL THEN \
        CREATE TABLE log_held (LIKE log INCLUDING ALL); \
        ALTER TABLE log ATTACH PARTITION log_held FOR VALUES IN (-1); \
    END IF; END $$";
const HOLD: &str = "WITH moved AS (DELETE FROM log WHERE slot = $1 AND plane = ANY ($2::uuid[]) RETURNING *) \
    INSERT INTO log SELECT -1, plane, seq, id, sealed FROM moved";
/// The planes that have entries here.
pub(crate) const HELD: &str = "SELECT DISTINCT plane FROM log WHERE slot = -1";
const SEGMENTS: &str = "SELECT plane, id, bytes FROM segment \
    WHERE plane = ANY ($1::uuid[]) AND removed_at IS NULL AND bytes IS NOT NULL";
const RELEASE: &str = "DELETE FROM log WHERE slot = -1 AND plane = ANY ($1::uuid[])";

/// Returns the planes of which the object store lacks one of these segments, or has it with another
/// length. Rows have a plane, an id and a length.
///
/// # Errors
/// Returns the errors of an object store that cannot be used.
pub(crate) async fn planes_lacking(objects: &Objects, segments: &[Row]) -> Result<Vec<Id>> {
    let checks = segments.iter().map(|row| async {
        let (plane, bytes): (Id, i64) = (row.get(0), row.get(2));
        match objects.length(plane, row.get(1)).await {
            Ok(length) => Ok((i64::try_from(length) != Ok(bytes)).then_some(plane)),
            Err(Error::Stale) => Ok(Some(plane)),
            Err(error) => Err(error),
        }
    });
    let found: Vec<Option<Id>> =
        stream::iter(checks).buffer_unordered(TOGETHER).try_collect().await?;
    let found: BTreeSet<[u8; 16]> = found.into_iter().flatten().map(|plane| plane.0).collect();
    Ok(found.into_iter().map(Id).collect())
}

/// Keeps the entries that these planes have in the hour `slot`.
pub(crate) async fn hold(connection: &Session, slot: i32, planes: &[Id]) -> Result<()> {
    if planes.is_empty() {
        return Ok(());
    }
    connection.run(WHAT, MAKE).await.map_err(|failure| failure.of_change(WHAT))?;
    let held = connection.change(WHAT, HOLD, &[&slot, &planes]).await;
    held.map(drop).map_err(|failure| failure.of_change(WHAT))
}

/// Removes the entries of planes whose segments are all in the object store again, and of planes
/// that were destroyed. Returns the other planes that have entries here.
pub(crate) async fn release(connection: &Session, objects: &Objects) -> Result<Vec<Id>> {
    let read = |rows: Result<Vec<Row>, _>| {
        rows.map_err(|failure: crate::failure::StatementFailure| failure.of_read(WHAT))
    };
    let held = read(connection.query(WHAT, HELD, &[]).await)?;
    let held: Vec<Id> = held.iter().map(|row| row.get(0)).collect();
    if held.is_empty() {
        return Ok(held);
    }
    let segments = read(connection.query(WHAT, SEGMENTS, &[&held]).await)?;
    let damaged = planes_lacking(objects, &segments).await?;
    let whole: Vec<Id> = held.into_iter().filter(|plane| !damaged.contains(plane)).collect();
    let released = connection.change(WHAT, RELEASE, &[&whole]).await;
    released.map_err(|failure| failure.of_change(WHAT))?;
    Ok(damaged)
}
