//! Blocks into the log: one statement, repeated until its outcome is known.
//!
//! The ids of blocks and the hour of the first attempt make a repetition harmless. If the first
//! attempt was stored, the second finds its rows and stores no rows. Each attempt locks the row of
//! the head, so the second waits for a first attempt that is still under way.

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::store::{CURSORS_MAX, Cursor, StoreCounts};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::ClusterStore;
use super::small::{lock, signed};
use super::tickets::{SealedBatch, WHAT};
use crate::address::Durability;
use crate::cluster::{CHANGE_TIMEOUT, LATE, PAUSE, answered};
use crate::connection::Session;
use crate::failure::{self, StatementFailure};
use crate::identity::Id;
use crate::partitions;
use crate::pool::Pool;

macro_rules! append {
    ($last_id:literal, $is_open:literal, $rows:literal, $cursors:literal) => {
        concat!(
            "WITH h AS (UPDATE head SET last = last + $2, rows = rows + $3, vals = vals + $4, \
                rejected = rejected + $5, batches = batches + $6, log_bytes = log_bytes + $7, \
                last_id = ",
            $last_id,
            " \
                WHERE plane = $1 AND ($8::bool OR current_setting('synchronous_standby_names') <> '') \
                AND ($9::int8 = 0 OR EXISTS (SELECT FROM names WHERE plane = $1 AND page = $9 AND id = $10)) \
                AND (open_keys IS NULL OR ",
            $is_open,
            ") \
                RETURNING last, open_keys[cardinality(open_keys)] AS newest_key), \
             l AS (INSERT INTO log (slot, plane, seq, id, sealed) ",
            $rows,
            ")",
            $cursors,
            " SELECT newest_key FROM h"
        )
    };
}

macro_rules! append_all {
    ($cursors:literal) => {
        append!(
            "coalesce(($13::uuid[])[cardinality($13::uuid[])], last_id)",
            "$12::uuid[] <@ open_keys",
            "SELECT $11, $1, h.last - $2 + u.n, u.id, u.sealed \
                FROM h, unnest($13::uuid[], $14::bytea[]) WITH ORDINALITY AS u(id, sealed, n)",
            $cursors
        )
    };
}

const APPEND: &str = append_all!("");

/// A single block. Arrays would make this statement a fifth slower on the server.
const APPEND_ONE: &str = append!(
    "$13::uuid",
    "$12::uuid = ANY (open_keys)",
    "SELECT $11, $1, h.last, $13, $14::bytea FROM h",
    ""
);

/// Blocks with positions of imports that moved. An empty position forgets an import. If there are
/// too many imports, the positions that moved longest ago are removed.
const APPEND_CURSORS: &str = append_all!(
    ", c AS (SELECT u.key, u.position, u.n FROM h, unnest($15::uuid[], $16::bytea[]) WITH ORDINALITY AS u(key, position, n)), \
     m AS (SELECT coalesce(max(moved), 0) AS moved FROM import WHERE plane = $1), \
     d AS (DELETE FROM import i USING h WHERE i.plane = $1 AND (i.key IN (SELECT key FROM c WHERE position = '') \
        OR i.key IN (SELECT key FROM import WHERE plane = $1 AND key NOT IN (SELECT key FROM c) ORDER BY moved DESC OFFSET $17))), \
     k AS (INSERT INTO import SELECT $1, c.key, c.position, m.moved + c.n FROM c, m WHERE c.position <> '' \
        ON CONFLICT (plane, key) DO UPDATE SET position = excluded.position, moved = excluded.moved)"
);

const REASON: &str = "SELECT EXISTS (SELECT FROM head WHERE plane = $1), \
    $2::bool OR current_setting('synchronous_standby_names') <> '', \
    EXISTS (SELECT FROM head WHERE plane = $1 AND NOT $3::uuid[] <@ open_keys)";

/// Cause for the refusal of bytes under an old key. The process has slept through the turn.
const CLOSED_KEY: &str = "the data key has turned since they were sealed";
const STORED: &str =
    "SELECT count(*) FROM log WHERE plane = $1 AND slot = $2 AND id = ANY ($3::uuid[])";

