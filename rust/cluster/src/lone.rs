//! A connection for one caller at a time, whose own thread moves the bytes.
//!
//! Bytes of the other connections are moved by a thread of the runtime. To wake that thread, and to
//! be woken by it, takes longer than most reads, which look at two rows. It also takes a tenth of
//! the time of a commit.

use std::sync::{Mutex, MutexGuard, TryLockError};

use fleetcast_core::model::error::{Error, Result};
use tokio::runtime::Builder;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connection::Session;
use crate::failure::{self, StatementFailure};
use crate::pool::Pool;
use crate::process::OwnRuntime;

/// Turns of the runtime until the end of a session is seen: the system tells of it, the session's
/// task reads it, and the task ends.
const TURNS_UNTIL_SEEN: usize = 3;

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
    /// Returns `None` if another thread uses the session, or if the session has ended unnoticed
    /// since the last use. Also returns `None` if no session can be opened while the shared
    /// connection works.
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

    /// Runs `work`, which changes data, with the session that a reader has opened.
    ///
    /// Returns `None` if another thread uses the session, or if the session has ended. Also returns
    /// `None` if the pool has no idle connection: a change must not depend on a session that a
    /// reader may give up.
    pub(crate) fn change<R>(
        &self,
        pool: &Pool,
        work: impl AsyncFnOnce(&Pool, &Session) -> R,
    ) -> Option<R> {
        let connection = self.try_lock()?;
        let session = connection.as_ref().filter(|_| pool.has_idle())?;
        self.runtime.block_on(async {
            for _ in 0..TURNS_UNTIL_SEEN {
                yield_now().await;
            }
            if session.is_alive() { Some(work(pool, session).await) } else { None }
        })
    }

    fn connect(&self, pool: &Pool, deadline: Instant, what: &'static str) -> Result<Session> {
        let connecting = async { timeout_at(deadline, pool.connect()).await };
        self.runtime.block_on(connecting).map_err(|_| late(what))?
    }

    /// Returns the connection if no other thread uses it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Session>>> {
        match self.connection.try_lock() {
            Ok(connection) => Some(connection),
            Err(TryLockError::WouldBlock) => None,
            // A caller that panicked left a whole connection, or no connection.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        }
    }
}

fn late(what: &'static str) -> Error {
    failure::unavailable(what, "no answer in time")
}
