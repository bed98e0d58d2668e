//! Turns of owners, whose items several threads serve.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use super::owner;
use crate::fair::{FairQueue, Lane, StartCheck, Work};

fn lane(name: &str) -> Lane {
    Lane { owner: owner(name), kind: () }
}

/// Returns the items that one thread serves, one after the other.
fn served<K: Clone + Eq + std::hash::Hash, T, S: StartCheck<K, T>>(
    turns: &FairQueue<K, T, S>,
    count: usize,
) -> Vec<T> {
    let serve = |_| {
        let (lane, item) = turns.get().unwrap();
        turns.done(&lane.owner);
        item
    };
    (0..count).map(serve).collect()
}

#[test]
fn owners_take_turns_however_much_one_has_queued() {
    let turns = FairQueue::new(1, 1);
    (0..1_000).for_each(|number| turns.put(lane("a"), format!("a{number}")));
    for item in ["b0", "b1"] {
        turns.put(lane("b"), item.to_owned());
    }
    assert_eq!(served(&turns, 5), ["a0", "b0", "a1", "b1", "a2"]);
    assert_eq!(turns.len(), 997);
}

#[test]
fn the_owner_that_has_used_least_cpu_time_is_served_next() {
    let turns = FairQueue::new(1, 1);
    for number in 0..3 {
        for name in ["a", "b"] {
            turns.put(lane(name), (name, number));
        }
    }
    let mut next = turns.get();
    let mut order = Vec::new();
    while let Some((lane, (name, number))) = next {
        order.push(format!("{name}{number}"));
        let used = Duration::from_millis(if name == "a" { 100 } else { 1 });
        if turns.is_empty() {
            turns.close();
        }
        next = turns.done_and_get(&lane.owner, used);
    }
    assert_eq!(order, ["a0", "b0", "b1", "b2", "a1", "a2"]);
}

/// Ends turns of `a`, which used much CPU time, and of `b`, which used little.
fn use_time<K: Clone + Eq + std::hash::Hash, T: Copy, S: StartCheck<K, T>>(
    turns: &FairQueue<K, T, S>,
    lane: impl Fn(&str) -> Lane<K>,
    item: T,
) {
    for (name, milliseconds) in [("a", 60_000), ("b", 100)] {
        turns.put(lane(name), item);
        turns.put(lane("idle"), item);
        let (first, _) = turns.get().unwrap();
        let (idle, _) =
            turns.done_and_get(&first.owner, Duration::from_millis(milliseconds)).unwrap();
        turns.done(&idle.owner);
    }
}

#[test]
fn an_owner_with_most_of_the_cpu_time_gets_a_thread_for_each_core_of_its_process() {
    let cores = thread::available_parallelism().unwrap().get();
    for processes in [1, 2, 3 * cores] {
        let threads = (cores / processes).max(1);
        let turns = FairQueue::new(cores + 4, processes);
        use_time(&turns, lane, 0);
        (0..cores + 4).for_each(|number| turns.put(lane("a"), number));
        (0..threads).for_each(|number| assert_eq!(turns.get(), Some((lane("a"), number))));
        assert_eq!(turns.try_get(), Work::Wait);
        turns.put(lane("b"), 0);
        assert_eq!(turns.get(), Some((lane("b"), 0)));
        turns.done("a");
        assert_eq!(turns.get(), Some((lane("a"), threads)));
    }
}

/// Notes which items are heavy. Items of the kind `costly` take much CPU time.
#[derive(Default)]
struct Costs(Mutex<Vec<bool>>);

impl StartCheck<&'static str, ()> for Costs {
    fn starts(&self, _lane: &Lane<&'static str>, _item: &mut (), is_heavy: bool) -> bool {
        self.0.lock().unwrap().push(is_heavy);
        true
    }

    fn is_costly(&self, lane: &Lane<&'static str>) -> bool {
        lane.kind == "costly"
    }
}

#[test]
fn costly_items_leave_cores_to_others_before_they_have_used_any_time() {
    let cores = thread::available_parallelism().unwrap().get();
    let turns = FairQueue::with_starts(cores + 2, cores, Costs::default());
    let of = |kind| move |name: &str| Lane { owner: owner(name), kind };
    let put_both = |name| {
        for kind in ["costly", "cheap"] {
            (0..2).for_each(|_| turns.put(of(kind)(name), ()));
        }
    };
    let heavy = || std::mem::take(&mut *turns.starts().0.lock().unwrap());
    put_both("new");
    let served = served(&turns, 4);
    assert_eq!((served.len(), heavy()), (4, vec![false; 4]), "it is alone");
    use_time(&turns, of("cheap"), ());
    heavy();
    put_both("new");
    let kinds: Vec<_> = (0..3).map(|_| turns.get().unwrap().0.kind).collect();
    assert_eq!((kinds, heavy()), (vec!["costly", "cheap", "cheap"], vec![true, false, false]));
    assert_eq!(turns.try_get(), Work::Wait);
    turns.done("new");
    turns.done("new");
    assert_eq!(turns.try_get(), Work::Wait);
    turns.done("new");
    assert_eq!(turns.get(), Some((of("costly")("new"), ())));
}