/// Blocks of one commit, as parameters of its statement.
struct CommitParameters<'b> {
    ids: Vec<Id>,
    sealed: Vec<&'b [u8]>,
    counts: StoreCounts,
    cursors: Vec<&'b Cursor>,
    /// Last page of names that this handle knows, and its id.
    page: (i64, Id),
    /// Ids of the keys that sealed the blocks and the positions.
    keys: Vec<Id>,
    /// Hour of the first attempt, by the database's clock.
    slot: Option<i32>,
}

impl<'b> CommitParameters<'b> {
    fn new(batches: &'b [SealedBatch], page: Option<(u64, Id)>) -> Result<Self> {
        let page = page.map_or((0, Id([0; 16])), |(page, id)| (signed(page), id));
        let (ids, sealed) = (Vec::new(), Vec::new());
        let mut group = Self {
            ids,
            sealed,
            counts: StoreCounts::default(),
            cursors: Vec::new(),
            page,
            keys: batches.iter().filter_map(|batch| batch.key).collect(),
            slot: None,
        };
        group.keys.dedup();
        for block in batches.iter().flat_map(|batch| &batch.blocks) {
            let log_bytes = block.sealed.len() as u64;
            group.counts.add(&StoreCounts { log_bytes, ..block.counts });
            if !block.sealed.is_empty() {
                group.ids.push(Id::of_sealed(&block.sealed, "a sealed block")?);
                group.sealed.push(&block.sealed);
            }
            if let Some(cursor) = &block.cursor {
                // The last position of an import counts.
                group.cursors.retain(|other| other.key != cursor.key);
                group.cursors.push(cursor);
            }
        }
        Ok(group)
    }

    async fn send(
        &self,
        connection: &Session,
        plane: Id,
        is_managed: bool,
        slot: i32,
    ) -> Result<Vec<Row>, StatementFailure> {
        let StoreCounts { rows, values, rejected, batches, log_bytes } = self.counts;
        let [rows, values, rejected] = [rows, values, rejected].map(signed);
        let [batches, log_bytes, entries] = [batches, log_bytes, self.ids.len() as u64].map(signed);
        let (page, page_id) = &self.page;
        let (ids, sealed) = (&self.ids, &self.sealed);
        let keys: Vec<Id> = self.cursors.iter().map(|cursor| Id(cursor.key)).collect();
        let positions: Vec<&[u8]> =
            self.cursors.iter().map(|cursor| &cursor.position[..]).collect();
        let kept = self.cursors.iter().filter(|cursor| !cursor.position.is_empty()).count();
        let room = signed(CURSORS_MAX.saturating_sub(kept) as u64);
        let all: [&(dyn ToSql + Sync); 17] = [
            &plane,
            &entries,
            &rows,
            &values,
            &rejected,
            &batches,
            &log_bytes,
            &is_managed,
            page,
            page_id,
            &slot,
            &self.keys,
            ids,
            sealed,
            &keys,
            &positions,
            &room,
        ];
        if let ([key], [id], [sealed], true) =
            (&self.keys[..], &ids[..], &sealed[..], self.cursors.is_empty())
        {
            let own: [&(dyn ToSql + Sync); 3] = [key, id, sealed];
            return connection.change(WHAT, APPEND_ONE, &[&all[..11], &own].concat()).await;
        }
        if self.cursors.is_empty() {
            return connection.change(WHAT, APPEND, &all[..14]).await;
        }
        connection.change(WHAT, APPEND_CURSORS, &all).await
    }
}

/// Outcome of one attempt.
enum Attempt {
    Stored,
    /// The blocks may be stored. Holds the cause of the doubt.
    Lost(String),
    /// The attempt must be repeated at once.
    Again,
}

impl ClusterStore {
    /// Appends the blocks of all batches, or no blocks.
    pub(super) fn commit(&self, batches: &[SealedBatch]) -> Result<()> {
        let page = lock(&self.known).page;
        let mut group = CommitParameters::new(batches, page)?;
        self.cluster.wait(|pool| async move { self.store(&pool, &mut group).await })
    }

