//! A queue in which owners take turns, so that nobody waits behind another's backlog.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use super::share::Holdings;
use super::{Owner, OwnerName};

/// Items of one owner that are served in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lane<K = ()> {
    /// The owner for which its items count.
    pub owner: Owner,
    /// Tells apart the lanes of one owner.
    pub kind: K,
}

/// The last question before an item is served.
pub trait Starts<K, T> {
    /// Lets the first item of a lane be served, or not yet. It is asked under the queue's lock, so
    /// it must not use the queue.
    fn starts(&self, lane: &Lane<K>, item: &mut T) -> bool;
}

/// Lets everything start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Always;

impl<K, T> Starts<K, T> for Always {
    fn starts(&self, _lane: &Lane<K>, _item: &mut T) -> bool {
        true
    }
}

/// The answer to a thread that asks for work.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn<K, T> {
    /// An item, which `done` or `done_and_get` must follow.
    Item(Lane<K>, T),
    /// Nothing that may start now.
    Wait,
    /// Nothing ever again.
    End,
}

/// Items that wait for one of `2 * owner_max` threads, of which one owner gets `owner_max`.
///
/// Every lane that has items is served one a turn. How many items of one owner are under way at
/// once is its share of the threads, so those who are slow, or stuck in their own store, leave
/// threads to the others. While `Starts` says no, the lane waits, and `retry` asks again. Safe to
/// share between threads.
///
/// The thread that went to sleep last is woken first, since it finds its caches warm, and one wakes
/// the next: whoever is awake and free takes what there is before another has got up.
pub struct FairQueue<K, T, S = Always> {
    threads_max: usize,
    starts: S,
    state: Mutex<State<K, T>>,
}

struct State<K, T> {
    lanes: HashMap<Lane<K>, VecDeque<T>, foldhash::fast::RandomState>,
    /// Lanes that have items, the next one to be served first.
    order: VecDeque<Lane<K>>,
    /// A deque of a lane that has none any more, for the next one.
    spare: VecDeque<T>,
    waiting: usize,
    under_way: Holdings,
    /// Bound on the items that have become able to start since a thread has last looked at all.
    due: usize,
    asleep: Vec<Thread>,
    /// A thread has been woken and has not looked yet.
    waking: bool,
    closed: bool,
}

impl<K: Clone + Eq + Hash, T> FairQueue<K, T> {
    /// A queue from which everything may start.
    #[must_use]
    pub fn new(owner_max: usize) -> Self {
        Self::with_starts(owner_max, Always)
    }
}

impl<K: Clone + Eq + Hash, T, S: Starts<K, T>> FairQueue<K, T, S> {
    /// A queue whose items start when `starts` says so.
    pub fn with_starts(owner_max: usize, starts: S) -> Self {
        let state = State {
            lanes: HashMap::default(),
            order: VecDeque::new(),
            spare: VecDeque::new(),
            waiting: 0,
            under_way: Holdings::default(),
            due: 0,
            asleep: Vec::new(),
            waking: false,
            closed: false,
        };
        Self { threads_max: 2 * owner_max, starts, state: Mutex::new(state) }
    }

    /// Count of the threads that this queue shares out.
    pub fn threads_max(&self) -> usize {
        self.threads_max
    }

    /// The last question before an item is served.
    pub fn starts(&self) -> &S {
        &self.starts
    }

    /// Adds an item at the end of its lane.
    pub fn put(&self, lane: Lane<K>, item: T) {
        let mut state = self.lock();
        self.add(&mut state, lane, item);
        state.wake();
    }

    /// Adds items, and wakes whoever is to serve them once for all.
    pub fn put_all(&self, items: impl IntoIterator<Item = (Lane<K>, T)>) {
        let mut state = self.lock();
        for (lane, item) in items {
            self.add(&mut state, lane, item);
        }
        state.wake();
    }

    /// Waits for the next item; `None` when all is closed and done.
    pub fn get(&self) -> Option<(Lane<K>, T)> {
        self.wait(self.lock())
    }

    /// The next item, without waiting.
    #[cfg(test)]
    pub(super) fn try_get(&self) -> Turn<K, T> {
        self.look(&mut self.lock())
    }

    /// Ends what `get` began, of an owner.
    pub fn done(&self, owner: &str) {
        let mut state = self.lock();
        state.end(owner);
        state.wake();
    }

    /// `done` and `get`, which wakes nobody for what this thread takes itself.
    pub fn done_and_get(&self, owner: &str) -> Option<(Lane<K>, T)> {
        let mut state = self.lock();
        match self.end_and_look(&mut state, owner) {
            Turn::Item(lane, item) => Some((lane, item)),
            Turn::End => None,
            Turn::Wait => self.wait(state),
        }
    }

