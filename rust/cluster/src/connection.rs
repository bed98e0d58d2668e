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
//!
//! A session stays on its server, whatever happens to that server: a standby may have replaced it,
//! or a reload may have changed its settings. So behind each statement, in the same round trip, the
//! server says if its settings still keep the promises. An answer counts only if they do, and if the
//! process knows of no newer timeline by then.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use futures_util::future::{join, poll_fn};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::error::Severity;
use tokio_postgres::types::{FromSql, PgLsn, ToSql};
use tokio_postgres::{AsyncMessage, Client, Config, Row, Statement};

use crate::address::{DatabaseAddress, Durability};
use crate::failure::{self, StatementFailure};
use crate::seen::{ClusterFacts, now_us, timeline};

/// Time for the whole handshake with a host. A request that waits for it is answered within two
/// seconds.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Time for the other hosts after a primary has answered: long enough for healthy hosts.
const OTHERS_TIMEOUT: Duration = Duration::from_millis(200);

/// The session itself waits for a standby with each commit, whatever the server's files say. Its last
/// setting tells the triggers of `schema.rs` that it compares keys.
const FACTS: &str = concat!(
    "SELECT set_config('synchronous_commit', 'on', false), pg_is_in_recovery(), \
    CASE WHEN NOT pg_is_in_recovery() THEN ",
    timeline!(),
    " END, \
    current_setting('fsync'), current_setting('full_page_writes'), \
    current_setting('synchronous_standby_names') <> '', \
    (extract(epoch FROM clock_timestamp()) * 1000000)::int8, \
    set_config('fleetcast.compares_keys', 'on', false)"
);

/// Asked behind each statement. A reload can take the standbys away from a commit that waits. A
/// second reload can give them back before this question, and commits do not wait before the
/// server's checkpointer has heard of that. So the second column tells of a reload.
const KEEPS_PROMISES: &str = "SELECT current_setting('fsync') = 'on' \
    AND current_setting('full_page_writes') = 'on' \
    AND ($1::bool OR current_setting('synchronous_standby_names') <> ''), \
    NOT $1 AND pg_conf_load_time() > clock_timestamp() - interval '1 minute'";

/// Position up to which the primary's own disk has the write-ahead log, commits of this session
/// included.
const WRITTEN: &str = "SELECT pg_current_wal_flush_lsn()";

/// A role that may not see replication gets no proof.
const COPIED: &str = "SELECT EXISTS (SELECT FROM pg_stat_replication \
    WHERE sync_state IN ('sync', 'quorum') AND flush_lsn >= $1) \
    OR NOT pg_has_role('pg_read_all_stats', 'USAGE')";

/// Pause between two questions about a copy, which takes a standby a few milliseconds.
const COPY_PAUSE: Duration = Duration::from_millis(2);

/// A transaction that changes no data and waits for the standbys like any other.
const BARRIER: &str = "SELECT pg_logical_emit_message(true, 'fleetcast', 'barrier')";