    async fn store(&self, pool: &Pool, group: &mut CommitParameters<'_>) -> Result<()> {
        let deadline = Instant::now() + CHANGE_TIMEOUT;
        let mut lost: Option<String> = None;
        loop {
            let attempt = timeout_at(deadline, answered(pool, self.attempt(pool, group))).await;
            match attempt.unwrap_or_else(|_| Ok(Attempt::Lost(LATE.to_owned()))) {
                Ok(Attempt::Stored) => return Ok(()),
                Ok(Attempt::Again) => continue,
                Ok(Attempt::Lost(cause)) => lost = Some(cause),
                // An answer to a later attempt does not tell the outcome of the lost attempt.
                Err(error) => lost = Some(lost.map_or_else(|| Err(error), Ok)?),
            }
            // Counts without blocks have no ids: repeated, they would count twice.
            if group.ids.is_empty() || Instant::now() >= deadline {
                return Err(failure::unknown(WHAT, lost.as_deref().unwrap_or(LATE)));
            }
            sleep(PAUSE).await;
        }
    }

    async fn attempt(&self, pool: &Pool, group: &mut CommitParameters<'_>) -> Result<Attempt> {
        let connection = pool.own().await?;
        let slot =
            *group.slot.get_or_insert_with(|| partitions::slot_of(pool.seen.database_now_us()));
        let is_managed = pool.durability == Durability::Managed;
        let asked_at = Instant::now().into_std();
        let sent = group.send(&connection, self.plane, is_managed, slot).await;
        match sent {
            Ok(rows) if !rows.is_empty() => {
                self.keys.note_newest(rows[0].get(0), asked_at);
                connection.keep();
                Ok(Attempt::Stored)
            }
            Ok(_) => Err(self.reason(&connection, is_managed, group).await),
            Err(StatementFailure::Duplicate) => self.find(&connection, group, slot).await,
            Err(StatementFailure::NoPartition) => {
                partitions::make(&connection, slot).await?;
                connection.keep();
                Ok(Attempt::Again)
            }
            Err(StatementFailure::Lost(cause)) => Ok(Attempt::Lost(cause)),
            Err(StatementFailure::Refused(error)) => {
                connection.keep();
                Err(error)
            }
        }
    }

    /// Returns the reason why the statement found no head to count up.
    async fn reason(
        &self,
        connection: &Session,
        is_managed: bool,
        group: &CommitParameters<'_>,
    ) -> Error {
        let parameters: [&(dyn ToSql + Sync); 3] = [&self.plane, &is_managed, &group.keys];
        let asked = connection.query(WHAT, REASON, &parameters).await;
        let row = match asked {
            Ok(rows) => rows.first().map(|row| (row.get(0), row.get(1), row.get(2))),
            Err(failure) => return failure.of_read(WHAT),
        };
        match row {
            Some((true, true, true)) => self.refused_key(WHAT),
            Some((true, true, false)) => self.forked(),
            Some((true, false, _)) => failure::unavailable(
                WHAT,
                "it has no synchronous_standby_names, so there would be one copy",
            ),
            _ => self.missing(),
        }
    }

    /// Notes that the key of bytes is closed, and returns the error. No byte was stored.
    pub(super) fn refused_key(&self, what: &'static str) -> Error {
        self.keys.note_refused();
        failure::unavailable(what, CLOSED_KEY)
    }

    /// Looks for the rows of an earlier attempt, after the database reported duplicates. A later
    /// commit by this process proves that they are as durable as any.
    async fn find(
        &self,
        connection: &Session,
        group: &CommitParameters<'_>,
        slot: i32,
    ) -> Result<Attempt> {
        let asked = connection.query(WHAT, STORED, &[&self.plane, &slot, &group.ids]).await;
        let stored: i64 = match asked {
            Ok(rows) => rows.first().map_or(0, |row| row.get(0)),
            Err(StatementFailure::Lost(cause)) => return Ok(Attempt::Lost(cause)),
            Err(failure) => return Err(failure.of_read(WHAT)),
        };
        if stored != signed(group.ids.len() as u64) {
            return Err(Error::Corrupt { what: "the log" });
        }
        match connection.barrier().await {
            Ok(()) => Ok(Attempt::Stored),
            Err(error) => Ok(Attempt::Lost(error.to_string())),
        }
    }
}
