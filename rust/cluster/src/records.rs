//! Small records in spaces of named stores: accounts, usage, forecasts, audit. A store has one
//! writer at a time.
//!
//! A transaction that writes locks the row with its store's version until it ends. Its first change
//! raises the version. Other processes thus learn with one question if there is news.

use std::collections::HashMap;
use std::sync::Arc;

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::records::{Changes, Item, RecordSnapshot, RecordStore, only_reads};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::changes::{self, keys_of};
use crate::cluster::{BEGIN, CHANGE_TIMEOUT, Cluster, LATE, READ_TIMEOUT};
use crate::failure::StatementFailure;
use crate::pool::PooledSession;

/// The name without the address, which may hold a password.
pub(crate) const PLACE: &str = "PostgreSQL";
const WRITING: &str = "write records";

const GET_ALL: &str =
    "SELECT key, value FROM record WHERE store = $1 AND space = $2 AND key = ANY($3)";
const UNDER: &str = "SELECT key, value FROM record WHERE store = $1 AND space = $2 \
    AND key >= $3 AND ($4::bytea IS NULL OR key < $4) ORDER BY key LIMIT $5";
const COUNT: &str = "SELECT count(*) FROM record WHERE store = $1 AND space = $2";
const PUT_ALL: &str = "INSERT INTO record SELECT $1, $2, u.key, u.value \
    FROM unnest($3::bytea[], $4::bytea[]) AS u(key, value) \
    ON CONFLICT (store, space, key) DO UPDATE SET value = excluded.value";
const DELETE_ALL: &str = "DELETE FROM record WHERE store = $1 AND space = $2 AND key = ANY($3)";

const VERSION: &str = "SELECT version FROM records WHERE name = $1";
const LOCK: &str = "INSERT INTO records VALUES ($1, 0) \
    ON CONFLICT (name) DO UPDATE SET version = records.version RETURNING version";
const COUNT_UP: &str = "UPDATE records SET version = version + 1 WHERE name = $1";

/// Most records that one statement changes.
const AT_ONCE: usize = 8_192;

/// Begins a transaction that reads one state of all records.
const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
    SET LOCAL idle_in_transaction_session_timeout = '10s'";

/// A store of records, read and written in the database with each use.
pub struct ClusterRecords {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) name: String,
    /// If true, copies follow the store, so each change leaves a row for them.
    pub(crate) is_followed: bool,
}

impl ClusterRecords {
    /// Opens the store of this name, which may have no records.
    #[must_use]
    pub fn new(cluster: Arc<Cluster>, name: &str) -> Self {
        Self { cluster, name: name.to_owned(), is_followed: false }
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// Returns an error if the database cannot be used.
    pub(crate) fn transaction(&self, writes: bool) -> Result<Transaction> {
        let begin = if writes { BEGIN } else { BEGIN_READ };
        let connection = self.cluster.wait(|pool| async move {
            let connection = pool.own().await?;
            let begun = timeout(READ_TIMEOUT, connection.run(WRITING, begin)).await;
            let begun = begun.unwrap_or_else(|_| Err(StatementFailure::Lost(LATE.to_owned())));
            begun.map_err(|failure| failure.of_read(WRITING))?;
            Ok(connection)
        })?;
        let mut transaction = Transaction {
            cluster: Arc::clone(&self.cluster),
            name: self.name.clone(),
            is_followed: self.is_followed,
            connection: Some(connection),
            version: 0,
            writes,
        };
        let rows = transaction.ask(if writes { LOCK } else { VERSION }, &[])?;
        transaction.version = rows.first().map_or(0, |row| row.get(0));
        Ok(transaction)
    }
}

impl RecordStore for ClusterRecords {
    fn place(&self) -> String {
        PLACE.to_owned()
    }

