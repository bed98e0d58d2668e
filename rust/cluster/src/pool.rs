//! Connections of a process: a connection that many readers share, a connection for a lone reader,
//! and several connections for one change at a time each.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fleetcast_core::model::error::{Error, Result};
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::address::{DatabaseAddress, Durability};
use crate::connection::{CONNECT_TIMEOUT, Session};
use crate::failure;
use crate::seen::ClusterFacts;

/// Time after a failed connect for which all callers fail at once. Then one caller tries again.
const FAILING_FOR: Duration = Duration::from_millis(250);

/// Time for which a failed connect is remembered. It is longer than the time until the next connect
/// has failed, because each process asks for news all the time.
const FAILED_FOR: Duration = Duration::from_millis(2_500);

/// Time for a connection to become free. It is longer than a connect may take, so that a failed
/// connect is known as failed.
const FOUND_TIMEOUT: Duration = Duration::from_millis(1_750);

/// Count of the readers' connections: the shared connection, whose statements follow each other
/// without waiting, and the lone reader's.
const OF_READERS: usize = 2;

pub(crate) struct Pool {
    pub(crate) address: DatabaseAddress,
    pub(crate) durability: Durability,
    pub(crate) seen: Arc<ClusterFacts>,
    shared: AsyncMutex<Option<Arc<Session>>>,
    idle: Arc<Mutex<Vec<Session>>>,
    own: Arc<Semaphore>,
    /// Held while one caller connects. `failed` has the instant and the error of the last connect,
    /// if that failed.
    connecting: AsyncMutex<()>,
    failed: Mutex<Option<(Instant, Error)>>,
}

/// A connection with one user. It is closed after its use, unless [`PooledSession::keep`] gives it
/// back.
pub(crate) struct PooledSession {
    connection: Option<Session>,
    idle: Arc<Mutex<Vec<Session>>>,
    _permit: OwnedSemaphorePermit,
}

impl PooledSession {
    /// Gives the connection back to the pool. No statement may be under way.
    pub(crate) fn keep(mut self) {
        if let Some(connection) = self.connection.take().filter(Session::is_alive) {
            lock(&self.idle).push(connection);
        }
    }
}

impl Deref for PooledSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.connection.as_ref().expect("it goes with `keep`, which takes the whole")
    }
}

impl Pool {
    /// Makes a pool of `size` connections, of which at least two are for changes. Example: of 8
    /// connections 6 are for changes.
    pub(crate) fn new(address: DatabaseAddress, durability: Durability, size: usize) -> Self {
        Self {
            address,
            durability,
            seen: Arc::default(),
            shared: AsyncMutex::default(),
            idle: Arc::default(),
            own: Arc::new(Semaphore::new(size.saturating_sub(OF_READERS).max(2))),
            connecting: AsyncMutex::default(),
            failed: Mutex::default(),
        }
    }

    /// Returns the connection that all readers share.
    pub(crate) async fn shared(&self) -> Result<Arc<Session>> {
        let mut slot = self.shared.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| connection.is_alive()) {
            return Ok(Arc::clone(connection));
        }
        *slot = None;
        let connection = Arc::new(self.connect().await?);
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Returns true if the shared connection works.
    pub(crate) fn has_shared(&self) -> bool {
        let slot = self.shared.try_lock();
        slot.is_ok_and(|slot| slot.as_ref().is_some_and(|connection| connection.is_alive()))
    }

    /// Closes the idle connections, so that the next users ask again which host is the primary.
    pub(crate) fn doubt(&self) {
        lock(&self.idle).clear();
    }

    /// Returns a connection for a change or a transaction.
    pub(crate) async fn own(&self) -> Result<PooledSession> {
        let found = timeout(FOUND_TIMEOUT, self.found()).await;
        found.unwrap_or_else(|_| Err(failure::unavailable("connect", "all connections are in use")))
    }

    async fn found(&self) -> Result<PooledSession> {
        let permit = if let Ok(permit) = Arc::clone(&self.own).try_acquire_owned() {
            permit
        } else {
            self.fail_within(FAILED_FOR)?;
            let permit = Arc::clone(&self.own).acquire_owned().await;
            permit.expect("nobody closes the semaphore")
        };
        let idle = Arc::clone(&self.idle);
        loop {
            let found = lock(&self.idle).pop();
            match found {
                Some(connection) if connection.is_alive() => {
                    return Ok(PooledSession {
                        connection: Some(connection),
                        idle,
                        _permit: permit,
                    });
                }
                Some(_) => {}
                None => {
                    let connection = Some(self.connect().await?);
                    return Ok(PooledSession { connection, idle, _permit: permit });
                }
            }
        }
    }

    /// Opens a connection for the caller. One caller at a time tries. While the last try has
    /// failed, other callers do not wait for the next try, or requests would gather behind a
    /// database that hangs.
    pub(crate) async fn connect(&self) -> Result<Session> {
        self.fail_within(FAILING_FOR)?;
        let _connecting = if let Ok(connecting) = self.connecting.try_lock() {
            connecting
        } else {
            self.fail_within(FAILED_FOR)?;
            self.connecting.lock().await
        };
        self.fail_within(FAILING_FOR)?;
        let opening = Session::open(&self.address, self.durability, &self.seen);
        let connected = timeout(CONNECT_TIMEOUT, opening).await;
        let connected =
            connected.unwrap_or_else(|_| Err(failure::unavailable("connect", "no answer in time")));
        let error = connected.as_ref().err().map(Error::for_each_waiter);
        *lock(&self.failed) = error.map(|error| (Instant::now(), error));
        connected
    }

    /// Returns the error of the last connect if it failed more recently than `recent`.
    fn fail_within(&self, recent: Duration) -> Result<()> {
        let failed = lock(&self.failed);
        let Some((at, error)) = &*failed else { return Ok(()) };
        if at.elapsed() < recent { Err(error.for_each_waiter()) } else { Ok(()) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is complete before code can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
