//! Group commit: what arrives while one commit runs shares the next one.
//!
//! There is no committer thread, so nothing has to survive a fork: the first caller that finds
//! nobody committing does it for all who wait, and then calls the first of those who came since.
//! Nobody is woken who has nothing to do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use crate::model::error::{Error, Result};

/// Greatest number of items in one commit: bounds the size of a transaction.
const GROUP_MAX: usize = 256;

/// Gathers items of concurrent callers into groups and commits a group at a time.
pub(super) struct GroupCommit<T, R = ()> {
    state: Mutex<State<T, R>>,
}

struct State<T, R> {
    /// In order of arrival.
    items: Vec<T>,
    /// Callers that wait for them, in the same order.
    callers: Vec<Arc<Caller<R>>>,
    /// True while somebody commits, or was called to.
    is_led: bool,
}

/// A thread that waits.
struct Caller<R> {
    thread: Thread,
    turn: Mutex<Turn<R>>,
}

#[derive(Default)]
enum Turn<R> {
    #[default]
    Wait,
    /// It is to commit what waits, its own item first.
    Lead,
    /// Its item was part of a commit that ended so.
    Done(Result<R>),
}

impl<T, R: Copy> GroupCommit<T, R> {
    pub(super) fn new() -> Self {
        let state = State { items: Vec::new(), callers: Vec::new(), is_led: false };
        Self { state: Mutex::new(state) }
    }

    /// Returns once `item` was part of a group that `commit` ended, with that group's result.
    ///
    /// # Errors
    /// Those that `commit` returned for the group.
    pub(super) fn submit(&self, item: T, commit: impl Fn(&[T]) -> Result<R>) -> Result<R> {
        let caller = Arc::new(Caller { thread: thread::current(), turn: Mutex::default() });
        let leads = {
            let mut state = lock(&self.state);
            state.items.push(item);
            state.callers.push(Arc::clone(&caller));
            !std::mem::replace(&mut state.is_led, true)
        };
        if leads { self.lead(commit) } else { self.wait(&caller, commit) }
    }

    fn wait(&self, caller: &Caller<R>, commit: impl Fn(&[T]) -> Result<R>) -> Result<R> {
        loop {
            // A statement of its own: the lock must not be held while this thread sleeps.
            let turn = std::mem::take(&mut *lock(&caller.turn));
            match turn {
                Turn::Wait => thread::park(),
                Turn::Lead => return self.lead(commit),
                Turn::Done(result) => return result,
            }
        }
    }

    /// Commits what waits, and tells those it belongs to.
    fn lead(&self, commit: impl Fn(&[T]) -> Result<R>) -> Result<R> {
        let (items, callers) = {
            let mut state = lock(&self.state);
            let size = state.items.len().min(GROUP_MAX);
            let items: Vec<T> = state.items.drain(..size).collect();
            (items, state.callers.drain(..size).collect())
        };
        let mut ending = Ending { group: self, callers, result: Err(Error::Poisoned) };
        ending.result = commit(&items);
        let own = copy(&ending.result);
        drop(ending);
        own
    }
}

/// Ends a commit, also one that panics: a bug stops one request, not the process.
struct Ending<'g, T, R: Copy> {
    group: &'g GroupCommit<T, R>,
    callers: Vec<Arc<Caller<R>>>,
    result: Result<R>,
}

impl<T, R: Copy> Drop for Ending<'_, T, R> {
    fn drop(&mut self) {
        // The next commit begins before the answers of this one are on their way.
        let mut state = lock(&self.group.state);
        let next = state.callers.first().cloned();
        state.is_led = next.is_some();
        drop(state);
        if let Some(next) = next {
            next.call(Turn::Lead);
        }
        // The first one is the leader itself.
        for caller in self.callers.iter().skip(1) {
            caller.call(Turn::Done(copy(&self.result)));
        }
    }
}

impl<R> Caller<R> {
    fn call(&self, turn: Turn<R>) {
        *lock(&self.turn) = turn;
        self.thread.unpark();
    }
}

fn copy<R: Copy>(result: &Result<R>) -> Result<R> {
    result.as_ref().map_err(Error::for_each_waiter).copied()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is complete before anything can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};
    use std::thread;

    #[test]
    fn what_arrives_during_a_commit_shares_the_next_one() {
        let group = GroupCommit::new();
        let (entered_send, entered) = mpsc::channel();
        let release = Barrier::new(2);
        let commits = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                group.submit(0, |_| {
                    entered_send.send(()).unwrap();
                    release.wait();
                    Ok(())
                })
            });
            entered.recv().unwrap();
            for item in 1..=8 {
                let (group, commits) = (&group, &commits);
                scope.spawn(move || {
                    group.submit(item, |items| {
                        assert_eq!(items.len(), 8);
                        commits.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    })
                });
            }
            while lock(&group.state).items.len() < 8 {
                thread::yield_now();
            }
            release.wait();
        });
        assert_eq!(commits.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_failed_commit_fails_its_own_group_only() {
        let group = GroupCommit::new();
        let failed = group.submit(1, |_| Err(Error::DiskFull));
        assert!(matches!(failed, Err(Error::DiskFull)));
        assert!(group.submit(2, |_| Ok(())).is_ok());
    }

    #[test]
    fn a_panic_in_a_commit_leaves_nobody_waiting() {
        let group = GroupCommit::new();
        let panicked = thread::scope(|scope| {
            scope.spawn(|| group.submit(1, |_| panic!("a bug in the commit"))).join()
        });
        assert!(panicked.is_err());
        assert!(group.submit(2, |_| Ok(())).is_ok());
    }
}
