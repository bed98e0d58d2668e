//! Group commit: items that arrive while a commit runs share the next commit.
//!
//! There is no committer thread, so a fork loses no thread. A caller that finds no commit in
//! progress becomes the leader. It commits the waiting items in their order of arrival, its item
//! included. The other callers sleep until the leader gives them their result, or until a commit
//! has ended and their item is still queued. Example: while thread A commits, B, C and D arrive.
//! When A ends, it wakes B. B commits all three items at once and wakes C and D with the result.
//!
//! The result of an item goes to a thread that waits for its [`CommitSeat`], or to a function
//! ([`Committer::commit_then`]). `rust/core/tests/committer.rs` runs all orders of up to three
//! threads that need at most three preemptions.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::threads::{Mutex, MutexGuard, Thread, current, park};
use crate::model::error::{Error, Result};

/// Greatest number of items in one commit. Bounds the size of a transaction.
const GROUP_ITEMS_MAX: usize = 256;
/// Greatest number of bytes in one commit, unless its first item has more. Bounds the time that a
/// later item waits, and the memory of a statement.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// The way in which items are committed.
pub trait Commit<T, R> {
    /// The right to commit. Dropping it gives it back.
    type Turn;

    /// Greatest time that an item waits behind a commit that does not end, and the error for an
    /// item that has waited longer.
    const LATE: Option<(Duration, fn() -> Error)> = None;

    /// Returns when items may be committed. Items that arrive before it returns join the group.
    ///
    /// # Errors
    /// Returns the errors of the store. The group gets the error as its result.
    fn begin(&self) -> Result<Self::Turn>;

    /// Commits a group: all of its items or none of them.
    ///
    /// # Errors
    /// Returns the errors of the store. Every item of the group gets the error
    /// ([`Error::for_each_waiter`]).
    fn commit(&self, turn: Self::Turn, items: &[T]) -> Result<R>;
}

/// A commit that may begin at any time.
impl<T, R, F: Fn(&[T]) -> Result<R>> Commit<T, R> for F {
    type Turn = ();

    fn begin(&self) -> Result<()> {
        Ok(())
    }

    fn commit(&self, (): (), items: &[T]) -> Result<R> {
        self(items)
    }
}

type Panic = Box<dyn Any + Send>;

/// Gathers items of concurrent callers into groups, and commits one group at a time.
pub struct Committer<T, R = ()> {
    state: Mutex<CommitQueue<T, R>>,
}

struct CommitQueue<T, R> {
    /// Items that no commit has taken, in order of arrival.
    queue: VecDeque<QueueEntry<T, R>>,
    /// True while a thread leads.
    is_led: bool,
    /// Instant at which the commit in progress took its group.
    began: Option<Instant>,
}

struct QueueEntry<T, R> {
    item: T,
    bytes: usize,
    receiver: Receiver<T, R>,
}

/// The receiver of a result.
enum Receiver<T, R> {
    Seat(Arc<CommitSeat<R>>),
    Function(Box<dyn FnOnce(T, Result<R>) + Send>),
}

/// The place of an item in the queue, and later its result.
pub struct CommitSeat<R> {
    outcome: Mutex<CommitOutcome<R>>,
}

enum CommitOutcome<R> {
    /// No commit has ended with the item. These threads wait for it.
    Open(Vec<Thread>),
    Ended(Result<R>),
}

impl<T, R> Default for Committer<T, R> {
    fn default() -> Self {
        let state = CommitQueue { queue: VecDeque::new(), is_led: false, began: None };
        Self { state: Mutex::new(state) }
    }
}

impl<T, R: Copy> Committer<T, R> {
    /// Commits `item`, which has `bytes` bytes, as part of a group. Returns the result of the group.
    ///
    /// # Errors
    /// Returns the errors of the group's commit.
    pub fn submit(&self, item: T, bytes: usize, commit: &impl Commit<T, R>) -> Result<R> {
        self.wait(&self.enter(item, bytes), commit)
    }

