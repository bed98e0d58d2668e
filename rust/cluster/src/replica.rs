//! Records that a process keeps in memory, because every request asks for them.
//!
//! The database keeps the records. A process asks twice a second if there is news. While the
//! database cannot be reached, the records in memory stay as they were.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use fleetcast_core::model::error::{Result, catching};
use fleetcast_core::storage::records::{
    CommitFn, RecordSnapshot, RecordStore, RecordsVersion, StateMark, StateSnapshot,
};

use crate::changes::{self, ChangeMark};
use crate::cluster::Cluster;
use crate::identity::Id;
use crate::records::{ClusterRecords, PLACE};

/// Pause between questions. With the round trip and the read, a change is known within a second.
const ROUND: Duration = Duration::from_millis(500);

/// The records of a store, in memory.
pub struct Replica {
    copy: Arc<ReplicaState>,
    /// If true, a thread asks for news; else each transaction does.
    follows: bool,
    /// The thread that asks for news, while it runs.
    following: Mutex<Option<Arc<FollowerThread>>>,
}

struct ReplicaState {
    records: ClusterRecords,
    /// Locked while the database is asked.
    asks: Mutex<()>,
    state: Mutex<Option<RecordsCopy>>,
}

/// All records as they were after a change.
#[derive(Clone, Default)]
struct RecordsCopy {
    records: Arc<RecordsVersion>,
    /// The id of the change.
    change: Option<Id>,
    /// How often all records were read.
    reads: u64,
}

#[derive(Default)]
struct FollowerThread {
    is_over: Mutex<bool>,
    ends: Condvar,
}

impl Replica {
    /// Opens the records of the store of this name. If it `follows`, the first use starts the
    /// thread that asks for news.
    #[must_use]
    pub fn new(cluster: Arc<Cluster>, name: &str, follows: bool) -> Self {
        let records = ClusterRecords { cluster, name: name.to_owned(), is_followed: true };
        let (asks, state) = (Mutex::default(), Mutex::default());
        let copy = Arc::new(ReplicaState { records, asks, state });
        Self { copy, follows, following: Mutex::default() }
    }

    /// Returns the records that this process knows, if it follows the store; else those that are in
    /// the database now.
    fn known(&self) -> Result<RecordsCopy> {
        if self.follows {
            self.follow();
        }
        let known = locked(&self.copy.state).clone().filter(|_| self.follows);
        known.map_or_else(|| self.copy.refresh(), Ok)
    }

    fn follow(&self) {
        let mut following = locked(&self.following);
        if following.is_none() {
            let begun = Arc::new(FollowerThread::default());
            let (copy, run) = (Arc::downgrade(&self.copy), Arc::clone(&begun));
            let named = thread::Builder::new().name("replica".to_owned());
            // Without the thread, records are as old as the last refusal or change.
            if named.spawn(move || run.run(&copy)).is_ok() {
                *following = Some(begun);
            }
        }
    }
}

impl FollowerThread {
    fn run(&self, copy: &Weak<ReplicaState>) {
        loop {
            let waited = self.ends.wait_timeout_while(locked(&self.is_over), ROUND, |over| !*over);
            if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                return;
            }
            let Some(copy) = copy.upgrade() else { return };
            // After an error the records stay as they were.
            drop(catching(|| copy.refresh()));
        }
    }
}

impl ReplicaState {
    /// Returns the records that are in the database now.
    fn refresh(&self) -> Result<RecordsCopy> {
        let _asks = locked(&self.asks);
        let ClusterRecords { cluster, name, .. } = &self.records;
        let held = locked(&self.state).as_ref().map(RecordsCopy::last);
        let changed = held.map(|held| changes::after(cluster, name, held)).transpose()?.flatten();
        if let Some((last, changes)) = changed {
            let mut state = locked(&self.state);
            let copy = state.get_or_insert_default();
            if !changes.is_empty() {
                // It copies all records if a snapshot still has them.
                Arc::make_mut(&mut copy.records).change(last.version, &changes);
                copy.change = last.id;
            }
            return Ok(copy.clone());
        }
        let (change, records) = changes::all(cluster, name)?;
        let mut state = locked(&self.state);
        let reads = state.as_ref().map_or(0, |copy| copy.reads) + 1;
        Ok(state.insert(RecordsCopy { records: Arc::new(records), change, reads }).clone())
    }
}

impl RecordsCopy {
    fn last(&self) -> ChangeMark {
        ChangeMark { version: self.records.version, id: self.change }
    }
}

impl RecordStore for Replica {
    fn place(&self) -> String {
        PLACE.to_owned()
    }

    fn begin(&self, writes: bool) -> Result<Box<dyn RecordSnapshot>> {
        let transaction = writes.then(|| self.copy.records.transaction(true)).transpose()?;
        // No other process changes records while this transaction writes.
        let state = if writes { self.copy.refresh() } else { self.known() }?;
        let copy = Arc::clone(&self.copy);
        let commit = transaction.map(|transaction| -> CommitFn {
            Box::new(move |changes| {
                Box::new(transaction).commit(changes)?;
                // The change is stored; the next read asks again.
                drop(copy.refresh());
                Ok(())
            })
        });
        Ok(Box::new(StateSnapshot::new(state.records, commit)))
    }

    fn mark(&self) -> Result<StateMark> {
        let state = self.known()?;
        let version = state.records.version;
        Ok(StateMark { version, opening: state.reads, ..StateMark::default() })
    }

    fn renew(&self) -> Result<bool> {
        self.copy.refresh().map(|_| true)
    }

    fn close(&self) {
        if let Some(following) = locked(&self.following).take() {
            *locked(&following.is_over) = true;
            following.ends.notify_all();
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.close();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
