//! Nodes of an installation, and what an operator asks of its database.

use fleetcast_core::model::error::Result;

use crate::cluster::Cluster;

const BEAT: &str = "INSERT INTO node VALUES ($1::text::uuid, $2, $3, clock_timestamp()) \
    ON CONFLICT (node) DO UPDATE SET name = excluded.name, version = excluded.version, beat = excluded.beat";
const NODES: &str = "SELECT name, version, extract(epoch FROM clock_timestamp() - beat)::float8 FROM node \
    WHERE beat > clock_timestamp() - interval '1 day' ORDER BY name, node";
const FACTS: &str = "SELECT current_setting('server_version'), current_setting('synchronous_standby_names'), \
    (SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('quorum', 'sync')), \
    pg_database_size(current_database()), (extract(epoch FROM clock_timestamp()) * 1000000)::int8";

/// A node that served within the last day.
pub struct Node {
    /// Name of its machine.
    pub name: String,
    /// Version of fleetcast that it runs.
    pub version: String,
    /// Seconds since it was last heard of.
    pub silent_seconds: f64,
}

/// Answers of the primary about itself.
pub struct Facts {
    /// Version of PostgreSQL.
    pub version: String,
    /// Standbys that a commit waits for, as the settings name them.
    pub standbys_wanted: String,
    /// Standbys that stream and are waited for.
    pub standbys: i64,
    /// Size of the database.
    pub bytes: i64,
    /// Microseconds since 1970 by its clock.
    pub now_us: i64,
}

impl Cluster {
    /// Notes that a node, whose id is a UUID in text, serves.
    ///
    /// # Errors
    /// Those of a database that cannot be used.
    pub fn beat(&self, node: &str, name: &str, version: &str) -> Result<()> {
        self.change("note that a node serves", BEAT, &[&node, &name, &version]).map(drop)
    }

    /// Nodes that served within the last day.
    ///
    /// # Errors
    /// As [`Self::beat`].
    pub fn nodes(&self) -> Result<Vec<Node>> {
        let rows = self.read("find nodes", NODES, &[])?;
        let node = |row: &tokio_postgres::Row| Node {
            name: row.get(0),
            version: row.get(1),
            silent_seconds: row.get(2),
        };
        Ok(rows.iter().map(node).collect())
    }

    /// Answers of the primary about itself, `None` where it has none.
    ///
    /// # Errors
    /// As [`Self::beat`].
    pub fn facts(&self) -> Result<Option<Facts>> {
        let rows = self.read("ask the database about itself", FACTS, &[])?;
        Ok(rows.first().map(|row| Facts {
            version: row.get(0),
            standbys_wanted: row.get(1),
            standbys: row.get(2),
            bytes: row.get(3),
            now_us: row.get(4),
        }))
    }
}