    /// Puts an item into the queue. It is committed when a thread waits for it, or together with
    /// another item.
    pub fn enter(&self, item: T, bytes: usize) -> Arc<CommitSeat<R>> {
        let seat = Arc::new(CommitSeat { outcome: Mutex::new(CommitOutcome::Open(Vec::new())) });
        let receiver = Receiver::Seat(Arc::clone(&seat));
        self.lock().queue.push_back(QueueEntry { item, bytes, receiver });
        seat
    }

    /// Returns the result of the commit that took the item of `seat`. This thread leads if no other
    /// thread leads.
    ///
    /// # Errors
    /// Returns the errors of that commit, and the error of [`Commit::LATE`].
    ///
    /// # Panics
    /// If a call of `commit` panics, in the thread that leads. The other threads get
    /// [`Error::Poisoned`].
    pub fn wait<C: Commit<T, R>>(&self, seat: &CommitSeat<R>, commit: &C) -> Result<R> {
        seat.join(current());
        loop {
            if let Some(result) = seat.result() {
                return result;
            }
            match self.try_lead() {
                Ok(()) => self.lead_for(seat, commit),
                Err(since) => match C::LATE.map(|(limit, _)| limit.saturating_sub(since)) {
                    Some(Duration::ZERO) if self.leave(seat) => {
                        seat.end(C::LATE.map_or(Err(Error::Poisoned), |(_, late)| Err(late())));
                    }
                    // The commit in progress has taken the item, and will give the result.
                    Some(Duration::ZERO) => park(None),
                    left => park(left),
                },
            }
        }
    }

    /// Takes an item out of the queue. Returns false if a commit has taken it.
    pub fn leave(&self, seat: &CommitSeat<R>) -> bool {
        let mut state = self.lock();
        let is_of = |entry: &QueueEntry<T, R>| matches!(&entry.receiver, Receiver::Seat(other) if std::ptr::eq(&raw const **other, seat));
        let Some(index) = state.queue.iter().position(is_of) else { return false };
        drop(state.queue.remove(index));
        // The item may have belonged to the thread that was to lead.
        state.wake_next();
        true
    }

    /// Commits `item`. This thread, or the thread that leads, calls `then` with the result. If this
    /// thread leads, it returns when no item with a function waits.
    ///
    /// # Panics
    /// If a call of `commit` or of a function panics. The other calls are made first.
    pub fn commit_then(
        &self,
        item: T,
        bytes: usize,
        commit: &impl Commit<T, R>,
        then: impl FnOnce(T, Result<R>) + Send + 'static,
    ) {
        let receiver = Receiver::Function(Box::new(then));
        self.lock().queue.push_back(QueueEntry { item, bytes, receiver });
        if self.try_lead().is_ok()
            && let Some(panic) = self.lead(commit)
        {
            resume_unwind(panic);
        }
    }

