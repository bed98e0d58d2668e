//! Group commit: what arrives while one commit runs shares the next one.
//!
//! There is no committer thread, so nothing has to survive a fork: the first caller that finds
//! nobody committing does it for all who wait.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// Items that one commit takes at most: bounds the size of a transaction.
const GROUP_MAX: usize = 256;

/// Gathers items of concurrent callers into groups and commits a group at a time.
pub(super) struct GroupCommit<T> {
    state: Mutex<State<T>>,
    committed: Condvar,
}

struct State<T> {
    waiting: Vec<T>,
    /// Number of items that entered `waiting` so far.
    entered: u64,
    /// Number of items, in order of entry, whose commit has ended.
    ended: u64,
    /// Ranges of entries whose commit failed and that their callers have not yet collected.
    failures: Vec<Failure>,
    committing: bool,
}

struct Failure {
    first: u64,
    last: u64,
    uncollected: u64,
    error: Error,
}

impl<T> GroupCommit<T> {
    pub(super) fn new() -> Self {
        let state = State {
            waiting: Vec::new(),
            entered: 0,
            ended: 0,
            failures: Vec::new(),
            committing: false,
        };
        Self { state: Mutex::new(state), committed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns once `item` was part of a group that `commit` ended, with that group's result.
    ///
    /// # Errors
    /// What `commit` returned for the group.
    pub(super) fn submit(&self, item: T, commit: impl Fn(&[T]) -> Result<()>) -> Result<()> {
        let mut state = self.lock();
        state.entered += 1;
        let ticket = state.entered;
        state.waiting.push(item);
        loop {
            if state.ended >= ticket {
                return state.collect(ticket);
            }
            if state.committing {
                state = self.committed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.committing = true;
            let size = state.waiting.len().min(GROUP_MAX);
            let group: Vec<T> = state.waiting.drain(..size).collect();
            drop(state);
            let guard = Unfinished { group: self, size: size as u64 };
            let result = commit(&group);
            std::mem::forget(guard);
            state = self.lock();
            state.finish(size as u64, result);
            self.committed.notify_all();
        }
    }
}

impl<T> State<T> {
    fn finish(&mut self, size: u64, result: Result<()>) {
        self.committing = false;
        if let Err(error) = result {
            let (first, last) = (self.ended + 1, self.ended + size);
            self.failures.push(Failure { first, last, uncollected: size, error });
        }
        self.ended += size;
    }

    fn collect(&mut self, ticket: u64) -> Result<()> {
        let covers = |failure: &Failure| (failure.first..=failure.last).contains(&ticket);
        let Some(at) = self.failures.iter().position(covers) else {
            return Ok(());
        };
        self.failures[at].uncollected -= 1;
        let error = self.failures[at].error.for_each_waiter();
        if self.failures[at].uncollected == 0 {
            self.failures.swap_remove(at);
        }
        Err(error)
    }
}

/// Releases the waiters when a commit panics, so that a bug stops one request, not the process.
struct Unfinished<'a, T> {
    group: &'a GroupCommit<T>,
    size: u64,
}

impl<T> Drop for Unfinished<'_, T> {
    fn drop(&mut self) {
        self.group.lock().finish(self.size, Err(Error::Poisoned));
        self.group.committed.notify_all();
    }
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
            while group.lock().waiting.len() < 8 {
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
        assert!(group.lock().failures.is_empty());
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
