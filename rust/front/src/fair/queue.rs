//! A queue in which owners take turns, so that no owner waits for the backlog of another.
//!
//! Turns are given by CPU time. See docs/decisions/0084-cpu-shares.md.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::mem;
use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::Owner;
use super::share::LocalShare;
use super::usage::Usage;

/// Count of the lanes among which the owner with least CPU time is searched.
const NEAR_LANES: usize = 16;

/// Items of one owner that are served in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lane<K = ()> {
    /// The owner for which the items count.
    pub owner: Owner,
    /// Distinguishes the lanes of one owner.
    pub kind: K,
}

/// The last check before an item is served.
pub trait StartCheck<K, T> {
    /// Returns true if the first item of a lane may be served now. `is_heavy` says that others are
    /// active and that the item must leave cores to them. The queue calls it under its lock, so it
    /// must not use the queue.
    fn starts(&self, lane: &Lane<K>, item: &mut T, is_heavy: bool) -> bool;

    /// Returns true if the items of a lane are known to take much CPU time before they begin.
    fn is_costly(&self, _lane: &Lane<K>) -> bool {
        false
    }
}

/// Lets every item start.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCheck;

impl<K, T> StartCheck<K, T> for NoCheck {
    fn starts(&self, _lane: &Lane<K>, _item: &mut T, _is_heavy: bool) -> bool {
        true
    }
}

/// The answer to a thread that asks for work.
#[derive(Debug, PartialEq, Eq)]
pub enum Work<K, T> {
    /// An item; `done` or `done_and_get` must follow.
    Item(Lane<K>, T),
    /// No item may start now.
    Wait,
    /// The queue is closed and empty.
    End,
}

/// Items that wait for one of `2 * owner_max` threads. A lone owner gets `owner_max` of the
/// threads.
///
/// In each round, every lane that has items gets one item served. Among the lanes at the head of
/// the round, the one whose owner has used least CPU time goes first. An owner has no more items
/// under way than its share of the threads, so an owner that is slow, or stuck in its own store,
/// leaves threads to the others. If others are active too, an owner that has used more CPU time
/// than an equal part gets only `cores` of the threads, and so do the costly items of each owner.
/// While `StartCheck` returns false, the lane waits, and `retry` asks again. Safe to share between
/// threads.
///
/// The thread that went to sleep last is woken first, because its caches are warm. Each woken
/// thread wakes the next. Threads that are awake take the items before another thread has woken up.
pub struct FairQueue<K, T, S = NoCheck> {
    threads_max: usize,
    /// This process's part of the cores.
    cores: u64,
    starts: S,
    state: Mutex<FairQueueState<K, T>>,
}

struct FairQueueState<K, T> {
    lanes: HashMap<Lane<K>, VecDeque<T>, foldhash::fast::RandomState>,
    /// Lanes that have items, in the order in which they are served.
    order: VecDeque<Lane<K>>,
    /// The deque of a lane that became empty, kept for the next lane.
    spare: VecDeque<T>,
    waiting: usize,
    under_way: LocalShare,
    usage: Usage,
    /// Bound on the items that became able to start since a thread last looked at all lanes.
    due: usize,
    asleep: Vec<Thread>,
    /// True while a woken thread has not looked yet.
    waking: bool,
    closed: bool,
}

impl<K: Clone + Eq + Hash, T> FairQueue<K, T> {
    /// Makes a queue whose items all may start, in one of `processes` processes that share the
    /// cores of this machine.
    #[must_use]
    pub fn new(owner_max: usize, processes: usize) -> Self {
        Self::with_starts(owner_max, processes, NoCheck)
    }
}

