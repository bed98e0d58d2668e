//! Connections of a process: a few that many readers share, and some for one change at a time each.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fleetcast_core::model::error::Result;
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::address::{Address, Durability};
use crate::connection::{CONNECT_TIMEOUT, Connection, Seen};
use crate::failure;

/// Callers fail at once for so long after a failed connect, and then one tries again.
const FAILING_FOR: Duration = Duration::from_millis(250);

/// For a connection that is free; more than for one that is made, so that its failure is known.
const FOUND_TIMEOUT: Duration = Duration::from_millis(1_750);

/// Connections whose statements of many readers follow each other without waiting.
const SHARED: usize = 2;

pub(crate) struct Pool {
    address: Address,
    pub(crate) durability: Durability,
    pub(crate) seen: Seen,
    shared: [AsyncMutex<Option<Arc<Connection>>>; SHARED],
    next_shared: AtomicUsize,
    idle: Arc<Mutex<Vec<Connection>>>,
    own: Arc<Semaphore>,
    /// Held while one connects; the instant and cause of the last one that failed.
    connecting: AsyncMutex<()>,
    failed: Mutex<Option<(Instant, String)>>,
}

/// A connection of one user. It ends with its use unless that says that nothing is under way.
pub(crate) struct Own {
    connection: Option<Connection>,
    idle: Arc<Mutex<Vec<Connection>>>,
    _permit: OwnedSemaphorePermit,
}

impl Own {
    /// Gives it back to the pool: nothing of its use is under way.
    pub(crate) fn keep(mut self) {
        if let Some(connection) = self.connection.take().filter(Connection::is_alive) {
            lock(&self.idle).push(connection);
        }
    }
}

impl Deref for Own {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it goes with `keep`, which takes the whole")
    }
}

impl Pool {
    /// A pool of `size` connections, two of them at least for changes.
    pub(crate) fn new(address: Address, durability: Durability, size: usize) -> Self {
        Self {
            address,
            durability,
            seen: Seen::default(),
            shared: Default::default(),
            next_shared: AtomicUsize::new(0),
            idle: Arc::default(),
            own: Arc::new(Semaphore::new(size.saturating_sub(SHARED).max(2))),
            connecting: AsyncMutex::default(),
            failed: Mutex::default(),
        }
    }

    /// One to read with, used by others as well. A lone reader stays with the first: a session that
    /// was just at work answers sooner than one that rested.
    pub(crate) async fn shared(&self) -> Result<Arc<Connection>> {
        if let Ok(first) = self.shared[0].try_lock()
            && let Some(connection) = first.as_ref()
            && connection.is_alive()
            && Arc::strong_count(connection) == 1
        {
            return Ok(Arc::clone(connection));
        }
        let at = self.next_shared.fetch_add(1, Ordering::Relaxed) % SHARED;
        let mut slot = self.shared[at].lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| connection.is_alive()) {
            return Ok(Arc::clone(connection));
        }
        *slot = None;
        let connection = Arc::new(self.connect().await?);
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Forgets connections that rest: whoever needs one asks who the primary is.
    pub(crate) fn doubt(&self) {
        lock(&self.idle).clear();
    }

    /// One for a change or a transaction of its own.
    pub(crate) async fn own(&self) -> Result<Own> {
        let found = timeout(FOUND_TIMEOUT, self.found()).await;
        found.unwrap_or_else(|_| Err(failure::unavailable("connect", "all connections are in use")))
    }

    async fn found(&self) -> Result<Own> {
        let permit = Arc::clone(&self.own).acquire_owned().await;
        let permit = permit.expect("nobody closes the semaphore");
        let idle = Arc::clone(&self.idle);
        loop {
            let found = lock(&self.idle).pop();
            match found {
                Some(connection) if connection.is_alive() => {
                    return Ok(Own { connection: Some(connection), idle, _permit: permit });
                }
                Some(_) => {}
                None => {
                    let connection = Some(self.connect().await?);
                    return Ok(Own { connection, idle, _permit: permit });
                }
            }
        }
    }

    async fn connect(&self) -> Result<Connection> {
        self.fail_at_once()?;
        let _connecting = self.connecting.lock().await;
        self.fail_at_once()?;
        let opening = Connection::open(&self.address, self.durability, &self.seen);
        let connected = timeout(CONNECT_TIMEOUT, opening).await;
        let connected =
            connected.unwrap_or_else(|_| Err(failure::unavailable("connect", "no answer in time")));
        let cause = connected.as_ref().err().map(|error| (Instant::now(), error.to_string()));
        *lock(&self.failed) = cause;
        connected
    }

    fn fail_at_once(&self) -> Result<()> {
        let failed = lock(&self.failed);
        let Some((at, cause)) = &*failed else { return Ok(()) };
        if at.elapsed() < FAILING_FOR {
            Err(failure::unavailable("connect", cause))
        } else {
            Ok(())
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is complete before anything can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