/// A session on the primary.
pub(crate) struct Session {
    client: Client,
    driver: AbortHandle,
    seen: Arc<ClusterFacts>,
    /// The timeline of the server. It stays the same for as long as the session lives.
    timeline: u32,
    is_managed: bool,
    /// True if a wait for standbys was cut short since the last check.
    is_cut_short: Arc<AtomicBool>,
    /// True if the last answer came soon after a reload of the server's settings.
    is_reloaded: AtomicBool,
    /// True if the session did not answer in time, or on a server that breaks a promise.
    is_given_up: AtomicBool,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Session {
    /// Opens a session on the primary, and checks the primary's promises. It waits for a standby as
    /// long as the caller does.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`].
    pub(crate) async fn open(
        address: &DatabaseAddress,
        durability: Durability,
        seen: &Arc<ClusterFacts>,
    ) -> Result<Self> {
        let (mut connection, facts) = primary(address, seen).await?;
        if facts.timeline < seen.timeline() {
            return Err(unreachable("the only primary that answers was replaced by another"));
        }
        if let Some(fault) = facts.fault(durability) {
            return Err(unreachable(&fault));
        }
        connection.is_managed = durability == Durability::Managed;
        connection.timeline = facts.timeline;
        seen.note_clock_lead(facts.clock_lead_us);
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
    ) -> Result<Vec<Row>, StatementFailure> {
        let statement = self.prepared(what, sql).await?;
        self.in_good_standing(what, self.client.query(&statement, parameters)).await
    }

    /// Returns the rows of a statement that changes data, once it is as durable as the settings
    /// say.
    pub(crate) async fn change(
        &self,
        what: &'static str,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StatementFailure> {
        let rows = self.query(what, sql, parameters).await;
        self.replicated(what, rows).await
    }

    /// Runs a text of several statements, or a statement that cannot be prepared.
    pub(crate) async fn run(&self, what: &'static str, sql: &str) -> Result<(), StatementFailure> {
        let done = self.in_good_standing(what, self.client.batch_execute(sql)).await;
        self.replicated(what, done).await
    }

    /// Returns the answer to `statement`, unless the server breaks a promise after it or was
    /// replaced meanwhile. Both questions go out before the first answer comes.
    async fn in_good_standing<R>(
        &self,
        what: &'static str,
        statement: impl Future<Output = Result<R, tokio_postgres::Error>>,
    ) -> Result<R, StatementFailure> {
        let check = self.prepared(what, KEEPS_PROMISES).await?;
        let parameters: [&(dyn ToSql + Sync); 1] = [&self.is_managed];
        let (answer, check) = join(statement, self.client.query_one(&check, &parameters)).await;
        let answer = answer.map_err(|error| failure::of(what, &error))?;
        let check = check.map_err(|error| failure::of(what, &error))?;
        self.is_reloaded.store(check.get(1), Ordering::Release);
        if !check.get::<_, bool>(0) {
            self.give_up();
            return Err(StatementFailure::Lost(
                "its settings do not keep acknowledged rows".to_owned(),
            ));
        }
        if self.is_replaced() {
            return Err(StatementFailure::Lost("a standby has replaced it".to_owned()));
        }
        Ok(answer)
    }

    /// Returns the outcome of a change once a standby has it. Turns a success with a warning into a
    /// loss: an administrator can cut a wait for standbys short, and the server then reports success
    /// with a warning. Soon after a reload, the wait itself proves nothing, so the standbys are asked.
    async fn replicated<R>(
        &self,
        what: &'static str,
        outcome: Result<R, StatementFailure>,
    ) -> Result<R, StatementFailure> {
        let is_cut_short = self.is_cut_short.swap(false, Ordering::AcqRel);
        let outcome = outcome?;
        if is_cut_short {
            return Err(StatementFailure::Lost("a wait for standbys was cut short".to_owned()));
        }
        if self.is_reloaded.load(Ordering::Acquire) {
            let written: PgLsn = self.value(what, WRITTEN, &[]).await?;
            while !self.value::<bool>(what, COPIED, &[&written]).await? {
                sleep(COPY_PAUSE).await;
            }
        }
        Ok(outcome)
    }

    /// Returns the value of a statement that gives a single value.
    async fn value<V: for<'r> FromSql<'r>>(
        &self,
        what: &'static str,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<V, StatementFailure> {
        let statement = self.prepared(what, sql).await?;
        let asked = self.client.query_one(&statement, parameters);
        self.in_good_standing(what, asked).await.map(|row| row.get(0))
    }

    async fn prepared(
        &self,
        what: &'static str,
        sql: &'static str,
    ) -> Result<Statement, StatementFailure> {
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

    /// Returns true if the process knows of a newer timeline than the server's.
    fn is_replaced(&self) -> bool {
        self.timeline < self.seen.timeline()
    }

    /// Returns true unless the session is known to be closed or given up, or its server replaced.
    pub(crate) fn is_alive(&self) -> bool {
        !self.client.is_closed() && !self.is_given_up.load(Ordering::Acquire) && !self.is_replaced()
    }

    /// Leaves the session to the callers that already wait for an answer.
    pub(crate) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Release);
    }
}

const CONNECTING: &str = "connect";

/// Answers of a host.
pub(crate) struct HostFacts {
    is_standby: bool,
    /// The timeline of a primary, or 0 of a standby.
    pub(crate) timeline: u32,
    /// Values of [`CHECKED`].
    settings: [String; 2],
    has_standbys: bool,
    clock_lead_us: i64,
}

