//! Nodes of an installation, and an operator's questions to its database.

use fleetcast_core::model::error::Result;
use tokio::time::timeout;

use crate::cluster::{Cluster, READ_TIMEOUT};
use crate::failure::StatementFailure;
use crate::held::HELD;
use crate::identity::Id;
use crate::watch::timelines;

/// A node is in one place at a time. Another place takes it over once no beat has come for 10
/// seconds.
const BEAT: &str = "\
    INSERT INTO node (node, name, version, place, beat) VALUES ($1::text::uuid, $2, $3, $4, clock_timestamp()) \
    ON CONFLICT (node) DO UPDATE SET name = excluded.name, version = excluded.version, place = excluded.place, \
        beat = excluded.beat WHERE node.place = excluded.place OR node.beat < clock_timestamp() - interval '10 s' \
    RETURNING 1";
const NODES: &str = "\
    SELECT node::text, name, version, extract(epoch FROM clock_timestamp() - beat)::float8 FROM node \
    WHERE beat > clock_timestamp() - interval '1 day' ORDER BY name, node";
const LOOK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8, \
    (SELECT place FROM node WHERE node = $1::text::uuid)";
const PERMISSIONS: &str = "\
    SELECT has_database_privilege(current_database(), 'CREATE') OR has_schema_privilege(current_schema(), 'CREATE'), \
    (SELECT coalesce(bool_and(pg_has_role(tableowner, 'USAGE')), true) FROM pg_tables WHERE schemaname = current_schema()), \
    pg_has_role('pg_monitor', 'USAGE')";
const FACTS: &str = "SELECT current_setting('server_version'), current_setting('synchronous_standby_names'), \
    (SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('quorum', 'sync')), \
    pg_database_size(current_database()), (extract(epoch FROM clock_timestamp()) * 1000000)::int8, \
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), \
    current_setting('max_connections')::int8, \
    (SELECT datcollversion IS NOT DISTINCT FROM pg_database_collation_actual_version(oid) \
        FROM pg_database WHERE datname = current_database()), \
    (SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('log') \
        AND inhrelid IS DISTINCT FROM to_regclass('log_held'))";

/// A node that served within the last day.
pub struct Node {
    /// The id, a UUID.
    pub id: String,
    /// Name of its machine.
    pub name: String,
    /// Version of fleetcast that it runs.
    pub version: String,
    /// Seconds since the last beat.
    pub silent_seconds: f64,
}

/// Rights of the role that the program has in the database.
pub struct Permissions {
    /// If true, the role may create tables.
    pub makes_tables: bool,
    /// If true, the role may change and drop the existing tables.
    pub owns_tables: bool,
    /// If true, the role sees the state of replication.
    pub sees_replication: bool,
}

/// Answers of the primary about itself.
pub struct PrimaryFacts {
    /// Version of PostgreSQL.
    pub version: String,
    /// Standbys that a commit waits for, as the settings name them.
    pub standbys_wanted: String,
    /// Standbys that stream and are waited for.
    pub standbys: i64,
    /// Size of the database in bytes.
    pub bytes: i64,
    /// Microseconds since 1970 by the primary's clock.
    pub now_us: i64,
    /// Sessions of all clients, and their bound.
    pub sessions: (i64, i64),
    /// False if the system sorts texts otherwise than when the database was made.
    pub keeps_collation: bool,
    /// Count of the tables that hold the log, one for each hour.
    pub log_hours: i64,
}

impl Cluster {
    /// Notes that a node, whose id is a UUID in text, serves at `place`. Returns false, and notes
    /// no beat, while the node serves at another place.
    ///
    /// # Errors
    /// Returns an error if the database cannot be used.
    pub fn beat(&self, node: &str, place: &str, name: &str, version: &str) -> Result<bool> {
        let beat =
            self.change("note that a node serves", BEAT, &[&node, &name, &version, &place])?;
        Ok(!beat.is_empty())
    }

