//! Group commit by tickets: what arrives while one commit runs shares the next one.
//!
//! A batch draws a ticket and waits for nothing. Whoever asks for a ticket's outcome while nobody
//! commits does it for all that wait, in the order in which they were drawn.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, PoisonError};

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::store::NewBlock;

/// Greatest number of tickets in one commit, and of sealed bytes unless a single one has more.
const GROUP_MAX: usize = 256;
const GROUP_BYTES_MAX: usize = 8 << 20;

#[derive(Default)]
pub(super) struct Tickets {
    state: Mutex<State>,
    /// Called when a commit has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    last: u64,
    waiting: VecDeque<(u64, Vec<NewBlock>)>,
    /// Tickets of the commit under way, but those that were left meanwhile.
    committing: Option<Vec<u64>>,
    /// Outcomes of those that failed, until they are left. A ticket that is nowhere is stored.
    failed: BTreeMap<u64, Error>,
}

impl Tickets {
    /// A ticket for these blocks, which no commit takes before somebody waits.
    pub(super) fn draw(&self, blocks: Vec<NewBlock>) -> u64 {
        let mut state = self.lock();
        state.last += 1;
        let ticket = state.last;
        state.waiting.push_back((ticket, blocks));
        ticket
    }

    /// The outcome of a ticket.
    ///
    /// # Errors
    /// Those of `commit`, which is called by this thread where nobody else does it.
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
            let is_open = state.committing.iter().flatten().any(|committing| *committing == ticket)
                || state.waiting.iter().any(|(waiting, _)| *waiting == ticket);
            if !is_open {
                return Ok(());
            }
            if state.committing.is_some() {
                state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let blocks = state.take_group();
            drop(state);
            let mut ending = Ending { tickets: self, outcome: Err(Error::Poisoned) };
            ending.outcome = commit(&blocks);
            drop(ending);
            state = self.lock();
        }
    }

    /// Forgets a ticket and its outcome: where no commit has taken it, none will.
    pub(super) fn leave(&self, ticket: u64) {
        let mut state = self.lock();
        state.waiting.retain(|(waiting, _)| *waiting != ticket);
        state.committing.iter_mut().for_each(|tickets| tickets.retain(|other| *other != ticket));
        state.failed.remove(&ticket);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        super::small::lock(&self.state)
    }
}

impl State {
    /// Blocks of the next commit.
    fn take_group(&mut self) -> Vec<NewBlock> {
        let (mut tickets, mut blocks) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while tickets.len() < GROUP_MAX {
            let Some((_, next)) = self.waiting.front() else { break };
            bytes += next.iter().map(|block| block.sealed.len()).sum::<usize>();
            if !tickets.is_empty() && bytes > GROUP_BYTES_MAX {
                break;
            }
            let Some((ticket, next)) = self.waiting.pop_front() else { break };
            tickets.push(ticket);
            blocks.extend(next);
        }
        self.committing = Some(tickets);
        blocks
    }
}

/// Ends a commit, also one that panics.
struct Ending<'t> {
    tickets: &'t Tickets,
    outcome: Result<()>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut state = self.tickets.lock();
        let committed = std::mem::take(&mut state.committing);
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
