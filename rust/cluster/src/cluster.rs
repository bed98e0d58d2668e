//! The database and the objects of one installation, for the use of a process.

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use tokio::runtime::Builder;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::address::{DatabaseAddress, Durability};
use crate::cache::ObjectCache;
use crate::connection::CONNECT_TIMEOUT;
use crate::failure::{self, StatementFailure};
use crate::lone::LoneSession;
use crate::objects::Objects;
use crate::pool::Pool;
use crate::process::OwnRuntime;
use crate::watch::watch;

/// Time within which reads answer or fail, connections included, so that a request is answered
/// within two seconds. It is longer than a connect may take, so that a failed connect is known as
/// failed.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_millis(1_750);

/// Time within which changes succeed, fail, or return [`failure::unknown`].
pub(crate) const CHANGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Cause for an unknown outcome of a change.
pub(crate) const LATE: &str = "no answer within 10 seconds";

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";

/// Addresses and limits of an installation.
#[derive(Clone)]
pub struct Settings {
    /// URL of the database with all its hosts; it may hold a password.
    pub database: String,
    /// Count of connections of each process, at least four.
    pub connections: usize,
    /// Copies that an acknowledgement stands for.
    pub durability: Durability,
    /// URL of the objects; `None` if only records are used. It may hold a key.
    pub objects: Option<String>,
    /// Folder and bound in bytes for the pieces of objects that are kept on this machine.
    pub cache: Option<(PathBuf, u64)>,
}

/// An installation, for the use of a process. Making this value opens no connection: the first use
/// does. A process that forks after the first use must make another value in the child.
pub struct Cluster {
    settings: Settings,
    open: OnceLock<ClusterRuntime>,
}

/// Parts that do not survive a fork.
struct ClusterRuntime {
    runtime: OwnRuntime,
    lone: LoneSession,
    pool: Arc<Pool>,
    objects: Option<Objects>,
    /// True once the objects are known to belong to this installation.
    knows_objects: AtomicBool,
    cache: Option<Arc<ObjectCache>>,
}

impl Cluster {
    /// Makes an installation at these addresses.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if an address is malformed.
    pub fn new(settings: Settings) -> Result<Self> {
        DatabaseAddress::parse(&settings.database)?;
        settings.objects.as_deref().map(Objects::parse).transpose()?;
        Ok(Self { settings, open: OnceLock::new() })
    }

    fn open(&self) -> Result<&ClusterRuntime> {
        let open = if let Some(open) = self.open.get() {
            open
        } else {
            let opened = self.opened()?;
            self.open.get_or_init(|| opened)
        };
        if open.runtime.is_ours() { Ok(open) } else { Err(Error::Forked) }
    }

    fn opened(&self) -> Result<ClusterRuntime> {
        let Settings { database, connections, durability, objects, cache } = &self.settings;
        let objects = objects.as_deref().map(Objects::parse).transpose()?;
        let cache = cache.as_ref().map(|(directory, bytes)| ObjectCache::new(directory, *bytes));
        let cache = cache.transpose()?.map(Arc::new);
        let pool =
            Arc::new(Pool::new(DatabaseAddress::parse(database)?, *durability, *connections));
        let mut threads = Builder::new_multi_thread();
        threads.worker_threads(1).thread_name("cluster");
        let (runtime, lone) = (OwnRuntime::of(threads)?, LoneSession::new()?);
        runtime.spawn(watch(Arc::clone(&pool)));
        let knows_objects = AtomicBool::new(false);
        Ok(ClusterRuntime { runtime, lone, pool, objects, knows_objects, cache })
    }

    /// Runs `work` on this thread.
    pub(crate) fn wait<R, F>(&self, work: impl FnOnce(Arc<Pool>) -> F) -> Result<R>
    where
        F: Future<Output = Result<R>>,
    {
        let open = self.open()?;
        open.runtime.block_on(work(Arc::clone(&open.pool)))
    }

    /// Returns microseconds since 1970 by the clock of the database.
    ///
    /// # Errors
    /// Returns an error if the database cannot be used.
    pub fn database_now_us(&self) -> Result<i64> {
        let rows = self.read("ask for the time", NOW, &[])?;
        Ok(rows.first().map_or(0, |row| row.get(0)))
    }

    /// Returns the newest timeline that this process knows of, or 0 if it has seen no primary.
    pub(crate) fn timeline(&self) -> Result<u32> {
        Ok(self.open()?.pool.seen.timeline())
    }

    /// Runs a statement like [`Self::change`], but repeats it. If an answer is lost, the statement
    /// is sent again until the outcome is known. If an earlier attempt was stored, the last attempt
    /// changes no rows.
    pub(crate) fn change_surely(
        &self,
        what: &'static str,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Result<Vec<Row>, StatementFailure>> {
        self.wait(|pool| async move { repeated(&pool, what, sql, parameters).await })
    }

