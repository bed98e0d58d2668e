use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{FairQueue, KeyOwners, Lane, Owner, Share, StartCheck, Work};

fn owner(name: &str) -> Owner {
    Arc::from(name)
}

fn lane(name: &str) -> Lane {
    Lane { owner: owner(name), kind: () }
}

fn taken(share: &Share, name: &str, bound: u64) -> usize {
    (0..bound).take_while(|_| share.take(name, 1, bound)).count()
}

#[test]
fn one_owner_gets_half_and_the_next_half_of_what_is_left() {
    let share = Share::default();
    let got = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| taken(&share, name, 64));
    assert_eq!(got, [32, 16, 8, 4, 2, 1, 1, 0]);
    share.give("a", 1); // amounts that are given back are shared by the same rule
    assert_eq!(taken(&share, "b", 64), 0);
    assert_eq!(taken(&share, "h", 64), 1);
}

#[test]
fn what_is_larger_than_the_bound_passes_alone() {
    let share = Share::default();
    assert!(share.take("a", 11, 10));
    assert!(!share.take("b", 1, 10));
    share.give("a", 11);
    assert!(share.take("b", 10, 10));
    assert!(!share.take("b", 1, 10));
}

/// The batch of a call without records has no bytes.
#[test]
fn nothing_may_be_taken_and_given_back_any_number_of_times() {
    let share = Share::default();
    assert!((0..3).all(|_| share.take("a", 0, 10)));
    (0..3).for_each(|_| share.give("a", 0));
    assert!(share.take("a", 10, 10));
    assert_eq!((share.held("a"), share.total()), (10, 10));
}

#[test]
fn a_key_counts_for_its_address_until_it_is_known() {
    let owners = KeyOwners::default();
    let (address, account) = (owner("127.0.0.1"), owner("account"));
    assert_eq!(owners.of(Some(b"key"), &address), address);
    assert!(owners.learn(b"key", &account));
    assert!(!owners.learn(b"key", &account));
    assert_eq!(owners.of(Some(b"key"), &address), account);
    assert_eq!(owners.of(Some(b"other key"), &address), address);
    assert_eq!(owners.of(None, &address), address);
    assert!(owners.learn(b"key", &owner("another account")));
}

#[test]
fn n6_what_needs_nothing_more_goes_on_whatever_others_hold() {
    let share = Share::default();
    assert!(share.grow("a", 0, 60, 100));
    assert!(share.take("b", 30, 100));
    assert!(!share.grow("a", 60, 1, 100));
    assert!(share.grow("a", 60, 0, 100), "it received into room that it has");
}

#[test]
fn an_empty_key_is_nobodys() {
    let owners = KeyOwners::default();
    let (address, account) = (owner("127.0.0.1"), owner("account"));
    assert!(!owners.learn(b"", &account));
    assert_eq!(owners.of(Some(b""), &address), address);
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
    let turns = FairQueue::new(1);
    (0..1_000).for_each(|number| turns.put(lane("a"), format!("a{number}")));
    for item in ["b0", "b1"] {
        turns.put(lane("b"), item.to_owned());
    }
    assert_eq!(served(&turns, 5), ["a0", "b0", "a1", "b1", "a2"]);
    assert_eq!(turns.len(), 997);
}