impl<K: Clone + Eq + Hash, T, S: StartCheck<K, T>> FairQueue<K, T, S> {
    /// Makes a queue whose items start when `starts` allows it.
    pub fn with_starts(owner_max: usize, processes: usize, starts: S) -> Self {
        let state = FairQueueState {
            lanes: HashMap::default(),
            order: VecDeque::new(),
            spare: VecDeque::new(),
            waiting: 0,
            under_way: LocalShare::default(),
            usage: Usage::new(Instant::now()),
            due: 0,
            asleep: Vec::new(),
            waking: false,
            closed: false,
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let cores = (cores / processes.max(1)).max(1) as u64;
        Self { threads_max: 2 * owner_max, cores, starts, state: Mutex::new(state) }
    }

    /// Count of the threads that this queue shares out.
    pub fn threads_max(&self) -> usize {
        self.threads_max
    }

    /// The last check before an item is served.
    pub fn starts(&self) -> &S {
        &self.starts
    }

    /// Adds an item at the end of its lane.
    pub fn put(&self, lane: Lane<K>, item: T) {
        let mut state = self.lock();
        self.add(&mut state, lane, item);
        release(state);
    }

    /// Waits for the next item. Returns `None` when the queue is closed and empty.
    pub fn get(&self) -> Option<(Lane<K>, T)> {
        let mut state = self.lock();
        let work = self.take(&mut state);
        self.wait(work, state)
    }

    /// Returns the next item without waiting.
    #[cfg(test)]
    pub(super) fn try_get(&self) -> Work<K, T> {
        let mut state = self.lock();
        let work = self.take(&mut state);
        release(state);
        work
    }

    /// Ends an item that `get` returned, and frees its owner's thread.
    pub fn done(&self, owner: &str) {
        let mut state = self.lock();
        state.end(owner);
        release(state);
    }

    /// Does `done` and then `get`. It wakes no other thread for the item that this thread takes.
    /// `used` is the CPU time that the item took.
    pub fn done_and_get(&self, owner: &Owner, used: Duration) -> Option<(Lane<K>, T)> {
        let now = Instant::now();
        let mut state = self.lock();
        state.usage.add(owner, used, now);
        let work = self.end_and_take(&mut state, owner);
        self.wait(work, state)
    }

    /// Does `done` and then `try_get`.
    #[cfg(test)]
    pub(super) fn done_and_try_get(&self, owner: &str) -> Work<K, T> {
        let mut state = self.lock();
        let work = self.end_and_take(&mut state, owner);
        release(state);
        work
    }

    /// Moves an item that `get` returned to the count of another owner. Returns false if that owner
    /// has its share.
    pub fn move_to(&self, owner: &str, other: &Owner) -> bool {
        let mut state = self.lock();
        // This thread counts twice while it moves.
        let moved = state.under_way.take(other, 1, self.threads_max as u64 + 1);
        if moved {
            state.end(owner);
            release(state);
        }
        moved
    }

    /// Looks again at items that could not start, at most at as many as there are threads.
    pub fn retry(&self) {
        let mut state = self.lock();
        state.due = state.due.max(state.waiting.min(self.threads_max));
        release(state);
    }

    /// Takes items out of a lane from its beginning, for as long as `which` returns true. `which`
    /// must not use the queue.
    pub fn withdraw(&self, lane: &Lane<K>, mut which: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut state = self.lock();
        let Some(items) = state.lanes.get_mut(lane) else { return Vec::new() };
        let count = items.iter().take_while(|item| which(item)).count();
        let taken: Vec<T> = items.drain(..count).collect();
        if items.is_empty() {
            state.lanes.remove(lane);
            state.order.retain(|each| each != lane);
        } else if count > 0 {
            state.due += 1; // another one is the first now
        }
        state.waiting -= count;
        release(state);
        taken
    }

    /// All lanes that have items, the next lane first.
    pub fn lanes(&self) -> Vec<Lane<K>> {
        self.lock().order.iter().cloned().collect()
    }

    /// Count of the waiting items.
    pub fn len(&self) -> usize {
        self.lock().waiting
    }

    /// Returns true if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the queue: every thread ends when no item waits.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        release(state);
    }

