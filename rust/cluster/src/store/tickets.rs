//! Group commit by tickets: what arrives while one commit runs shares the next one.
//!
//! A batch draws a ticket and waits for nothing. Whoever asks for a ticket's outcome while nobody
//! commits does it for all that wait, in the order in which they were drawn. Before that it waits a
//! moment for those whom the last commit acknowledged, as
//! `docs/decisions/0035-appended-then-acknowledged.md` has it for syncs of one machine.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::store::{NewBlock, first_group};

use crate::failure;

pub(super) const WHAT: &str = "append to the log";

/// No batch waits behind a commit that has had no answer for so long: it goes into none.
const WAIT_MAX: Duration = Duration::from_millis(1_500);
/// Greatest time that a commit waits for those who are likely to come, beside half of what the last
/// one took.
const PATIENCE_MAX: Duration = Duration::from_millis(5);
/// Commits that wait for nobody once one waited in vain.
const COMMITS_SKIPPED: u32 = 16;

#[derive(Default)]
pub(super) struct Tickets {
    state: Mutex<State>,
    /// Called when as many wait as were wanted.
    gathered: Condvar,
    /// Called when a commit has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    last: u64,
    waiting: VecDeque<Waiting>,
    /// Tickets of the commit under way, but those that were left meanwhile. None of them while it
    /// gathers.
    committing: Option<Vec<u64>>,
    /// Instant at which it was sent.
    began: Option<Instant>,
    /// Number of those who are likely to wait before long: whom the last commit acknowledged, and
    /// those it left.
    wanted: usize,
    /// Time that the next commit waits for them at most.
    patience: Duration,
    /// Commits from the next one on that wait for nobody.
    skipped: u32,
    /// Outcomes of those that failed, until they are left. A ticket that is nowhere is stored.
    failed: BTreeMap<u64, Error>,
}

struct Waiting {
    ticket: u64,
    blocks: Vec<NewBlock>,
}

impl Tickets {
    /// A ticket for these blocks, which no commit takes before somebody waits.
    pub(super) fn draw(&self, blocks: Vec<NewBlock>) -> u64 {
        let mut state = self.lock();
        state.last += 1;
        let ticket = state.last;
        state.waiting.push_back(Waiting { ticket, blocks });
        if state.committing.is_some() && state.waiting.len() == state.wanted {
            self.gathered.notify_one();
        }
        ticket
    }