    /// `done` and `try_get`.
    #[cfg(test)]
    pub(super) fn done_and_try_get(&self, owner: &str) -> Turn<K, T> {
        self.end_and_look(&mut self.lock(), owner)
    }

    /// Has what `get` began count for another owner, unless that has its share.
    pub fn move_to(&self, owner: &str, other: &(impl OwnerName + ?Sized)) -> bool {
        let mut state = self.lock();
        // This thread counts twice while it moves.
        let moved = state.under_way.take(other, 1, self.threads_max as u64 + 1);
        if moved {
            state.end(owner);
            state.wake();
        }
        moved
    }

    /// Looks again at what could not start, at as much as there are threads for.
    pub fn retry(&self) {
        let mut state = self.lock();
        state.due = state.due.max(state.waiting.min(self.threads_max));
        state.wake();
    }

    /// Takes items out of a lane, from its beginning on as long as `which` holds, which must not
    /// use the queue.
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
        state.wake();
        taken
    }

    /// All lanes in which something waits, the next one first.
    pub fn lanes(&self) -> Vec<Lane<K>> {
        self.lock().order.iter().cloned().collect()
    }

    /// Count of the items that wait.
    pub fn len(&self) -> usize {
        self.lock().waiting
    }

    /// True where nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Has every thread end as soon as nothing waits.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.wake();
    }

    fn wait<'q>(&'q self, mut state: MutexGuard<'q, State<K, T>>) -> Option<(Lane<K>, T)> {
        loop {
            match self.look(&mut state) {
                Turn::Item(lane, item) => return Some((lane, item)),
                Turn::End => return None,
                Turn::Wait => {}
            }
            let this = thread::current();
            state.asleep.push(this.clone());
            loop {
                drop(state);
                thread::park();
                state = self.lock();
                // Others may unpark a thread as well; who calls one takes it off the list.
                if !state.asleep.iter().any(|each| each.id() == this.id()) {
                    break;
                }
            }
            state.waking = false;
        }
    }

    fn add(&self, state: &mut State<K, T>, lane: Lane<K>, item: T) {
        let fits = state.under_way.fits(&lane.owner, 1, self.threads_max as u64);
        state.due += usize::from(fits);
        state.push(lane, item);
    }

    fn look(&self, state: &mut State<K, T>) -> Turn<K, T> {
        let turn = self.take(state);
        state.wake();
        turn
    }

    fn end_and_look(&self, state: &mut State<K, T>, owner: &str) -> Turn<K, T> {
        let due = state.due;
        state.end(owner);
        let turn = self.take(state);
        if matches!(&turn, Turn::Item(next, _) if *next.owner == *owner) {
            state.due = state.due.min(due); // its owner holds as much as before
        }
        state.wake();
        turn
    }

    /// Takes the first item that may start.
    fn take(&self, state: &mut State<K, T>) -> Turn<K, T> {
        if state.waiting == 0 {
            state.due = 0;
            return if state.closed { Turn::End } else { Turn::Wait };
        }
        let threads_max = self.threads_max as u64;
        let State { lanes, order, under_way, .. } = &mut *state;
        let found = order.iter().position(|lane| {
            under_way.fits(&lane.owner, 1, threads_max)
                && lanes
                    .get_mut(lane)
                    .and_then(VecDeque::front_mut)
                    .is_some_and(|first| self.starts.starts(lane, first))
        });
        let Some((lane, item)) = found.and_then(|index| state.take(index)) else {
            state.due = 0;
            return Turn::Wait;
        };
        state.due = state.due.saturating_sub(1);
        Turn::Item(lane, item)
    }

    fn lock(&self) -> MutexGuard<'_, State<K, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True where a thread is to look, as far as this queue knows.
    #[cfg(test)]
    pub(super) fn is_due(&self) -> bool {
        self.lock().due > 0
    }
}

impl<K: Clone + Eq + Hash, T> State<K, T> {
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

    /// Takes the first item of the lane at `index`, which comes behind all others then.
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

    /// Gives back a part of the threads: one more item of the same owner may start now, and one of
    /// another owner.
    fn end(&mut self, owner: &str) {
        self.under_way.give(owner, 1);
        if self.waiting > 0 {
            self.due += 2;
        }
    }

    /// Wakes a thread for what is due, or all where nothing will ever be.
    fn wake(&mut self) {
        if self.closed && self.waiting == 0 {
            self.asleep.drain(..).for_each(|thread| thread.unpark());
        }
        if self.due == 0 || self.waiting == 0 || self.waking {
            return;
        }
        if let Some(thread) = self.asleep.pop() {
            self.waking = true;
            thread.unpark();
        }
    }
}