    /// Sleeps until `work` is an item or the end.
    fn wait<'q>(
        &'q self,
        mut work: Work<K, T>,
        mut state: MutexGuard<'q, FairQueueState<K, T>>,
    ) -> Option<(Lane<K>, T)> {
        while matches!(work, Work::Wait) {
            let this = thread::current();
            state.asleep.push(this.clone());
            loop {
                drop(state);
                thread::park();
                state = self.lock();
                // Other code may unpark a thread too; the queue takes a thread off the list when it
                // wakes the thread.
                if !state.asleep.iter().any(|each| each.id() == this.id()) {
                    break;
                }
            }
            state.waking = false;
            work = self.take(&mut state);
        }
        release(state);
        match work {
            Work::Item(lane, item) => Some((lane, item)),
            Work::Wait | Work::End => None,
        }
    }

    fn add(&self, state: &mut FairQueueState<K, T>, lane: Lane<K>, item: T) {
        let fits = state.under_way.fits(&lane.owner, 1, self.threads_max as u64);
        state.due += usize::from(fits);
        state.push(lane, item);
    }

    fn end_and_take(&self, state: &mut FairQueueState<K, T>, owner: &str) -> Work<K, T> {
        let due = state.due;
        state.end(owner);
        let turn = self.take(state);
        if matches!(&turn, Work::Item(next, _) if *next.owner == *owner) {
            state.due = state.due.min(due); // its owner holds as much as before
        }
        turn
    }

    /// Takes the first item that may start.
    fn take(&self, state: &mut FairQueueState<K, T>) -> Work<K, T> {
        if state.waiting == 0 {
            state.due = 0;
            return if state.closed { Work::End } else { Work::Wait };
        }
        let threads_max = self.threads_max as u64;
        let near = state.near();
        let FairQueueState { lanes, order, under_way, usage, .. } = &mut *state;
        let found = near.into_iter().chain(NEAR_LANES..order.len()).find(|index| {
            let lane = &order[*index];
            let is_heavy = self.is_heavy(usage, lane);
            under_way.fits(&lane.owner, 1, threads_max)
                && (!is_heavy || under_way.held(&lane.owner) < self.cores)
                && lanes
                    .get_mut(lane)
                    .and_then(VecDeque::front_mut)
                    .is_some_and(|first| self.starts.starts(lane, first, is_heavy))
        });
        let Some((lane, item)) = found.and_then(|index| state.take(index)) else {
            state.due = 0;
            return Work::Wait;
        };
        state.due = state.due.saturating_sub(1);
        Work::Item(lane, item)
    }

    /// Returns true if others are active and this lane must leave cores to them.
    fn is_heavy(&self, usage: &Usage, lane: &Lane<K>) -> bool {
        let owner = &lane.owner;
        usage.is_large(owner) || self.starts.is_costly(lane) && usage.has_others(owner)
    }

    fn lock(&self) -> MutexGuard<'_, FairQueueState<K, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the queue expects a thread to look for items.
    #[cfg(test)]
    pub(super) fn is_due(&self) -> bool {
        self.lock().due > 0
    }
}

impl<K: Clone + Eq + Hash, T> FairQueueState<K, T> {
    fn push(&mut self, lane: Lane<K>, item: T) {
        self.waiting += 1;
        if let Some(items) = self.lanes.get_mut(&lane) {
            items.push_back(item);
            return;
        }
        let mut items = mem::take(&mut self.spare);
        items.push_back(item);
        self.order.push_back(lane.clone());
        self.lanes.insert(lane, items);
    }

    /// Returns the indexes of the first lanes, the lane whose owner has used least CPU time first.
    fn near(&self) -> Vec<usize> {
        let mut near: Vec<usize> = (0..self.order.len().min(NEAR_LANES)).collect();
        if near.len() > 1 {
            near.sort_by_cached_key(|index| self.usage.of(&self.order[*index].owner));
        }
        near
    }

    /// Takes the first item of the lane at `index`, and moves the lane behind all other lanes.
    fn take(&mut self, index: usize) -> Option<(Lane<K>, T)> {
        let lane = self.order.remove(index)?;
        let items = self.lanes.get_mut(&lane)?;
        let item = items.pop_front()?;
        if items.is_empty() {
            self.spare = self.lanes.remove(&lane).unwrap_or_default();
        } else {
            self.order.push_back(lane.clone());
        }
        self.waiting -= 1;
        self.under_way.add(&lane.owner, 1);
        Some((lane, item))
    }

    /// Gives back one thread. One more item of the same owner may start now, and one of another
    /// owner.
    fn end(&mut self, owner: &str) {
        self.under_way.give(owner, 1);
        if self.waiting > 0 {
            self.due += 2;
        }
    }

    /// Takes a thread off the list of sleepers if items are due, and all threads if the queue is
    /// closed and empty.
    fn take_woken(&mut self) -> Vec<Thread> {
        if self.closed && self.waiting == 0 {
            return mem::take(&mut self.asleep);
        }
        if self.due == 0 || self.waiting == 0 || self.waking {
            return Vec::new();
        }
        let thread = self.asleep.pop();
        self.waking |= thread.is_some();
        Vec::from_iter(thread)
    }
}

/// Frees the lock, then wakes threads if items are due. If a thread were woken under the lock, it
/// would sleep again until the lock is free.
fn release<K: Clone + Eq + Hash, T>(mut state: MutexGuard<'_, FairQueueState<K, T>>) {
    let woken = state.take_woken();
    drop(state);
    woken.iter().for_each(Thread::unpark);
}