    /// Returns microseconds since 1970 by the clock of the database, and the place of a node.
    ///
    /// # Errors
    /// Returns the errors of [`Self::beat`].
    pub fn look(&self, node: &str) -> Result<(i64, Option<String>)> {
        let rows = self.read("look at a node", LOOK, &[&node])?;
        Ok(rows.first().map_or((0, None), |row| (row.get(0), row.get(1))))
    }

    /// Changes the row of a node, whose id is a UUID in text, and undoes the change. Both are one
    /// statement, so a process that hangs holds no lock, and nodes do not wait for each other.
    ///
    /// # Errors
    /// Returns an error if the database takes no changes now.
    pub fn probe_writes(&self, node: &str) -> Result<()> {
        const WHAT: &str = "take a change";
        let node = Id::of_plane(node)?.hyphenated();
        let sql = format!(
            "DO $$ BEGIN UPDATE node SET beat = beat WHERE node = '{node}'; RAISE unique_violation; END $$"
        );
        self.wait(|pool| async move {
            let connection = pool.own().await?;
            let probed = timeout(READ_TIMEOUT, connection.run(WHAT, &sql)).await;
            match probed
                .unwrap_or_else(|_| Err(StatementFailure::Lost("no answer in time".to_owned())))
            {
                Ok(()) | Err(StatementFailure::Duplicate) => {
                    connection.keep();
                    Ok(())
                }
                Err(failure) => Err(failure.of_read(WHAT)),
            }
        })
    }

    /// Returns the rights of this role.
    ///
    /// # Errors
    /// Returns the errors of [`Self::beat`].
    pub fn permissions(&self) -> Result<Permissions> {
        let rows = self.read("ask for permissions", PERMISSIONS, &[])?;
        let right = |at: usize| rows.first().and_then(|row| row.get(at)).unwrap_or(false);
        Ok(Permissions {
            makes_tables: right(0),
            owns_tables: right(1),
            sees_replication: right(2),
        })
    }

    /// Returns the nodes that served within the last day.
    ///
    /// # Errors
    /// Returns the errors of [`Self::beat`].
    pub fn nodes(&self) -> Result<Vec<Node>> {
        let rows = self.read("find nodes", NODES, &[])?;
        let node = |row: &tokio_postgres::Row| Node {
            id: row.get(0),
            name: row.get(1),
            version: row.get(2),
            silent_seconds: row.get(3),
        };
        Ok(rows.iter().map(node).collect())
    }

    /// Returns the answers of the primary about itself, or `None` if it has no answers.
    ///
    /// # Errors
    /// Returns the errors of [`Self::beat`].
    pub fn facts(&self) -> Result<Option<PrimaryFacts>> {
        let rows = self.read("ask the database about itself", FACTS, &[])?;
        Ok(rows.first().map(|row| PrimaryFacts {
            version: row.get(0),
            standbys_wanted: row.get(1),
            standbys: row.get(2),
            bytes: row.get(3),
            now_us: row.get(4),
            sessions: (row.get(5), row.get(6)),
            keeps_collation: row.get(7),
            log_hours: row.get(8),
        }))
    }

    /// Returns the names of planes with rows in the log because the object store lacks one of their
    /// segments.
    ///
    /// # Errors
    /// Returns the errors of [`Self::beat`].
    pub fn damaged(&self) -> Result<Vec<String>> {
        let rows = self.read("find damaged planes", HELD, &[])?;
        Ok(rows.iter().map(|row| row.get::<_, Id>(0).hyphenated()).collect())
    }

    /// Asks the object store for the marker of the installation.
    ///
    /// # Errors
    /// Returns an error if the object store does not answer or is another one.
    pub fn reach_objects(&self) -> Result<()> {
        let objects = self.objects()?;
        self.wait(|_| objects.marker()).map(drop)
    }

    /// Returns the host, the port and the answer of each server in the settings: the timeline of a
    /// primary, 0 of a standby, `None` of a server without an answer.
    ///
    /// # Errors
    /// Returns [`fleetcast_core::model::error::Error::Forked`] in a forked process.
    pub fn servers(&self) -> Result<Vec<(String, Option<u32>)>> {
        self.wait(|pool| async move { Ok(timelines(&pool.address).await) })
    }
}
