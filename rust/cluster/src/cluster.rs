//! The database and the objects of one installation, as a process uses them.

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use tokio::runtime::Builder;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::address::{Address, Durability};
use crate::cache::Cache;
use crate::connection::CONNECT_TIMEOUT;
use crate::failure::{self, Failure};
use crate::lone::Lone;
use crate::objects::Objects;
use crate::pool::Pool;
use crate::process::OwnRuntime;

/// Reads answer within this or fail, connections included, so that a request is answered within two
/// seconds. More than a connection is given, so that one that fails is known to have failed.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_millis(1_750);

/// Changes are known within this or [`failure::unknown`].
pub(crate) const CHANGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Cause where the outcome of a change is not known.
pub(crate) const LATE: &str = "no answer within 10 seconds";

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";

/// Addresses and limits of an installation.
#[derive(Clone)]
pub struct Settings {
    /// URL of the database with all its hosts; it may hold a password.
    pub database: String,
    /// Connections of each process, four at least.
    pub connections: usize,
    /// Copies that an acknowledgement stands for.
    pub durability: Durability,
    /// URL of the objects; `None` for one who uses records alone. It may hold a key.
    pub objects: Option<String>,
    /// Folder and greatest number of bytes of the pieces of objects that are kept on this machine.
    pub cache: Option<(PathBuf, u64)>,
}

/// An installation as a process uses it. Making one asks nobody: connections come with the first use,
/// after which a fork must make its own.
pub struct Cluster {
    settings: Settings,
    open: OnceLock<Open>,
}

/// Parts that do not survive a fork.
struct Open {
    runtime: OwnRuntime,
    lone: Lone,
    pool: Arc<Pool>,
    objects: Option<Objects>,
    cache: Option<Arc<Cache>>,
}

impl Cluster {
    /// An installation at these addresses.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an address that is none.
    pub fn new(settings: Settings) -> Result<Self> {
        Address::parse(&settings.database)?;
        settings.objects.as_deref().map(Objects::parse).transpose()?;
        Ok(Self { settings, open: OnceLock::new() })
    }

    fn open(&self) -> Result<&Open> {
        let open = if let Some(open) = self.open.get() {
            open
        } else {
            let opened = self.opened()?;
            self.open.get_or_init(|| opened)
        };
        if open.runtime.is_ours() { Ok(open) } else { Err(Error::Forked) }
    }

    fn opened(&self) -> Result<Open> {
        let Settings { database, connections, durability, objects, cache } = &self.settings;
        let objects = objects.as_deref().map(Objects::parse).transpose()?;
        let cache = cache.as_ref().map(|(directory, bytes)| Cache::new(directory, *bytes));
        let cache = cache.transpose()?.map(Arc::new);
        let pool = Arc::new(Pool::new(Address::parse(database)?, *durability, *connections));
        let mut threads = Builder::new_multi_thread();
        threads.worker_threads(1).thread_name("cluster");
        let (runtime, lone) = (OwnRuntime::of(threads)?, Lone::new()?);
        Ok(Open { runtime, lone, pool, objects, cache })
    }

    /// Runs `work` on this thread.
    pub(crate) fn wait<R, F>(&self, work: impl FnOnce(Arc<Pool>) -> F) -> Result<R>
    where
        F: Future<Output = Result<R>>,
    {
        let open = self.open()?;
        open.runtime.block_on(work(Arc::clone(&open.pool)))
    }

    /// Microseconds since 1970 by the clock of the database.
    ///
    /// # Errors
    /// Those of a database that cannot be used.
    pub fn database_now_us(&self) -> Result<i64> {
        let rows = self.read("ask for the time", NOW, &[])?;
        Ok(rows.first().map_or(0, |row| row.get(0)))
    }

    /// As [`Self::change`] of a statement that may be repeated: where its answer is lost it is sent
    /// again until the outcome is known. One that was stored by an earlier attempt shows as one that
    /// changes nothing.
    pub(crate) fn change_surely(
        &self,
        what: &'static str,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Result<Vec<Row>, Failure>> {
        self.wait(|pool| async move { repeated(&pool, what, sql, parameters).await })
    }