    /// Runs `work` on a thread of the runtime.
    pub(crate) fn spawn<F>(&self, work: impl FnOnce(Arc<Pool>) -> F) -> Result<AbortHandle>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let open = self.open()?;
        Ok(open.runtime.spawn(work(Arc::clone(&open.pool))).abort_handle())
    }

    /// Writes an object, reads it, looks for it in a list, and deletes it. Returns false if the
    /// list is refused, which only people need.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] with the step that failed, or [`Error::Invalid`] if the
    /// settings name no objects.
    pub fn probe_objects(&self) -> Result<bool> {
        let objects = self.objects_unchecked()?;
        self.wait(|_| objects.probe())
    }

    /// Returns the objects, which may belong to another installation.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the settings name no objects.
    pub(crate) fn objects_unchecked(&self) -> Result<&Objects> {
        let message = || "store.objects is not set".to_owned();
        self.open()?.objects.as_ref().ok_or_else(|| Error::Invalid { message: message() })
    }

    /// Returns true if the objects are known to belong to this installation.
    pub(crate) fn knows_objects(&self) -> Result<bool> {
        Ok(self.open()?.knows_objects.load(Ordering::Acquire))
    }

    pub(crate) fn know_objects(&self) -> Result<()> {
        self.open()?.knows_objects.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn cache(&self) -> Option<&ObjectCache> {
        self.open().ok()?.cache.as_deref()
    }

    pub(crate) fn shared_cache(&self) -> Option<Arc<ObjectCache>> {
        self.open().ok()?.cache.clone()
    }

    /// Returns the rows of a statement that changes no data, within [`READ_TIMEOUT`].
    pub(crate) fn read(
        &self,
        what: &'static str,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let (open, deadline) = (self.open()?, Instant::now() + READ_TIMEOUT);
        if let Some(rows) = open.lone.read(&open.pool, deadline, what, sql, parameters) {
            return rows;
        }
        self.wait(|pool| async move { read(&pool, deadline, what, sql, parameters).await })
    }

    /// Returns the rows of a statement that changes data. It is not repeated if its answer is lost.
    pub(crate) fn change(
        &self,
        what: &'static str,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        self.wait(|pool| async move {
            change(&pool, what, sql, parameters).await?.map_err(|failure| failure.of_change(what))
        })
    }
}

/// Returns the rows of a statement that changes no data, by the shared connection.
async fn read(
    pool: &Pool,
    deadline: Instant,
    what: &'static str,
    sql: &'static str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>> {
    let connected = timeout_at(deadline, pool.shared()).await;
    let connection =
        connected.map_err(|_| failure::unavailable(what, "no connection in time"))??;
    if let Ok(rows) = timeout_at(deadline, connection.query(what, sql, parameters)).await {
        return rows.map_err(|failure| failure.of_read(what));
    }
    connection.give_up();
    pool.doubt();
    Err(failure::unavailable(what, "no answer in time"))
}

/// Returns the outcome of `work`, however late it comes. If the answer is overdue, the next callers
/// connect again, which soon shows if there is a primary.
pub(crate) async fn answered<R>(pool: &Pool, work: impl Future<Output = R>) -> R {
    let mut work = pin!(work);
    if let Ok(outcome) = timeout(CONNECT_TIMEOUT, &mut work).await {
        return outcome;
    }
    pool.doubt();
    work.await
}

/// Returns the rows of a statement that changes data, within [`CHANGE_TIMEOUT`]. The outer error
/// means that the statement was not sent.
pub(crate) async fn change(
    pool: &Pool,
    what: &'static str,
    sql: &'static str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Result<Vec<Row>, StatementFailure>> {
    let connection = pool.own().await?;
    let changing = answered(pool, connection.change(what, sql, parameters));
    let changing = timeout(CHANGE_TIMEOUT, changing).await;
    let outcome = changing.unwrap_or_else(|_| Err(StatementFailure::Lost(LATE.to_owned())));
    if !matches!(outcome, Err(StatementFailure::Lost(_))) {
        connection.keep();
    }
    Ok(outcome)
}

/// Begins a transaction that changes data. The server ends it if its process hangs.
pub(crate) const BEGIN: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '10s'";

/// Pause between attempts while an outcome is unknown.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// Sends a statement again whenever its answer is lost, within [`CHANGE_TIMEOUT`]. If an earlier
/// attempt may have been stored, a later commit by this process proves that it is durable.
async fn repeated(
    pool: &Pool,
    what: &'static str,
    sql: &'static str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Result<Vec<Row>, StatementFailure>> {
    let deadline = Instant::now() + CHANGE_TIMEOUT;
    let mut lost: Option<String> = None;
    loop {
        let cause = match change(pool, what, sql, parameters).await {
            Ok(Err(StatementFailure::Lost(cause))) => cause,
            Ok(outcome) if lost.is_none() => return Ok(outcome),
            Ok(Ok(rows)) => {
                settle(pool, what).await?;
                return Ok(Ok(rows));
            }
            Ok(Err(failure)) => failure.of_read(what).to_string(),
            Err(error) if lost.is_none() => return Err(error),
            Err(error) => error.to_string(),
        };
        if Instant::now() >= deadline {
            return Ok(Err(StatementFailure::Lost(cause)));
        }
        lost = Some(cause);
        sleep(PAUSE).await;
    }
}

/// Makes sure that all data that a statement was shown is as durable as any commit.
async fn settle(pool: &Pool, what: &'static str) -> Result<()> {
    let connection = pool.own().await?;
    let settled = timeout(CHANGE_TIMEOUT, connection.barrier()).await;
    settled.map_err(|_| failure::unknown(what, LATE))??;
    connection.keep();
    Ok(())
}
