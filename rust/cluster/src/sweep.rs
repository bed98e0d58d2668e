//! Removal of unneeded data: hours of the log, objects that no manifest names, names of planes that
//! were destroyed.

use std::time::Duration;

use fleetcast_core::model::error::Result;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::cluster::Cluster;
use crate::connection::Session;
use crate::held;
use crate::identity::Id;
use crate::objects::Objects;
use crate::partitions::{self, HourPartition};
use crate::pool::Pool;

const WHAT: &str = "sweep";

/// One process at a time sweeps. The lock ends with its session at the latest.
const LOCK: &str =
    "SELECT pg_try_advisory_lock(hashtextextended('fleetcast sweep ' || current_schema(), 0))";
const UNLOCK: &str =
    "SELECT pg_advisory_unlock(hashtextextended('fleetcast sweep ' || current_schema(), 0))";

const RETIRED: &str = "SELECT plane, id FROM segment \
    WHERE removed_at < clock_timestamp() - make_interval(secs => $1) AND NOT EXISTS ( \
        SELECT FROM pin WHERE pin.plane = segment.plane AND since <= removed_at AND until > clock_timestamp()) \
    LIMIT 1000";
const UNPIN: &str = "DELETE FROM pin WHERE until < clock_timestamp()";
const FORGET: &str = "DELETE FROM segment s USING unnest($1::uuid[], $2::uuid[]) AS u(plane, id) \
    WHERE s.plane = u.plane AND s.id = u.id";
const DESTROYED: &str = "DELETE FROM names n USING plane p WHERE n.plane = p.plane AND p.wrapped_key IS NULL \
    AND NOT EXISTS (SELECT FROM head h WHERE h.plane = p.plane)";
const MADE_SINCE: &str = "SELECT plane, id, bytes FROM segment \
    WHERE removed_at IS NULL AND bytes IS NOT NULL AND made_at >= to_timestamp($1::int8 * 3600)";

/// The removed data of a sweep, and the damage that it found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepCounts {
    /// Count of removed hours of the log.
    pub hours: u32,
    /// Count of removed objects.
    pub objects: u32,
    /// Names of planes with rows in the log because the object store lacks one of their segments.
    pub damaged: Vec<String>,
}

impl Cluster {
    /// Makes the next hours of the log. Removes hours that ended over an hour ago, if all their
    /// entries are compacted. Removes objects that no manifest has named for `keep`, unless a
    /// reader has pinned them. Does no work if another process sweeps.
    ///
    /// Before entries are removed, the object store is asked for the segments that hold them. If a
    /// segment is missing or has another length, the entries of its plane are kept aside.
    ///
    /// # Errors
    /// Returns the errors of a database or objects that cannot be used.
    pub fn sweep(&self, keep: Duration) -> Result<SweepCounts> {
        let objects = self.objects()?;
        self.wait(|pool| async move {
            let connection = pool.own().await?;
            let rows =
                connection.query(WHAT, LOCK, &[]).await.map_err(|failure| failure.of_read(WHAT))?;
            if !rows.first().is_some_and(|row| row.get(0)) {
                connection.keep();
                return Ok(SweepCounts::default());
            }
            let swept = sweep(&pool, &connection, objects, keep).await;
            if connection.query(WHAT, UNLOCK, &[]).await.is_ok() {
                connection.keep();
            }
            swept
        })
    }
}

async fn sweep(
    pool: &Pool,
    connection: &Session,
    objects: &Objects,
    keep: Duration,
) -> Result<SweepCounts> {
    let now = partitions::slot_of(pool.seen.database_now_us());
    for slot in now..=now + partitions::AHEAD {
        partitions::make(connection, slot).await?;
    }
    let removed = delete_retired(connection, objects, keep).await?;
    change(connection, DESTROYED, &[]).await?;
    change(connection, UNPIN, &[]).await?;
    let mut hours = 0;
    for hour in partitions::all(connection).await? {
        // Attempts at an append end within seconds of their hour.
        if hour.slot <= now - 2 && drop_hour(connection, objects, hour).await? {
            hours += 1;
        }
    }
    let damaged = held::release(connection, objects).await?.into_iter().map(Id::hyphenated);
    Ok(SweepCounts { hours, objects: removed, damaged: damaged.collect() })
}

async fn change(
    connection: &Session,
    sql: &'static str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>> {
    connection.change(WHAT, sql, parameters).await.map_err(|failure| failure.of_change(WHAT))
}

async fn delete_retired(connection: &Session, objects: &Objects, keep: Duration) -> Result<u32> {
    let rows = change(connection, RETIRED, &[&keep.as_secs_f64()]).await?;
    let retired: Vec<(Id, Id)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let deletes = retired.iter().map(|(plane, id)| objects.delete(*plane, *id));
    stream::iter(deletes).buffer_unordered(held::TOGETHER).try_collect::<()>().await?;
    // The rows are deleted last: an object without a row would stay for ever.
    let (planes, ids): (Vec<Id>, Vec<Id>) = retired.into_iter().unzip();
    change(connection, FORGET, &[&planes, &ids]).await?;
    Ok(u32::try_from(ids.len()).unwrap_or(u32::MAX))
}

async fn drop_hour(connection: &Session, objects: &Objects, hour: HourPartition) -> Result<bool> {
    if hour.is_attached {
        if hour.is_needed(connection).await? {
            return Ok(false);
        }
        // The segments that hold its entries were written since it began.
        let written = change(connection, MADE_SINCE, &[&i64::from(hour.slot)]).await?;
        let damaged = held::planes_lacking(objects, &written).await?;
        held::hold(connection, hour.slot, &damaged).await?;
    }
    hour.remove(connection).await?;
    Ok(true)
}
