//! Turns by drawn actions, compared with the plain rules.

use std::sync::atomic::{AtomicBool, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;

use super::owner;
use crate::fair::{FairQueue, Lane, StartCheck, Work};

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
    fn starts(&self, lane: &Lane<usize>, _item: &mut usize, _is_heavy: bool) -> bool {
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
                assert_eq!(turns.move_to(NAMES[owner_number], &owner(NAMES[to])), fits);
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
        let turns = FairQueue::with_starts(OWNER_MAX, 1, Kinds::default());
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