    fn begin(&self, writes: bool) -> Result<Box<dyn RecordSnapshot>> {
        Ok(Box::new(self.transaction(writes)?))
    }
}

/// A transaction under way.
pub(crate) struct Transaction {
    cluster: Arc<Cluster>,
    name: String,
    is_followed: bool,
    /// `None` once the transaction has ended.
    connection: Option<PooledSession>,
    version: i64,
    writes: bool,
}

impl RecordSnapshot for Transaction {
    fn version(&self) -> u64 {
        self.version.cast_unsigned()
    }

    fn get_all(&mut self, space: &str, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let rows = self.ask(GET_ALL, &[&space, &keys])?;
        let mut found: HashMap<Vec<u8>, Vec<u8>> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        Ok(keys.iter().map(|key| found.remove(*key)).collect())
    }

    fn under(
        &mut self,
        space: &str,
        prefix: &[u8],
        first: &[u8],
        limit: usize,
    ) -> Result<Vec<Item>> {
        let (end, limit) = (end_of(prefix), i64::try_from(limit).unwrap_or(i64::MAX));
        let rows = self.ask(UNDER, &[&space, &prefix.max(first), &end, &limit])?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    fn count(&mut self, space: &str) -> Result<u64> {
        let rows = self.ask(COUNT, &[&space])?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0)).cast_unsigned())
    }

    fn commit(mut self: Box<Self>, changes: &Changes) -> Result<()> {
        if !self.writes {
            return Err(only_reads());
        }
        if self.is_followed {
            let (spaces, keys) = keys_of(changes);
            self.ask(changes::COUNT_UP, &[&spaces, &keys])?;
        } else {
            self.ask(COUNT_UP, &[])?;
        }
        for (space, changes) in changes {
            let (mut keys, mut values, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
            for (key, value) in changes {
                if let Some(value) = value {
                    keys.push(key.as_slice());
                    values.push(value.as_slice());
                } else {
                    deleted.push(key.as_slice());
                }
            }
            // A statement that takes too long would be refused each time.
            for (keys, values) in keys.chunks(AT_ONCE).zip(values.chunks(AT_ONCE)) {
                self.ask(PUT_ALL, &[space, &keys, &values])?;
            }
            for deleted in deleted.chunks(AT_ONCE) {
                self.ask(DELETE_ALL, &[space, &deleted])?;
            }
        }
        self.run("COMMIT").map_err(|failure| failure.of_change(WRITING))
    }
}

impl Transaction {
    /// Returns the answer of a statement whose first parameter is the store. A statement that fails
    /// ends the transaction.
    fn ask(&mut self, sql: &'static str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let connection = self.connection.take().ok_or(Error::Closed)?;
        let name: &(dyn ToSql + Sync) = &self.name;
        let parameters = [&[name], parameters].concat();
        // If the session ends within a transaction, the database undoes the transaction.
        let rows = self.cluster.wait(|_| async {
            let answer = timeout(CHANGE_TIMEOUT, connection.query(WRITING, sql, &parameters)).await;
            let answer = answer.unwrap_or_else(|_| Err(StatementFailure::Lost(LATE.to_owned())));
            answer.map_err(|failure| failure.of_read(WRITING))
        })?;
        self.connection = Some(connection);
        Ok(rows)
    }

    fn run(&mut self, sql: &'static str) -> Result<(), StatementFailure> {
        let connection = self.connection.take().ok_or(StatementFailure::Refused(Error::Closed))?;
        let ran = self.cluster.wait(|_| async {
            let ran = timeout(CHANGE_TIMEOUT, connection.run(WRITING, sql)).await;
            Ok(ran.unwrap_or_else(|_| Err(StatementFailure::Lost(LATE.to_owned()))))
        });
        ran.unwrap_or_else(|error| Err(StatementFailure::Refused(error)))?;
        connection.keep();
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // If the rollback fails, the transaction ends with its session.
        drop(self.run("ROLLBACK"));
    }
}

/// Returns the first key after all keys that begin with `prefix`, or `None` if there is no such
/// key. Example: `ab` gives `ac`.
fn end_of(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_begin_with_a_prefix_end_before_the_next_one() {
        assert_eq!(end_of(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(end_of(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!((end_of(b""), end_of(b"\xff")), (None, None));
    }
}
