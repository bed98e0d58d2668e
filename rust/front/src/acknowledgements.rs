//! Answers that wait until what they acknowledge is durable.
//!
//! A thread that has something to be acknowledged leaves it here and goes on. One of them at a time
//! waits for the disk, for all that was left before; the others are free. There is no thread of its
//! own, so nothing has to survive a fork, and nothing is left over when the last caller returns.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Answers of one plane.
pub struct Acknowledgements<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    waiting: Vec<T>,
    /// True while a thread waits for the disk. It comes back for what was left meanwhile.
    is_syncing: bool,
}

impl<T> Default for Acknowledgements<T> {
    fn default() -> Self {
        Self { state: Mutex::new(State { waiting: Vec::new(), is_syncing: false }) }
    }
}

impl<T> Acknowledgements<T> {
    /// Leaves `item` to be answered. Where no other thread waits for the disk, this one calls `sync`
    /// with all that were left, which is to return when they are durable or cannot be, and `answer`
    /// with each of them, until none is left.
    ///
    /// # Panics
    /// Where one of the calls does; all others are made first.
    pub fn leave(&self, item: T, sync: impl Fn(&[T]), answer: impl Fn(T)) {
        self.lock().waiting.push(item);
        let mut panic: Option<Box<dyn Any + Send>> = None;
        while let Some(items) = self.begin() {
            let synced = catch_unwind(AssertUnwindSafe(|| sync(&items)));
            panic = panic.or(synced.err());
            // Before the answers, so that another thread may sync while this one sends them.
            self.lock().is_syncing = false;
            for item in items {
                let answered = catch_unwind(AssertUnwindSafe(|| answer(item)));
                panic = panic.or(answered.err());
            }
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// All that wait, unless there are none or another thread syncs.
    fn begin(&self) -> Option<Vec<T>> {
        let mut state = self.lock();
        if state.is_syncing || state.waiting.is_empty() {
            return None;
        }
        state.is_syncing = true;
        Some(std::mem::take(&mut state.waiting))
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing under it can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};
    use std::thread;

    use super::*;

    /// A disk whose first sync takes until it is let go.
    struct SlowDisk {
        syncs: Mutex<Vec<usize>>,
        begun: mpsc::Sender<()>,
        end: Barrier,
    }

    impl SlowDisk {
        fn new() -> (Self, mpsc::Receiver<()>) {
            let (begun, is_begun) = mpsc::channel();
            (Self { syncs: Mutex::default(), begun, end: Barrier::new(2) }, is_begun)
        }

        fn sync(&self, items: &[u32]) {
            let mut syncs = self.syncs.lock().unwrap();
            syncs.push(items.len());
            let is_first = syncs.len() == 1;
            drop(syncs);
            if is_first {
                self.begun.send(()).unwrap();
                self.end.wait();
            }
        }
    }

    #[test]
    fn one_thread_waits_for_the_disk_and_the_others_go_on() {
        let waiting = Acknowledgements::default();
        let (disk, is_begun) = SlowDisk::new();
        let answered = Mutex::new(Vec::new());
        let leave = |item| {
            let answer = |item| answered.lock().unwrap().push(item);
            waiting.leave(item, |items| disk.sync(items), answer);
        };
        thread::scope(|scope| {
            let slow = scope.spawn(|| leave(0));
            is_begun.recv().unwrap();
            (1..=8).for_each(leave);
            assert!(answered.lock().unwrap().is_empty(), "nothing is durable yet");
            disk.end.wait();
            slow.join().unwrap();
        });
        assert_eq!(*answered.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(*disk.syncs.lock().unwrap(), [1, 8], "one sync for all that came meanwhile");
    }

    #[test]
    fn another_thread_syncs_while_answers_are_sent() {
        let waiting = Acknowledgements::default();
        let (sending_send, sending) = mpsc::channel();
        let both_send = Barrier::new(2);
        let leave = |item: u32| {
            let answer = |_| {
                sending_send.send(()).unwrap();
                both_send.wait();
            };
            waiting.leave(item, |items| assert_eq!(items, [item]), answer);
        };
        thread::scope(|scope| {
            scope.spawn(|| leave(1));
            sending.recv().unwrap();
            leave(2);
        });
    }

    #[test]
    fn nothing_is_forgotten_or_answered_twice() {
        const EACH: usize = 2_000;
        let waiting = Acknowledgements::default();
        let (syncing, under_way) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let answers: Vec<_> = (0..8 * EACH).map(|_| AtomicUsize::new(0)).collect();
        let sync = |_: &[usize]| {
            assert_eq!(syncing.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
            thread::yield_now();
            syncing.fetch_sub(1, Ordering::SeqCst);
        };
        let answer = |item: usize| {
            answers[item].fetch_add(1, Ordering::SeqCst);
            under_way.fetch_sub(1, Ordering::SeqCst);
        };
        thread::scope(|scope| {
            for writer in 0..8 {
                let (waiting, under_way) = (&waiting, &under_way);
                scope.spawn(move || {
                    for item in writer * EACH..(writer + 1) * EACH {
                        under_way.fetch_add(1, Ordering::SeqCst);
                        waiting.leave(item, sync, answer);
                    }
                });
            }
        });
        assert_eq!(under_way.load(Ordering::SeqCst), 0, "the last caller leaves nothing behind");
        assert!(answers.iter().all(|count| count.load(Ordering::SeqCst) == 1));
    }

    #[test]
    fn a_panic_ends_one_call_and_is_passed_on() {
        let waiting = Acknowledgements::default();
        let answered = Mutex::new(Vec::new());
        let answer = |item| {
            assert_ne!(item, 2, "a bug");
            answered.lock().unwrap().push(item);
        };
        let leave_more = |items: &[u32]| {
            if items == [1] {
                (2..=4).for_each(|item| waiting.leave(item, |_| (), answer));
            }
        };
        let leave_all = || waiting.leave(1, leave_more, answer);
        assert!(catch_unwind(AssertUnwindSafe(leave_all)).is_err());
        assert_eq!(*answered.lock().unwrap(), [1, 3, 4]);

        let sync_badly = || waiting.leave(5, |_| panic!("a bug"), answer);
        assert!(catch_unwind(AssertUnwindSafe(sync_badly)).is_err());
        waiting.leave(6, |_| (), answer);
        assert_eq!(*answered.lock().unwrap(), [1, 3, 4, 5, 6]);
    }
}
