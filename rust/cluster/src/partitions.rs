//! Hours of the log. Each hour is a table, so that compacted entries are removed by dropping a
//! table.

use fleetcast_core::model::error::Result;

use tokio_postgres::Row;

use crate::connection::Session;
use crate::failure::StatementFailure;

const US_PER_SLOT: i64 = 3_600_000_000;

/// Count of the partitions that are made before their hour begins.
pub(crate) const AHEAD: i32 = 3;

/// Returns the hour of an instant in microseconds since 1970. Example: 7,200,000,000 is hour 2.
pub(crate) fn slot_of(us: i64) -> i32 {
    i32::try_from(us.div_euclid(US_PER_SLOT)).unwrap_or(i32::MAX)
}

/// Makes the partition of an hour if it is missing. The table is created apart and then attached,
/// for which no writer waits.
pub(crate) async fn make(connection: &Session, slot: i32) -> Result<()> {
    let sql = format!(
        "DO $$ BEGIN \
            PERFORM pg_advisory_xact_lock(hashtextextended('fleetcast partitions', 0)); \
            IF to_regclass('log_{slot}') IS NULL THEN \
                CREATE TABLE log_{slot} (LIKE log INCLUDING ALL); \
                ALTER TABLE log ATTACH PARTITION log_{slot} FOR VALUES IN ({slot}); \
            END IF; \
        END $$"
    );
    let what = "make a partition of the log";
    connection.run(what, &sql).await.map_err(|failure| failure.of_change(what))
}

const LIST: &str = "SELECT c.relname::text, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false) \
    FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid \
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname ~ '^log_[0-9]+$'";

/// The table of an hour.
pub(crate) struct HourPartition {
    pub(crate) slot: i32,
    /// False if a process died while it removed the table.
    pub(crate) is_attached: bool,
    /// True if the removal began and was cut off.
    is_pending: bool,
}

/// Returns all hours that have a table.
pub(crate) async fn all(connection: &Session) -> Result<Vec<HourPartition>> {
    let rows = connection.query(REMOVING, LIST, &[]).await;
    let rows = rows.map_err(|failure| failure.of_read(REMOVING))?;
    let hour = |row: &Row| {
        let name: &str = row.get(0);
        let slot = name.strip_prefix("log_")?.parse().ok()?;
        Some(HourPartition { slot, is_attached: row.get(1), is_pending: row.get(2) })
    };
    Ok(rows.iter().filter_map(hour).collect())
}

const REMOVING: &str = "remove an hour of the log";

impl HourPartition {
    /// Returns true while a plane has an entry in this hour that is in no segment.
    pub(crate) async fn is_needed(&self, connection: &Session) -> Result<bool> {
        let sql = format!(
            "DO $$ BEGIN IF EXISTS (SELECT FROM log_{} l JOIN plane p USING (plane) JOIN head USING (plane) \
            WHERE l.seq > p.compacted) THEN RAISE unique_violation; END IF; END $$",
            self.slot
        );
        match connection.run(REMOVING, &sql).await {
            Ok(()) => Ok(false),
            Err(StatementFailure::Duplicate) => Ok(true),
            Err(failure) => Err(failure.of_read(REMOVING)),
        }
    }

    /// Removes the table. Writers of other hours do not wait for it.
    pub(crate) async fn remove(&self, connection: &Session) -> Result<()> {
        let slot = self.slot;
        if self.is_attached {
            let how = if self.is_pending { "FINALIZE" } else { "CONCURRENTLY" };
            run(connection, &format!("ALTER TABLE log DETACH PARTITION log_{slot} {how}")).await?;
        }
        run(connection, &format!("DROP TABLE log_{slot}")).await
    }
}

async fn run(connection: &Session, sql: &str) -> Result<()> {
    connection.run(REMOVING, sql).await.map_err(|failure| failure.of_change(REMOVING))
}