    /// The outcome of a ticket.
    ///
    /// # Errors
    /// Those of `commit`, which is called by this thread where nobody else does it;
    /// [`Error::Unavailable`] for one that no commit took in time, nor will.
    pub(super) fn wait(
        &self,
        ticket: u64,
        commit: impl Fn(&[NewBlock]) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.lock();
        loop {
            if let Some(error) = state.failed.get(&ticket) {
                return Err(error.for_each_waiter());
            }
            let is_waiting = state.waiting.iter().any(|waiting| waiting.ticket == ticket);
            if state.committing.is_some() {
                if !is_waiting {
                    if !state.is_committing(ticket) {
                        return Ok(());
                    }
                    state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                let waited = state.began.map_or(Duration::ZERO, |began| began.elapsed());
                let left = WAIT_MAX.saturating_sub(waited);
                if left.is_zero() {
                    state.waiting.retain(|waiting| waiting.ticket != ticket);
                    let late = failure::unavailable(WHAT, "no answer to the batches before");
                    state.failed.insert(ticket, late);
                    continue;
                }
                (state, _) =
                    self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if !is_waiting {
                return Ok(());
            }
            state = self.gather(state);
            if state.waiting.is_empty() {
                // All were left meanwhile.
                state.committing = None;
                self.ended.notify_all();
                continue;
            }
            let blocks = state.take_group();
            let began = *state.began.insert(Instant::now());
            drop(state);
            let mut ending = Ending { tickets: self, began, outcome: Err(Error::Poisoned) };
            ending.outcome = commit(&blocks);
            drop(ending);
            state = self.lock();
        }
    }

    /// Waits for those who are likely to come, where that is likely to be worth it.
    fn gather<'s>(&self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let first = state.waiting.len();
        if first >= state.wanted {
            return state;
        }
        if state.skipped > 0 {
            state.skipped -= 1;
            return state;
        }
        state.committing = Some(Vec::new());
        let is_early = |state: &mut State| (1..state.wanted).contains(&state.waiting.len());
        let patience = state.patience;
        let waited = self.gathered.wait_timeout_while(state, patience, is_early);
        (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.waiting.len() <= first {
            state.skipped = COMMITS_SKIPPED;
        }
        state
    }

    /// Forgets a ticket and its outcome: where no commit has taken it, none will.
    pub(super) fn leave(&self, ticket: u64) {
        let mut state = self.lock();
        state.waiting.retain(|waiting| waiting.ticket != ticket);
        state.committing.iter_mut().for_each(|tickets| tickets.retain(|other| *other != ticket));
        state.failed.remove(&ticket);
        if state.waiting.is_empty() {
            self.gathered.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        super::small::lock(&self.state)
    }
}

impl State {
    fn is_committing(&self, ticket: u64) -> bool {
        self.committing.iter().flatten().any(|committing| *committing == ticket)
    }

    /// Blocks of the next commit.
    fn take_group(&mut self) -> Vec<NewBlock> {
        let bytes = |blocks: &[NewBlock]| blocks.iter().map(|block| block.sealed.len()).sum();
        let size = first_group(self.waiting.iter().map(|waiting| bytes(&waiting.blocks)));
        let group = self.waiting.drain(..size).map(|waiting| (waiting.ticket, waiting.blocks));
        let (tickets, blocks): (Vec<u64>, Vec<_>) = group.unzip();
        self.committing = Some(tickets);
        blocks.into_iter().flatten().collect()
    }
}

/// Ends a commit, also one that panics.
struct Ending<'t> {
    tickets: &'t Tickets,
    began: Instant,
    outcome: Result<()>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut state = self.tickets.lock();
        let committed = std::mem::take(&mut state.committing);
        state.began = None;
        state.wanted = state.waiting.len() + committed.as_ref().map_or(0, Vec::len);
        state.patience = (self.began.elapsed() / 2).min(PATIENCE_MAX);
        if let Err(error) = &self.outcome {
            for ticket in committed.into_iter().flatten() {
                state.failed.insert(ticket, error.for_each_waiter());
            }
        }
        drop(state);
        self.tickets.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    fn block(byte: u8) -> Vec<NewBlock> {
        vec![NewBlock { sealed: vec![byte; 18], ..NewBlock::default() }]
    }

    #[test]
    fn one_commit_takes_all_that_wait_in_their_order_and_each_is_told() {
        let tickets = Tickets::default();
        let drawn: Vec<u64> = (0..8).map(|byte| tickets.draw(block(byte))).collect();
        let commits = AtomicUsize::new(0);
        thread::scope(|scope| {
            for ticket in &drawn {
                scope.spawn(|| {
                    let outcome = tickets.wait(*ticket, |blocks| {
                        commits.fetch_add(1, Ordering::Relaxed);
                        let bytes: Vec<u8> = blocks.iter().map(|block| block.sealed[0]).collect();
                        assert_eq!(bytes, (0..8).collect::<Vec<u8>>());
                        Ok(())
                    });
                    outcome.unwrap();
                });
            }
        });
        assert_eq!(commits.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_failed_commit_is_told_to_its_own_tickets_as_often_as_they_ask() {
        let tickets = Tickets::default();
        let [first, second] = [tickets.draw(block(1)), tickets.draw(block(2))];
        for ticket in [first, second, first] {
            let failed = tickets.wait(ticket, |_| Err(Error::DiskFull));
            assert!(matches!(failed, Err(Error::DiskFull)));
        }
        let third = tickets.draw(block(3));
        assert!(tickets.wait(third, |_| Ok(())).is_ok());
        tickets.leave(first);
        assert_eq!(lock_failed(&tickets), [second]);
    }

    /// Longer than any test may take: a wait ends by who comes, or the test fails.
    const LONG: Duration = Duration::from_secs(999);

    /// Tickets after a commit of two batches, and the ticket of one more.
    fn after_two(patience: Duration) -> (Tickets, u64) {
        let tickets = Tickets::default();
        let both = [tickets.draw(block(1)), tickets.draw(block(2))];
        tickets.wait(both[0], |_| Ok(())).unwrap();
        tickets.lock().patience = patience;
        let third = tickets.draw(block(3));
        (tickets, third)
    }

    #[test]
    fn a_commit_waits_for_those_whom_the_last_one_acknowledged() {
        let (tickets, third) = after_two(LONG);
        let sizes = Mutex::default();
        let commit = |blocks: &[NewBlock]| {
            Vec::push(&mut sizes.lock().unwrap(), blocks.len());
            Ok(())
        };
        thread::scope(|scope| {
            let leading = scope.spawn(|| tickets.wait(third, commit));
            while tickets.lock().committing.is_none() {
                thread::yield_now();
            }
            let fourth = tickets.draw(block(4));
            tickets.wait(fourth, commit).unwrap();
            leading.join().unwrap().unwrap();
        });
        assert_eq!(*sizes.lock().unwrap(), [2]);
    }

    #[test]
    fn a_batch_behind_a_commit_without_an_answer_is_refused_and_never_stored() {
        let tickets = Tickets::default();
        let first = tickets.draw(block(1));
        thread::scope(|scope| {
            let (answer, answered) = std::sync::mpsc::channel::<()>();
            let tickets = &tickets;
            let leading = scope.spawn(move || {
                tickets.wait(first, |blocks| {
                    assert_eq!(blocks.len(), 1);
                    answered.recv().unwrap();
                    Ok(())
                })
            });
            while tickets.lock().committing.is_none() {
                thread::yield_now();
            }
            let second = tickets.draw(block(2));
            for _ in 0..2 {
                let refused = tickets.wait(second, |_| panic!("another commit is under way"));
                assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
            }
            answer.send(()).unwrap();
            leading.join().unwrap().unwrap();
            assert!(tickets.lock().waiting.is_empty());
        });
    }

    #[test]
    fn nobody_waits_again_after_a_wait_in_vain() {
        let (tickets, third) = after_two(Duration::ZERO);
        tickets.wait(third, |_| Ok(())).unwrap();
        let mut state = tickets.lock();
        (state.wanted, state.patience) = (2, LONG);
        drop(state);
        let fourth = tickets.draw(block(4));
        tickets.wait(fourth, |_| Ok(())).unwrap();
    }

    #[test]
    fn a_commit_whose_batches_are_left_while_it_gathers_is_none() {
        let (tickets, third) = after_two(LONG);
        thread::scope(|scope| {
            let leading = scope.spawn(|| tickets.wait(third, |_| panic!("nothing to commit")));
            while tickets.lock().committing.is_none() {
                thread::yield_now();
            }
            tickets.leave(third);
            leading.join().unwrap().unwrap();
        });
    }

    fn lock_failed(tickets: &Tickets) -> Vec<u64> {
        tickets.lock().failed.keys().copied().collect()
    }

    #[test]
    fn a_ticket_that_is_left_is_in_no_later_commit() {
        let tickets = Tickets::default();
        let [first, second] = [tickets.draw(block(1)), tickets.draw(block(2))];
        tickets.leave(first);
        let outcome = tickets.wait(second, |blocks| {
            assert_eq!(blocks.len(), 1);
            Ok(())
        });
        outcome.unwrap();
    }

    #[test]
    fn nothing_is_kept_of_a_ticket_that_is_left_while_its_commit_fails() {
        let tickets = Tickets::default();
        let [first, second] = [tickets.draw(block(1)), tickets.draw(block(2))];
        let failed = tickets.wait(second, |_| {
            tickets.leave(first);
            Err(Error::DiskFull)
        });
        assert!(matches!(failed, Err(Error::DiskFull)));
        assert_eq!(lock_failed(&tickets), [second]);
    }

    #[test]
    fn a_panic_in_a_commit_leaves_nobody_waiting() {
        let tickets = Tickets::default();
        let [first, second] = [tickets.draw(block(1)), tickets.draw(block(2))];
        let panicked = thread::scope(|scope| {
            scope.spawn(|| tickets.wait(first, |_| panic!("a bug in the commit"))).join()
        });
        assert!(panicked.is_err());
        assert!(matches!(tickets.wait(second, |_| Ok(())), Err(Error::Poisoned)));
    }
}
