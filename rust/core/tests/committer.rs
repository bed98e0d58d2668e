//! Interleavings of a few threads at one committer, by `loom`: the source of
//! `storage/store/committer.rs`, with locks and threads that `loom` schedules.
//!
//! `loom` runs each model once for every order of the steps of its threads that needs at most
//! [`PREEMPTIONS_MAX`] preemptions. A thread that is never woken is a deadlock, which `loom` reports
//! with the steps that led to it.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test that has its own `main`")]

#[allow(dead_code, unused_imports, unreachable_pub, reason = "the part that the models use")]
#[path = "../src/storage/store/committer.rs"]
mod committer;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fleetcast_core::model;
use loom::thread;

use self::committer::{Commit, Committer};
use self::model::error::{Error, Result};

/// Locks and threads of `loom`, in place of `storage/store/threads.rs`, which has the standard
/// library's.
mod threads {
    use std::sync::Arc;

    use loom::sync::Condvar;
    pub(super) use loom::sync::{Mutex, MutexGuard};

    /// A thread that can be woken. The thread of `loom` forgets that it was woken if it next waits
    /// for a lock.
    #[derive(Clone, Default)]
    pub(super) struct Thread(Arc<(Mutex<bool>, Condvar)>);

    loom::thread_local! {
        static CURRENT: Thread = Thread::default();
    }

    impl Thread {
        pub(super) fn unpark(&self) {
            *self.0.0.lock().unwrap() = true;
            self.0.1.notify_one();
        }
    }

    pub(super) fn current() -> Thread {
        CURRENT.with(Clone::clone)
    }

    pub(super) fn park(_limit: Option<std::time::Duration>) {
        let Thread(woken) = current();
        let mut is_woken = woken.0.lock().unwrap();
        while !std::mem::take(&mut *is_woken) {
            is_woken = woken.1.wait(is_woken).unwrap();
        }
    }
}

/// Greatest number of times that threads are interrupted although they could continue. A lost
/// wake-up needs one or two interruptions. Without a bound, the first model did not end in eight
/// minutes.
const PREEMPTIONS_MAX: usize = 3;

/// A committer, and a record of the committed items.
#[derive(Default)]
struct World {
    committer: Committer<usize, usize>,
    log: Log,
}

#[derive(Default)]
struct Log {
    /// True while a commit is in progress.
    is_committing: loom::sync::Mutex<bool>,
    groups: Mutex<Vec<Vec<usize>>>,
}

/// The commit in progress.
struct Turn<'l>(&'l Log);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.is_committing.lock().unwrap() = false;
    }
}

impl<'l> Commit<usize, usize> for &'l Log {
    type Turn = Turn<'l>;

    fn begin(&self) -> Result<Turn<'l>> {
        // A lock of `loom` is a step at which another thread may run.
        let was_committing = std::mem::replace(&mut *self.is_committing.lock().unwrap(), true);
        assert!(!was_committing, "two commits at once");
        Ok(Turn(self))
    }

    /// Returns the number of the commit. A group with item 13 fails.
    fn commit(&self, _turn: Turn<'l>, items: &[usize]) -> Result<usize> {
        let mut groups = self.groups.lock().unwrap();
        groups.push(items.to_vec());
        if items.contains(&13) { Err(Error::DiskFull) } else { Ok(groups.len() - 1) }
    }
}

impl World {
    fn submit(&self, item: usize) {
        let result = self.committer.submit(item, 1, &&self.log);
        self.check(item, &result);
    }

    /// Checks that the result belongs to the only group that has the item.
    fn check(&self, item: usize, result: &Result<usize>) {
        let groups = self.log.groups.lock().unwrap();
        let of: Vec<_> =
            groups.iter().enumerate().filter(|(_, group)| group.contains(&item)).collect();
        let &[(number, group)] = &of[..] else { panic!("{item} was committed {} times", of.len()) };
        match result {
            Ok(told) => assert_eq!(*told, number),
            Err(_) => assert!(group.contains(&13)),
        }
    }

    fn committed(&self) -> usize {
        self.log.groups.lock().unwrap().iter().map(Vec::len).sum()
    }
}

/// Runs `threads` at the same time, then `end`, in every order of their steps. The number of
/// interruptions is bounded.
fn model<const N: usize>(
    name: &str,
    threads: [fn(&Arc<World>); N],
    end: impl Fn(&World) + Send + Sync + 'static,
) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let mut loom = loom::model::Builder::new();
    loom.preemption_bound = Some(PREEMPTIONS_MAX);
    loom.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let world = Arc::new(World::default());
        let spawn = |run: fn(&Arc<World>)| {
            let world = Arc::clone(&world);
            thread::spawn(move || run(&world))
        };
        let spawned = threads.map(spawn);
        for thread in spawned {
            thread.join().unwrap();
        }
        end(&world);
    });
    println!("{name}: {} interleavings", runs.load(Ordering::Relaxed));
}

fn main() {
    model(
        "three threads submit an item each",
        [|world| world.submit(1), |world| world.submit(2), |world| world.submit(3)],
        |world| assert_eq!(world.committed(), 3),
    );
    model(
        "two threads submit twice, and a group fails",
        [
            |world| [1, 13].into_iter().for_each(|item| world.submit(item)),
            |world| [2, 3].into_iter().for_each(|item| world.submit(item)),
        ],
        |world| assert_eq!(world.committed(), 4),
    );
    model(
        "an item leaves while others wait",
        [
            |world| {
                let seat = world.committer.enter(1, 1);
                if !world.committer.leave(&seat) {
                    world.check(1, &world.committer.wait(&seat, &&world.log));
                }
            },
            |world| world.submit(2),
            |world| world.submit(3),
        ],
        |world| assert!((2..=3).contains(&world.committed())),
    );
    model(
        "two threads wait for one item",
        [
            |world| {
                let seat = world.committer.enter(1, 1);
                let (other, of) = (Arc::clone(world), Arc::clone(&seat));
                let waiting = thread::spawn(move || {
                    other.check(1, &other.committer.wait(&of, &&other.log));
                });
                world.check(1, &world.committer.wait(&seat, &&world.log));
                waiting.join().unwrap();
            },
            |world| world.submit(2),
        ],
        |world| assert_eq!(world.committed(), 2),
    );
    model(
        "three threads leave an item with a function",
        [
            |world| commit_then(world, 1),
            |world| commit_then(world, 2),
            |world| commit_then(world, 3),
        ],
        |world| assert_eq!(world.committed(), 3),
    );
    model(
        "items with functions beside an item with a thread",
        [|world| commit_then(world, 1), |world| world.submit(2), |world| commit_then(world, 3)],
        |world| assert_eq!(world.committed(), 3),
    );
}

/// When the last call returns, every item is committed and has its result. Check `World::committed`
/// after the call.
fn commit_then(world: &Arc<World>, item: usize) {
    let of = Arc::clone(world);
    world.committer.commit_then(item, 1, &&world.log, move |item, result| of.check(item, &result));
}
