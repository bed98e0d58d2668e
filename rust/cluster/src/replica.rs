//! Records that a process keeps in memory, for questions of each request.
//!
//! The database keeps them; a process asks it twice a second if there is anything new. While it
//! cannot be reached, the records are as they were.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use fleetcast_core::model::error::{Result, catching};
use fleetcast_core::storage::records::{Commit, RecordStore, Snapshot, State, StateSnapshot};

use crate::cluster::Cluster;
use crate::records::{PLACE, Records};

/// With the round trip and a moment to read, a change is known within a second.
const ROUND: Duration = Duration::from_millis(500);

/// The records of a store, in memory.
pub struct Replica {
    copy: Arc<Copy>,
    /// True if a thread asks for news; else each transaction does.
    follows: bool,
    /// The thread that asks, while there is one.
    following: Mutex<Option<Arc<Following>>>,
}

struct Copy {
    records: Records,
    /// Locked while the database is asked.
    asks: Mutex<()>,
    state: Mutex<Option<Arc<State>>>,
}

#[derive(Default)]
struct Following {
    is_over: Mutex<bool>,
    ends: Condvar,
}

impl Replica {
    /// The records of the store of this name. If it `follows`, the first use begins to ask for news.
    #[must_use]
    pub fn new(cluster: Arc<Cluster>, name: &str, follows: bool) -> Self {
        let (asks, state) = (Mutex::default(), Mutex::default());
        let copy = Arc::new(Copy { records: Records::new(cluster, name), asks, state });
        Self { copy, follows, following: Mutex::default() }
    }

    fn follow(&self) {
        let mut following = locked(&self.following);
        if following.is_none() {
            let begun = Arc::new(Following::default());
            let (copy, run) = (Arc::downgrade(&self.copy), Arc::clone(&begun));
            let named = thread::Builder::new().name("replica".to_owned());
            // Without the thread, records are as old as the last refusal or change.
            if named.spawn(move || run.run(&copy)).is_ok() {
                *following = Some(begun);
            }
        }
    }
}

impl Following {
    fn run(&self, copy: &Weak<Copy>) {
        loop {
            let waited = self.ends.wait_timeout_while(locked(&self.is_over), ROUND, |over| !*over);
            if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                return;
            }
            let Some(copy) = copy.upgrade() else { return };
            // They are as they were.
            drop(catching(|| copy.refresh()));
        }
    }
}

impl Copy {
    /// The records as they are in the database now.
    fn refresh(&self) -> Result<Arc<State>> {
        let _asks = locked(&self.asks);
        let state = self.state();
        match self.records.newer(state.as_ref().map(|state| state.version))? {
            None => Ok(state.unwrap_or_default()),
            Some(newer) => {
                let newer = Arc::new(newer);
                *locked(&self.state) = Some(Arc::clone(&newer));
                Ok(newer)
            }
        }
    }

    /// The records as this process knows them.
    fn state(&self) -> Option<Arc<State>> {
        locked(&self.state).clone()
    }
}

impl RecordStore for Replica {
    fn place(&self) -> String {
        PLACE.to_owned()
    }

    fn begin(&self, writes: bool) -> Result<Box<dyn Snapshot>> {
        if self.follows {
            self.follow();
        }
        let transaction = writes.then(|| self.copy.records.transaction(true)).transpose()?;
        // Nobody else changes anything while this writes.
        let known = self.copy.state().filter(|_| self.follows && !writes);
        let state = known.map_or_else(|| self.copy.refresh(), Ok)?;
        let copy = Arc::clone(&self.copy);
        let commit = transaction.map(|transaction| -> Commit {
            Box::new(move |changes| {
                Box::new(transaction).commit(changes)?;
                // The change is made; the next look asks again.
                drop(copy.refresh());
                Ok(())
            })
        });
        Ok(Box::new(StateSnapshot::new(state, commit)))
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