#[test]
fn an_owner_holds_no_more_threads_than_it_leaves_to_others() {
    let turns = FairQueue::new(4, 1);
    let numbered = |number: usize| Lane { owner: owner("a"), kind: number % 2 };
    (0..20).for_each(|number| turns.put(numbered(number), number)); // lanes count as one owner
    (0..4).for_each(|number| assert_eq!(turns.get(), Some((numbered(number), number))));
    assert_eq!(turns.try_get(), Work::Wait);
    let other = Lane { owner: owner("b"), kind: 0 };
    turns.put(other.clone(), 99);
    assert_eq!(turns.get(), Some((other.clone(), 99))); // 16 of the first owner came before
    turns.done("b");
    assert_eq!(turns.done_and_get(&owner("a"), Duration::ZERO), Some((numbered(4), 4)));
}

#[test]
fn what_was_begun_may_be_another_owners_unless_that_has_its_share() {
    let turns = FairQueue::new(1, 1);
    turns.put(lane("address"), 0);
    let (first, _) = turns.get().unwrap();
    assert!(turns.move_to(&first.owner, &owner("a")));
    turns.put(lane("address"), 1);
    let (second, _) = turns.get().unwrap();
    assert!(!turns.move_to(&second.owner, &owner("a")));
    turns.done(&second.owner);
    turns.done("a");
    turns.put(lane("a"), 2);
    assert_eq!(turns.try_get(), Work::Item(lane("a"), 2));
}

/// Lets reads start while the gate is open.
struct Gate(AtomicBool);

impl StartCheck<&'static str, &'static str> for Gate {
    fn starts(&self, lane: &Lane<&'static str>, _item: &mut &'static str, _is_heavy: bool) -> bool {
        lane.kind != "read" || self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_lane_that_may_not_start_waits_until_it_may() {
    let turns = FairQueue::with_starts(2, 1, Gate(AtomicBool::new(false)));
    let of = |kind| Lane { owner: owner("a"), kind };
    for item in ["read 0", "read 1", "read 2"] {
        turns.put(of("read"), item);
    }
    turns.put(of("write"), "write");
    assert_eq!(served(&turns, 1), ["write"]);
    assert_eq!(turns.withdraw(&of("read"), |item| *item == "read 0"), ["read 0"]);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| served(&turns, 2));
        turns.starts().0.store(true, Ordering::Relaxed);
        turns.retry();
        assert_eq!(waiting.join().unwrap(), ["read 1", "read 2"]);
    });
    assert!(turns.is_empty());
    assert_eq!(turns.lanes(), []);
}

/// Items that could not start at the end, because their owner held its share, are served too.
#[test]
fn all_that_waits_is_done_before_the_threads_end() {
    for threads in [1, 3, 8] {
        let turns = FairQueue::new(1, 1);
        (0..50).for_each(|number| turns.put(lane(["a", "b"][number % 2]), number));
        let done = Mutex::new(HashSet::new());
        let may_go_on = Barrier::new(threads + 1);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    may_go_on.wait();
                    let mut turn = turns.get();
                    while let Some((lane, item)) = turn {
                        assert!(done.lock().unwrap().insert(item));
                        turn = turns.done_and_get(&lane.owner, Duration::ZERO);
                    }
                });
            }
            turns.close();
            may_go_on.wait();
        });
        assert_eq!(done.into_inner().unwrap(), (0..50).collect());
    }
}

/// Sleeping threads are woken for every item, however it becomes able to start.
#[test]
fn many_threads_serve_every_item_once() {
    let turns = FairQueue::new(4, 1);
    let done = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        for number in 0..8 {
            let (turns, done) = (&turns, &done);
            scope.spawn(move || {
                let mut turn = turns.get();
                while let Some((lane, item)) = turn {
                    assert!(done.lock().unwrap().insert(item));
                    turn = if number % 2 == 0 {
                        turns.done(&lane.owner);
                        turns.get()
                    } else {
                        turns.done_and_get(&lane.owner, Duration::ZERO)
                    };
                }
            });
        }
        for number in 0..3_000 {
            turns.put(lane(&format!("owner-{}", number % 7)), number);
        }
        turns.close();
    });
    assert_eq!(done.into_inner().unwrap(), (0..3_000).collect());
}
