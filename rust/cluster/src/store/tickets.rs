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
            if !is_waiting && !state.is_committing(ticket) {
                return Ok(());
            }
            state = if state.committing.is_none() {
                self.lead(state, &commit)
            } else if is_waiting {
                self.stand_by(state, ticket)
            } else {
                self.ended.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    /// Commits for all that wait.
    fn lead<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        commit: impl Fn(&[NewBlock]) -> Result<()>,
    ) -> MutexGuard<'s, State> {
        let mut state = self.gather(state);
        if state.waiting.is_empty() {
            // All were left meanwhile.
            state.committing = None;
            self.ended.notify_all();
            return state;
        }
        let blocks = state.take_group();
        let began = *state.began.insert(Instant::now());
        drop(state);
        let mut ending = Ending { tickets: self, began, outcome: Err(Error::Poisoned) };
        ending.outcome = commit(&blocks);
        drop(ending);
        self.lock()
    }

    /// Waits for the end of a commit that has not taken the ticket, and gives it up where that takes
    /// too long.
    fn stand_by<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        ticket: u64,
    ) -> MutexGuard<'s, State> {
        let waited = state.began.map_or(Duration::ZERO, |began| began.elapsed());
        let left = WAIT_MAX.saturating_sub(waited);
        if left.is_zero() {
            state.waiting.retain(|waiting| waiting.ticket != ticket);
            let late = failure::unavailable(WHAT, "no answer to the batches before");
            state.failed.insert(ticket, late);
            return state;
        }
        self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
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
mod tests;
