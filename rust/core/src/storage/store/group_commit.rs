//! Group commit: what arrives while one commit runs shares the next one. What is read by all who
//! wait for it is grouped alike.
//!
//! There is no committer thread, so nothing has to survive a fork: the first caller that finds
//! nobody committing does it for all who wait, and then calls the first of those who came since.
//! Nobody is woken who has nothing to do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use crate::model::error::{Error, Result};

/// Greatest number of items in one commit: bounds the size of a transaction.
const GROUP_MAX: usize = 256;
/// Greatest number of bytes in one commit, unless its first item has more: bounds what one who
/// waits may have to wait for, and the memory of a statement.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// Gathers items of concurrent callers into groups and commits a group at a time.
pub struct GroupCommit<T, R = ()> {
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
    /// Size of its item.
    bytes: usize,
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

impl<T, R> Default for GroupCommit<T, R> {
    fn default() -> Self {
        let state = State { items: Vec::new(), callers: Vec::new(), is_led: false };
        Self { state: Mutex::new(state) }
    }
}

impl<T, R: Copy> GroupCommit<T, R> {
    /// Returns once `item`, which has so many `bytes`, was part of a group that `commit` ended, with
    /// that group's result.
    ///
    /// # Errors
    /// Those that `commit` returned for the group ([`Error::for_each_waiter`]).
    pub fn submit(&self, item: T, bytes: usize, commit: impl Fn(&[T]) -> Result<R>) -> Result<R> {
        let mut state = lock(&self.state);
        if !state.is_led {
            // Nobody waits either: one who does is called to lead before this is false.
            state.is_led = true;
            drop(state);
            return self.end(Vec::new(), &[item], commit);
        }
        let (thread, turn) = (thread::current(), Mutex::default());
        let caller = Arc::new(Caller { thread, bytes, turn });
        state.items.push(item);
        state.callers.push(Arc::clone(&caller));
        drop(state);
        self.wait(&caller, commit)
    }

    /// Number of items that wait for the commit under way to end.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.state).items.len()
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
            let size = first_group(state.callers.iter().map(|caller| caller.bytes));
            let items: Vec<T> = state.items.drain(..size).collect();
            (items, state.callers.drain(..size).collect())
        };
        self.end(callers, &items, commit)
    }

    fn end(
        &self,
        callers: Vec<Arc<Caller<R>>>,
        items: &[T],
        commit: impl Fn(&[T]) -> Result<R>,
    ) -> Result<R> {
        let mut ending = Ending { group: self, callers, result: Err(Error::Poisoned) };
        ending.result = commit(items);
        let own = copy(&ending.result);
        drop(ending);
        own
    }
}

/// Number of items that are committed together, of all that wait with so many bytes each.
pub fn first_group(bytes: impl Iterator<Item = usize>) -> usize {
    let mut total = 0_usize;
    let fits = |(index, bytes): &(usize, usize)| {
        total = total.saturating_add(*bytes);
        *index == 0 || total <= GROUP_BYTES_MAX
    };
    bytes.take(GROUP_MAX).enumerate().take_while(fits).count()
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
        let group = GroupCommit::default();
        let (entered_send, entered) = mpsc::channel();
        let release = Barrier::new(2);
        let commits = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                group.submit(0, 1, |_| {
                    entered_send.send(()).unwrap();
                    release.wait();
                    Ok(())
                })
            });
            entered.recv().unwrap();
            for item in 1..=8 {
                let (group, commits) = (&group, &commits);
                scope.spawn(move || {
                    group.submit(item, 1, |items| {
                        assert_eq!(items.len(), 8);
                        commits.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    })
                });
            }
            while group.waiting() < 8 {
                thread::yield_now();
            }
            release.wait();
        });
        assert_eq!(commits.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_group_is_bounded_in_items_and_bytes() {
        let group = |bytes: &[usize]| first_group(bytes.iter().copied());
        assert_eq!(group(&[1; 300]), GROUP_MAX);
        assert_eq!(group(&[GROUP_BYTES_MAX / 2; 3]), 2);
        assert_eq!(group(&[GROUP_BYTES_MAX, 1]), 1);
        assert_eq!(group(&[usize::MAX, 0, 1]), 1, "one item passes, whatever it has");
    }

    #[test]
    fn a_failed_commit_fails_its_own_group_only() {
        let group = GroupCommit::default();
        let failed = group.submit(1, 1, |_| Err(Error::DiskFull));
        assert!(matches!(failed, Err(Error::DiskFull)));
        assert!(group.submit(2, 1, |_| Ok(())).is_ok());
    }

    #[test]
    fn a_panic_in_a_commit_leaves_nobody_waiting() {
        let group = GroupCommit::default();
        let panicked = thread::scope(|scope| {
            scope.spawn(|| group.submit(1, 1, |_| panic!("a bug in the commit"))).join()
        });
        assert!(panicked.is_err());
        assert!(group.submit(2, 1, |_| Ok(())).is_ok());
    }
}