    /// Returns the number of items that no commit has taken.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().queue.len()
    }

    /// Makes this thread the leader. If another thread leads, returns the age of its commit. If the
    /// queue is empty, no group has to be led: the last commit is about to give its results.
    fn try_lead(&self) -> std::result::Result<(), Duration> {
        let mut state = self.lock();
        if state.is_led || state.queue.is_empty() {
            return Err(state.began.map_or(Duration::ZERO, |began| began.elapsed()));
        }
        state.is_led = true;
        Ok(())
    }

    fn lead_for(&self, seat: &CommitSeat<R>, commit: &impl Commit<T, R>) {
        if let Some(panic) = self.lead(commit) {
            // This thread no longer waits for its item, so it must not be woken to lead.
            self.leave(seat);
            resume_unwind(panic);
        }
    }

    /// Commits one group. Continues while items with functions wait and no other thread leads.
    /// Returns the first panic of all calls.
    fn lead(&self, commit: &impl Commit<T, R>) -> Option<Panic> {
        let mut panic = None;
        loop {
            let begun = catching(&mut panic, || commit.begin());
            let (items, receivers) = self.take_group();
            let outcome = if items.is_empty() {
                Err(Error::Poisoned) // no item gets this error
            } else {
                begun.and_then(|turn| catching(&mut panic, || commit.commit(turn, &items)))
            };
            // The next commit may begin before the results of this commit are handed out.
            self.end_group();
            for (item, receiver) in items.into_iter().zip(receivers) {
                let outcome = copy(&outcome);
                match receiver {
                    Receiver::Seat(seat) => seat.end(outcome),
                    Receiver::Function(then) => {
                        let called = catching(&mut panic, || {
                            then(item, outcome);
                            Ok(())
                        });
                        drop(called);
                    }
                }
            }
            if !self.goes_on() {
                return panic;
            }
        }
    }

    fn take_group(&self) -> (Vec<T>, Vec<Receiver<T, R>>) {
        let mut state = self.lock();
        let size = first_group(state.queue.iter().map(|entry| entry.bytes));
        state.began = Some(Instant::now());
        state.queue.drain(..size).map(|entry| (entry.item, entry.receiver)).unzip()
    }

    fn end_group(&self) {
        let mut state = self.lock();
        (state.is_led, state.began) = (false, None);
        state.wake_next();
    }

    /// Leads again if items with functions wait, because no thread may be waiting behind them.
    fn goes_on(&self) -> bool {
        let mut state = self.lock();
        let has_function =
            |entry: &QueueEntry<T, R>| matches!(entry.receiver, Receiver::Function(_));
        let goes_on = !state.is_led && state.queue.iter().any(has_function);
        state.is_led |= goes_on;
        goes_on
    }

    fn lock(&self) -> MutexGuard<'_, CommitQueue<T, R>> {
        // Every change under this lock is complete before any code can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, R: Copy> CommitQueue<T, R> {
    /// Wakes the first thread that waits for a queued item, if no thread leads. The woken thread
    /// will lead.
    fn wake_next(&self) {
        if self.is_led {
            return;
        }
        let waits = |entry: &QueueEntry<T, R>| match &entry.receiver {
            Receiver::Seat(seat) => seat.wake(),
            Receiver::Function(_) => false,
        };
        let _is_woken = self.queue.iter().any(waits);
    }
}

impl<R: Copy> CommitSeat<R> {
    /// Adds a thread that waits.
    fn join(&self, thread: Thread) {
        if let CommitOutcome::Open(threads) = &mut *self.lock() {
            threads.push(thread);
        }
    }

    fn result(&self) -> Option<Result<R>> {
        match &*self.lock() {
            CommitOutcome::Open(_) => None,
            CommitOutcome::Ended(result) => Some(copy(result)),
        }
    }

    /// Wakes the waiting threads. Returns true if there is at least one.
    fn wake(&self) -> bool {
        match &*self.lock() {
            CommitOutcome::Open(threads) => {
                threads.iter().for_each(Thread::unpark);
                !threads.is_empty()
            }
            CommitOutcome::Ended(_) => false,
        }
    }

    fn end(&self, result: Result<R>) {
        let before = std::mem::replace(&mut *self.lock(), CommitOutcome::Ended(result));
        if let CommitOutcome::Open(threads) = before {
            threads.iter().for_each(Thread::unpark);
        }
    }

    fn lock(&self) -> MutexGuard<'_, CommitOutcome<R>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of queued items that are committed together. `bytes` has the sizes of the
/// items. Example: sizes of 3 MiB, 4 MiB and 2 MiB make a group of two items, because three exceed
/// 8 MiB.
fn first_group(bytes: impl Iterator<Item = usize>) -> usize {
    let mut total = 0_usize;
    let fits = |(index, bytes): &(usize, usize)| {
        total = total.saturating_add(*bytes);
        *index == 0 || total <= GROUP_BYTES_MAX
    };
    bytes.take(GROUP_ITEMS_MAX).enumerate().take_while(fits).count()
}

/// Runs `call`. A panic becomes [`Error::Poisoned`], and `panic` keeps the first panic.
fn catching<O>(panic: &mut Option<Panic>, call: impl FnOnce() -> Result<O>) -> Result<O> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|caught| {
        panic.get_or_insert(caught);
        Err(Error::Poisoned)
    })
}

fn copy<R: Copy>(result: &Result<R>) -> Result<R> {
    result.as_ref().map_err(Error::for_each_waiter).copied()
}

#[cfg(test)]
#[path = "committer/tests.rs"] // relative for the model, too
mod tests;