/// Settings that must both be on, or an acknowledged row could be lost.
const CHECKED: [&str; 2] = ["fsync", "full_page_writes"];

impl HostFacts {
    pub(crate) async fn ask(client: &Client) -> Result<Self, StatementFailure> {
        let before_us = now_us();
        let row = client.query_one(FACTS, &[]).await;
        let row = row.map_err(|error| failure::of(CONNECTING, &error))?;
        let between_us = before_us.midpoint(now_us());
        let timeline: Option<String> = row.get(2);
        let timeline = timeline.and_then(|text| u32::from_str_radix(&text, 16).ok());
        Ok(Self {
            is_standby: row.get(1),
            timeline: timeline.unwrap_or(0),
            settings: [row.get(3), row.get(4)],
            has_standbys: row.get(5),
            clock_lead_us: row.get::<_, i64>(6) - between_us,
        })
    }

    /// Returns the reason why acknowledged rows could be lost on this primary, if there is a
    /// reason.
    fn fault(&self, durability: Durability) -> Option<String> {
        for (name, value) in CHECKED.iter().zip(&self.settings) {
            if value != "on" {
                return Some(format!("{name} is {value}, so acknowledged rows could be lost"));
            }
        }
        (durability == Durability::Quorum && !self.has_standbys).then(|| {
            "it has no synchronous_standby_names, so there would be one copy of acknowledged rows; set them, \
             or store.durability = \"managed\" if a provider replicates below PostgreSQL".to_owned()
        })
    }
}

/// Returns the primary with the highest timeline among the hosts that answer in time.
async fn primary(
    address: &DatabaseAddress,
    seen: &Arc<ClusterFacts>,
) -> Result<(Session, HostFacts)> {
    let asked = address.hosts.iter().enumerate().map(|(at, host)| async move {
        let answer = timeout(CONNECT_TIMEOUT, answering(address, host, seen)).await;
        if let Ok(Ok((_, facts))) = &answer {
            seen.note_timeline(facts.timeline, at);
        }
        answer.unwrap_or_else(|_| Err(StatementFailure::Lost("no answer in time".to_owned())))
    });
    let mut asked: FuturesUnordered<_> = asked.collect();
    let mut best: Option<(Session, HostFacts)> = None;
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
            Err(StatementFailure::Lost(text)) => cause = text,
            Err(other) => cause = other.of_read(CONNECTING).to_string(),
        }
    }
    best.ok_or_else(|| unreachable(&cause))
}

async fn answering(
    address: &DatabaseAddress,
    host: &Config,
    seen: &Arc<ClusterFacts>,
) -> Result<(Session, HostFacts), StatementFailure> {
    let connected = host.connect(address.tls.clone()).await;
    let (client, link) = connected.map_err(|error| failure::of(CONNECTING, &error))?;
    let is_cut_short = Arc::new(AtomicBool::new(false));
    let driver = tokio::spawn(drive(link, Arc::clone(&is_cut_short))).abort_handle();
    let connection = Session {
        client,
        driver,
        seen: Arc::clone(seen),
        timeline: 0,
        is_managed: false,
        is_cut_short,
        is_reloaded: AtomicBool::new(false),
        is_given_up: AtomicBool::new(false),
        statements: Mutex::default(),
    };
    let facts = HostFacts::ask(&connection.client).await?;
    Ok((connection, facts))
}

/// Moves bytes until the session ends.
async fn drive<S, T>(mut link: tokio_postgres::Connection<S, T>, is_cut_short: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| link.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message
            && notice.parsed_severity() == Some(Severity::Warning)
            && notice.routine() == Some(WAITING)
        {
            is_cut_short.store(true, Ordering::Release);
        }
    }
}

/// The function of PostgreSQL that waits for standbys. Its warnings have no code of their own, and
/// their texts are translated. Other warnings, such as a collation's version, are harmless.
const WAITING: &str = "SyncRepWaitForLSN";

fn unreachable(cause: &str) -> Error {
    failure::unavailable(CONNECTING, cause)
}