    /// Runs `work` beside the callers' threads.
    pub(crate) fn spawn<F>(&self, work: impl FnOnce(Arc<Pool>) -> F) -> Result<AbortHandle>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let open = self.open()?;
        Ok(open.runtime.spawn(work(Arc::clone(&open.pool))).abort_handle())
    }

    /// Writes an object, reads it, looks for it in a list, and deletes it. False where the list is
    /// refused, which nothing but people needs.
    ///
    /// # Errors
    /// [`Error::Unavailable`], which says what cannot be done, [`Error::Invalid`] where the settings
    /// name no objects.
    pub fn probe_objects(&self) -> Result<bool> {
        let objects = self.objects()?;
        self.wait(|_| objects.probe())
    }

    /// # Errors
    /// [`Error::Invalid`] where the settings name none.
    pub(crate) fn objects(&self) -> Result<&Objects> {
        let message = || "store.objects is not set".to_owned();
        self.open()?.objects.as_ref().ok_or_else(|| Error::Invalid { message: message() })
    }

    pub(crate) fn cache(&self) -> Option<&Cache> {
        self.open().ok()?.cache.as_deref()
    }

    pub(crate) fn shared_cache(&self) -> Option<Arc<Cache>> {
        self.open().ok()?.cache.clone()
    }

    /// Rows of a statement that changes nothing, within [`READ_TIMEOUT`].
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

    /// Rows of a statement that changes something and is not repeated where its answer is lost.
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

/// Rows of a statement that changes nothing, by the shared connection.
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

/// The outcome of `work`, however late it comes. Where an answer is overdue, whoever comes next
/// connects anew, which shows within a moment if there is a primary.
pub(crate) async fn answered<R>(pool: &Pool, work: impl Future<Output = R>) -> R {
    let mut work = pin!(work);
    if let Ok(outcome) = timeout(CONNECT_TIMEOUT, &mut work).await {
        return outcome;
    }
    pool.doubt();
    work.await
}

/// Rows of a statement that changes something, within [`CHANGE_TIMEOUT`]; an error before it was sent
/// stands outside.
pub(crate) async fn change(
    pool: &Pool,
    what: &'static str,
    sql: &'static str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Result<Vec<Row>, Failure>> {
    let connection = pool.own().await?;
    let changing = answered(pool, connection.change(what, sql, parameters));
    let changing = timeout(CHANGE_TIMEOUT, changing).await;
    let outcome = changing.unwrap_or_else(|_| Err(Failure::Lost(LATE.to_owned())));
    if !matches!(outcome, Err(Failure::Lost(_))) {
        connection.keep();
    }
    Ok(outcome)
}

/// Pause between attempts while the outcome of one is not known.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// Sends a statement as often as its answer is lost within [`CHANGE_TIMEOUT`]. Where one that was
/// sent again was stored before, a commit of our own behind it makes sure of that.
async fn repeated(
    pool: &Pool,
    what: &'static str,
    sql: &'static str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Result<Vec<Row>, Failure>> {
    let deadline = Instant::now() + CHANGE_TIMEOUT;
    let mut lost: Option<String> = None;
    loop {
        let cause = match change(pool, what, sql, parameters).await {
            Ok(Err(Failure::Lost(cause))) => cause,
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
            return Ok(Err(Failure::Lost(cause)));
        }
        lost = Some(cause);
        sleep(PAUSE).await;
    }
}

/// Makes sure that what a statement was shown is as durable as any commit.
async fn settle(pool: &Pool, what: &'static str) -> Result<()> {
    let connection = pool.own().await?;
    let settled = timeout(CHANGE_TIMEOUT, connection.barrier()).await;
    settled.map_err(|_| failure::unknown(what, LATE))??;
    connection.keep();
    Ok(())
}
