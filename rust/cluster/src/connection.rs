//! A connection to the one primary that can be trusted.
//!
//! All hosts are asked at once. The primary is the host that is not in recovery and has the highest
//! timeline. A commit on it, synced if the settings say so, proves that all data it shows is
//! replicated. Without that proof, a primary that crashed and came back alone could show commits of
//! which there is no copy.
//!
//! Statements have no timeout in the database, and are never cancelled. A commit whose wait for
//! standbys is cut short becomes visible without them. A caller that has waited long enough drops
//! the connection instead.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fleetcast_core::model::error::{Error, Result};
use futures_util::future::poll_fn;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::error::Severity;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Row, Statement};

use crate::address::{Address, Durability};
use crate::failure::{self, Failure};

/// Time for the whole handshake with a host. A request that waits for it is answered within two
/// seconds.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Time for the other hosts after a primary has answered: long enough for healthy hosts.
const OTHERS_TIMEOUT: Duration = Duration::from_millis(200);

/// Settings that must all be on, or an acknowledged row could be lost.
const CHECKED: [&str; 2] = ["fsync", "full_page_writes"];

const FACTS: &str = "SELECT pg_is_in_recovery(), \
    CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END, \
    current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'), \
    current_setting('synchronous_standby_names') <> '', \
    (extract(epoch FROM clock_timestamp()) * 1000000)::int8";

/// A transaction that changes no data and waits for the standbys like any other.
const BARRIER: &str = "SELECT pg_logical_emit_message(true, 'fleetcast', 'barrier')";

/// Facts that outlive connections.
#[derive(Default)]
pub(crate) struct Seen {
    /// Highest timeline of a primary. A primary with a lower timeline was replaced by a standby.
    timeline: AtomicU32,
    /// Lead of the database's clock over this machine's, in microseconds.
    clock_lead_us: AtomicI64,
}

impl Seen {
    /// Returns microseconds since 1970 by the database's clock, as exactly as a single question can
    /// tell.
    pub(crate) fn database_now_us(&self) -> i64 {
        now_us() + self.clock_lead_us.load(Ordering::Relaxed)
    }
}

/// A session on the primary.
pub(crate) struct Connection {
    client: Client,
    driver: AbortHandle,
    /// True if the server has sent a warning since the last check.
    is_warned: Arc<AtomicBool>,
    /// True if the session did not answer in time.
    is_silent: AtomicBool,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Opens a session on the primary, and checks the primary's promises. It waits for a standby as
    /// long as the caller does.
    ///
    /// # Errors
    /// Returns [`failure::unavailable`], or [`Error::Invalid`] if a setting breaks a promise.
    pub(crate) async fn open(
        address: &Address,
        durability: Durability,
        seen: &Seen,
    ) -> Result<Self> {
        let (connection, facts) = primary(address).await?;
        let known = seen.timeline.fetch_max(facts.timeline, Ordering::AcqRel);
        if facts.timeline < known {
            return Err(unreachable("the only primary that answers was replaced by another"));
        }
        if let Some(message) = facts.fault(durability) {
            return Err(Error::Invalid { message });
        }
        seen.clock_lead_us.store(facts.clock_lead_us, Ordering::Relaxed);
        connection.barrier().await?;
        Ok(connection)
    }

    /// Commits an empty transaction and waits for it, and so for every earlier commit.
    pub(crate) async fn barrier(&self) -> Result<()> {
        let barred = self.change(CONNECTING, BARRIER, &[]).await;
        barred.map(drop).map_err(|failure| failure.of_read(CONNECTING))
    }

    /// Returns the rows of a statement that changes no data.
    pub(crate) async fn query(
        &self,
        what: &'static str,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        let statement = self.prepared(what, sql).await?;
        let rows = self.client.query(&statement, parameters).await;
        rows.map_err(|error| failure::of(what, &error))
    }

    /// Returns the rows of a statement that changes data, once it is as durable as the settings
    /// say.
    pub(crate) async fn change(
        &self,
        what: &'static str,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        let rows = self.query(what, sql, parameters).await;
        self.is_replicated(rows)
    }

    /// Runs a text of several statements, or a statement that cannot be prepared.
    pub(crate) async fn run(&self, what: &'static str, sql: &str) -> Result<(), Failure> {
        let done = self.client.batch_execute(sql).await.map_err(|error| failure::of(what, &error));
        self.is_replicated(done)
    }

    /// Turns a success with a warning into a loss: an administrator can cut a wait for standbys
    /// short, and the server then reports success with a warning.
    fn is_replicated<R>(&self, outcome: Result<R, Failure>) -> Result<R, Failure> {
        let is_warned = self.is_warned.swap(false, Ordering::AcqRel);
        match outcome {
            Ok(_) if is_warned => {
                Err(Failure::Lost("a wait for standbys was cut short".to_owned()))
            }
            other => other,
        }
    }

