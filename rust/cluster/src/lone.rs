//! A connection for one reader at a time, whose own thread moves the bytes.
//!
//! Bytes of the other connections are moved by a thread of the runtime. To wake that thread, and to
//! be woken by it, takes longer than most reads, which look at two rows.

use std::sync::{Mutex, MutexGuard, TryLockError};

use fleetcast_core::model::error::{Error, Result};
use tokio::runtime::Builder;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connection::Session;
use crate::failure::{self, StatementFailure};
use crate::pool::Pool;
use crate::process::OwnRuntime;

pub(crate) struct LoneSession {
    runtime: OwnRuntime,
    connection: Mutex<Option<Session>>,
}

impl LoneSession {
    pub(crate) fn new() -> Result<Self> {
        let runtime = OwnRuntime::of(Builder::new_current_thread())?;
        Ok(Self { runtime, connection: Mutex::default() })
    }

    /// Returns the rows of a statement that changes no data, until `deadline`.
    ///
    /// Returns `None` if another thread reads, or if the session has ended unnoticed since the last
    /// read. Also returns `None` if no session can be opened while the shared connection works.
    pub(crate) fn read(
        &self,
        pool: &Pool,
        deadline: Instant,
        what: &'static str,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Option<Result<Vec<Row>>> {
        let mut connection = self.try_lock()?;
        if !connection.as_ref().is_some_and(Session::is_alive) {
            *connection = None;
            match self.connect(pool, deadline, what) {
                Err(_) if pool.has_shared() => return None,
                Err(error) => return Some(Err(error)),
                Ok(connected) => *connection = Some(connected),
            }
        }
        let session = connection.as_ref()?;
        let reading = async { timeout_at(deadline, session.query(what, sql, parameters)).await };
        match self.runtime.block_on(reading) {
            Ok(Ok(rows)) => Some(Ok(rows)),
            Ok(Err(StatementFailure::Lost(_))) => {
                *connection = None;
                None
            }
            Ok(Err(failure)) => Some(Err(failure.of_read(what))),
            Err(_) => {
                *connection = None;
                pool.doubt();
                Some(Err(late(what)))
            }
        }
    }

    fn connect(&self, pool: &Pool, deadline: Instant, what: &'static str) -> Result<Session> {
        let connecting = async { timeout_at(deadline, pool.connect()).await };
        self.runtime.block_on(connecting).map_err(|_| late(what))?
    }

    /// Returns the connection if no other thread reads.
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Session>>> {
        match self.connection.try_lock() {
            Ok(connection) => Some(connection),
            Err(TryLockError::WouldBlock) => None,
            // A reader that panicked left a whole connection, or no connection.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        }
    }
}

fn late(what: &'static str) -> Error {
    failure::unavailable(what, "no answer in time")
}