#[test]
fn the_owner_that_has_used_least_cpu_time_is_served_next() {
    let turns = FairQueue::new(1);
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

#[test]
fn an_owner_with_most_of_the_cpu_time_gets_a_thread_for_each_core() {
    let cores = thread::available_parallelism().unwrap().get();
    let turns = FairQueue::new(cores + 4);
    for (name, milliseconds) in [("a", 60_000), ("b", 100)] {
        turns.put(lane(name), 0);
        turns.put(lane("idle"), 0);
        let (first, _) = turns.get().unwrap();
        let (idle, _) =
            turns.done_and_get(&first.owner, Duration::from_millis(milliseconds)).unwrap();
        turns.done(&idle.owner);
    }
    (0..cores + 4).for_each(|number| turns.put(lane("a"), number));
    (0..cores).for_each(|number| assert_eq!(turns.get(), Some((lane("a"), number))));
    assert_eq!(turns.try_get(), Work::Wait);
    turns.put(lane("b"), 0);
    assert_eq!(turns.get(), Some((lane("b"), 0)));
    turns.done("a");
    assert_eq!(turns.get(), Some((lane("a"), cores)));
}

#[test]
fn an_owner_holds_no_more_threads_than_it_leaves_to_others() {
    let turns = FairQueue::new(4);
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
    let turns = FairQueue::new(1);
    turns.put(lane("address"), 0);
    let (first, _) = turns.get().unwrap();
    assert!(turns.move_to(&first.owner, "a"));
    turns.put(lane("address"), 1);
    let (second, _) = turns.get().unwrap();
    assert!(!turns.move_to(&second.owner, "a"));
    turns.done(&second.owner);
    turns.done("a");
    turns.put(lane("a"), 2);
    assert_eq!(turns.try_get(), Work::Item(lane("a"), 2));
}

/// Lets reads start while the gate is open.
struct Gate(AtomicBool);

impl StartCheck<&'static str, &'static str> for Gate {
    fn starts(&self, lane: &Lane<&'static str>, _item: &mut &'static str) -> bool {
        lane.kind != "read" || self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_lane_that_may_not_start_waits_until_it_may() {
    let turns = FairQueue::with_starts(2, Gate(AtomicBool::new(false)));
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
        let turns = FairQueue::new(1);
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
    let turns = FairQueue::new(4);
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

const OWNER_MAX: usize = 3;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
enum Action {
    Put(usize, usize),
    Get,
    Done(usize),
    DoneAndGet(usize),
    Move(usize, usize),
    Withdraw(usize, usize, usize),
    Shut(usize),
    Open(usize),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let one = prop_oneof![
        4 => (0..4usize, 0..2usize).prop_map(|(owner, kind)| Action::Put(owner, kind)),
        4 => Just(Action::Get),
        2 => any::<usize>().prop_map(Action::Done),
        2 => any::<usize>().prop_map(Action::DoneAndGet),
        1 => (any::<usize>(), 0..4usize).prop_map(|(which, owner)| Action::Move(which, owner)),
        1 => (0..4usize, 0..2usize, 0..3usize).prop_map(|(o, k, n)| Action::Withdraw(o, k, n)),
        1 => (0..2usize).prop_map(Action::Shut),
        1 => (0..2usize).prop_map(Action::Open),
    ];
    vec(one, 0..200)
}

/// The rules of turns and shares again, in the plainest form.
#[derive(Default)]
struct Plain {
    /// Owner, kind and items of each lane, the next lane first.
    lanes: Vec<(usize, usize, Vec<usize>)>,
    /// Owner and kind of the items under way.
    under_way: Vec<(usize, usize)>,
    shut: [bool; 2],
}

impl Plain {
    fn held(&self, owner: usize) -> usize {
        self.under_way.iter().filter(|(each, _)| *each == owner).count()
    }

    fn fits(&self, owner: usize, bound: usize) -> bool {
        let (all, held) = (self.under_way.len(), self.held(owner));
        let others_keep = if held == 0 { 0 } else { held + 1 };
        all == 0 || all + 1 + others_keep <= bound
    }

    fn put(&mut self, owner: usize, kind: usize, item: usize) {
        match self.lanes.iter_mut().find(|lane| (lane.0, lane.1) == (owner, kind)) {
            Some(lane) => lane.2.push(item),
            None => self.lanes.push((owner, kind, vec![item])),
        }
    }

    fn startable(&self) -> Option<usize> {
        let may = |(owner, kind, _): &(usize, usize, Vec<usize>)| {
            !self.shut[*kind] && self.fits(*owner, 2 * OWNER_MAX)
        };
        self.lanes.iter().position(may)
    }

    fn get(&mut self) -> Option<(usize, usize, usize)> {
        let (owner, kind, mut items) = self.lanes.remove(self.startable()?);
        let item = items.remove(0);
        if !items.is_empty() {
            self.lanes.push((owner, kind, items));
        }
        self.under_way.push((owner, kind));
        Some((owner, kind, item))
    }
}

/// Lets lanes of a kind start while the gate is open.
#[derive(Default)]
struct Kinds([AtomicBool; 2]);

impl StartCheck<usize, usize> for Kinds {
    fn starts(&self, lane: &Lane<usize>, _item: &mut usize) -> bool {
        !self.0[lane.kind].load(Ordering::Relaxed)
    }
}

fn of(owner_number: usize, kind: usize) -> Lane<usize> {
    Lane { owner: owner(NAMES[owner_number]), kind }
}

fn ended(plain: &mut Plain, which: usize) -> Option<Lane<usize>> {
    let which = which.checked_rem(plain.under_way.len())?;
    let (owner, kind) = plain.under_way.remove(which);
    Some(of(owner, kind))
}

fn same(turn: &Work<usize, usize>, plain: &mut Plain) {
    let expected =
        plain.get().map_or(Work::Wait, |(owner, kind, item)| Work::Item(of(owner, kind), item));
    assert_eq!(turn, &expected);
}

fn apply(
    turns: &FairQueue<usize, usize, Kinds>,
    plain: &mut Plain,
    number: usize,
    action: &Action,
) {
    match *action {
        Action::Put(owner, kind) => {
            turns.put(of(owner, kind), number);
            plain.put(owner, kind, number);
        }
        Action::Get => same(&turns.try_get(), plain),
        Action::Done(which) => {
            if let Some(lane) = ended(plain, which) {
                turns.done(&lane.owner);
            }
        }
        Action::DoneAndGet(which) => {
            if let Some(lane) = ended(plain, which) {
                same(&turns.done_and_try_get(&lane.owner), plain);
            }
        }
        Action::Move(which, to) => {
            if let Some(which) = which.checked_rem(plain.under_way.len()) {
                let (owner_number, kind) = plain.under_way[which];
                let fits = plain.fits(to, 2 * OWNER_MAX + 1);
                assert_eq!(turns.move_to(NAMES[owner_number], NAMES[to]), fits);
                if fits {
                    plain.under_way[which] = (to, kind);
                }
            }
        }
        Action::Withdraw(owner, kind, count) => {
            let index = plain.lanes.iter().position(|lane| (lane.0, lane.1) == (owner, kind));
            let mut expected = Vec::new();
            if let Some(index) = index {
                let items = &mut plain.lanes[index].2;
                expected = items.drain(..count.min(items.len())).collect();
                if items.is_empty() {
                    plain.lanes.remove(index);
                }
            }
            assert_eq!(turns.withdraw(&of(owner, kind), |item| expected.contains(item)), expected);
        }
        Action::Shut(kind) => {
            turns.starts().0[kind].store(true, Ordering::Relaxed);
            plain.shut[kind] = true;
        }
        Action::Open(kind) => {
            turns.starts().0[kind].store(false, Ordering::Relaxed);
            plain.shut[kind] = false;
            turns.retry();
        }
    }
}

proptest! {
    /// Every turn follows the rules, and no item that may start is left while threads sleep.
    #[test]
    fn turns_are_those_of_the_plain_rules(actions in actions()) {
        let turns = FairQueue::with_starts(OWNER_MAX, Kinds::default());
        let mut plain = Plain::default();
        for (number, action) in actions.iter().enumerate() {
            apply(&turns, &mut plain, number, action);
            prop_assert!(turns.is_due() || plain.startable().is_none());
            prop_assert_eq!(turns.len(), plain.lanes.iter().map(|lane| lane.2.len()).sum::<usize>());
            let lanes: Vec<_> = plain.lanes.iter().map(|lane| of(lane.0, lane.1)).collect();
            prop_assert_eq!(turns.lanes(), lanes);
        }
    }
}