    async fn prepared(&self, what: &'static str, sql: &'static str) -> Result<Statement, Failure> {
        if let Some(statement) = self.lock_statements().get(sql) {
            return Ok(statement.clone());
        }
        let prepared = self.client.prepare(sql).await;
        let statement = prepared.map_err(|error| failure::of(what, &error))?;
        self.lock_statements().insert(sql, statement.clone());
        Ok(statement)
    }

    fn lock_statements(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true unless the session is known to be closed or silent.
    pub(crate) fn is_alive(&self) -> bool {
        !self.client.is_closed() && !self.is_silent.load(Ordering::Acquire)
    }

    /// Leaves the session to the callers that already wait for an answer.
    pub(crate) fn give_up(&self) {
        self.is_silent.store(true, Ordering::Release);
    }
}

const CONNECTING: &str = "connect";

/// Answers of a host.
struct Facts {
    is_standby: bool,
    timeline: u32,
    settings: [String; 3],
    has_standbys: bool,
    clock_lead_us: i64,
}

impl Facts {
    async fn ask(connection: &Connection) -> Result<Self, Failure> {
        let before_us = now_us();
        let rows = connection.query(CONNECTING, FACTS, &[]).await?;
        let between_us = before_us.midpoint(now_us());
        let row = rows.first().ok_or_else(|| Failure::Lost("no answer".to_owned()))?;
        let timeline: Option<String> = row.get(1);
        let timeline = timeline.and_then(|text| u32::from_str_radix(&text, 16).ok());
        Ok(Self {
            is_standby: row.get(0),
            timeline: timeline.unwrap_or(0),
            settings: [row.get(2), row.get(3), row.get(4)],
            has_standbys: row.get(5),
            clock_lead_us: row.get::<_, i64>(6) - between_us,
        })
    }

    /// Returns the reason why acknowledged rows could be lost on this primary, if there is a
    /// reason.
    fn fault(&self, durability: Durability) -> Option<String> {
        for (name, value) in CHECKED.iter().zip(&self.settings) {
            if value != "on" {
                return Some(format!(
                    "PostgreSQL has {name} = {value}: acknowledged rows could be lost; set it to on"
                ));
            }
        }
        if !matches!(self.settings[2].as_str(), "on" | "remote_apply") {
            let value = &self.settings[2];
            return Some(format!(
                "PostgreSQL has synchronous_commit = {value}: acknowledged rows could be lost; set it to on"
            ));
        }
        (durability == Durability::Quorum && !self.has_standbys).then(|| {
            "PostgreSQL has no synchronous_standby_names: rows would be acknowledged of which there is one copy; \
             set them, or store.durability = \"managed\" where a provider replicates below PostgreSQL".to_owned()
        })
    }
}

/// Returns the primary with the highest timeline among the hosts that answer in time.
async fn primary(address: &Address) -> Result<(Connection, Facts)> {
    let asked = address.hosts.iter().map(|host| async move {
        let answer = timeout(CONNECT_TIMEOUT, answering(address, host)).await;
        answer.unwrap_or_else(|_| Err(Failure::Lost("no answer in time".to_owned())))
    });
    let mut asked: FuturesUnordered<_> = asked.collect();
    let mut best: Option<(Connection, Facts)> = None;
    let mut cause = "all hosts are standbys".to_owned();
    let mut until = Instant::now() + CONNECT_TIMEOUT + OTHERS_TIMEOUT;
    while let Ok(Some(answer)) = timeout_at(until, asked.next()).await {
        match answer {
            Ok((_, facts)) if facts.is_standby => {}
            Ok((connection, facts)) => {
                until = until.min(Instant::now() + OTHERS_TIMEOUT);
                if best.as_ref().is_none_or(|(_, other)| other.timeline < facts.timeline) {
                    best = Some((connection, facts));
                }
            }
            Err(Failure::Lost(text)) => cause = text,
            Err(other) => cause = other.of_read(CONNECTING).to_string(),
        }
    }
    best.ok_or_else(|| unreachable(&cause))
}

async fn answering(address: &Address, host: &Config) -> Result<(Connection, Facts), Failure> {
    let connected = host.connect(address.tls.clone()).await;
    let (client, link) = connected.map_err(|error| failure::of(CONNECTING, &error))?;
    let is_warned = Arc::new(AtomicBool::new(false));
    let driver = tokio::spawn(drive(link, Arc::clone(&is_warned))).abort_handle();
    let (is_silent, statements) = (AtomicBool::new(false), Mutex::default());
    let connection = Connection { client, driver, is_warned, is_silent, statements };
    let facts = Facts::ask(&connection).await?;
    Ok((connection, facts))
}

/// Moves bytes until the session ends.
async fn drive<S, T>(mut link: tokio_postgres::Connection<S, T>, is_warned: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| link.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message
            && notice.parsed_severity() == Some(Severity::Warning)
        {
            is_warned.store(true, Ordering::Release);
        }
    }
}

fn unreachable(cause: &str) -> Error {
    failure::unavailable(CONNECTING, cause)
}

fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
