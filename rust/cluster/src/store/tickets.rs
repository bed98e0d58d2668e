//! Batches on their way into the log of a tenant, by tickets.
//!
//! A batch draws a ticket without a wait. The first thread that asks for the outcome of a ticket
//! commits all waiting batches, in the order of their tickets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::store::{
    Commit, CommitSeat, Committer, GroupCounts, NewBlock, Patience,
};

use super::small::lock;
use crate::failure;
use crate::identity::Id;

pub(super) const WHAT: &str = "append to the log";

/// Longest wait of a batch behind a commit without an answer. Afterwards no commit takes the batch.
const WAIT_MAX: Duration = Duration::from_millis(1_500);

/// Blocks that are stored together, and the id of the key that sealed them. `None` if there are only
/// numbers.
pub(super) struct SealedBatch {
    pub(super) blocks: Vec<NewBlock>,
    pub(super) key: Option<Id>,
}

#[derive(Default)]
pub(super) struct Tickets {
    batches: Committer<SealedBatch>,
    drawn: Mutex<TicketTable>,
    gathering: GroupCounts,
    patience: Patience,
}

#[derive(Default)]
struct TicketTable {
    last: u64,
    /// Tickets without an outcome, or with an error. The batch of every other ticket is stored.
    seats: HashMap<u64, Arc<CommitSeat<()>>>,
}

impl Tickets {
    /// Draws a ticket for a batch. No commit takes the batch before a thread waits for a ticket.
    pub(super) fn draw(&self, batch: SealedBatch) -> u64 {
        let bytes = batch.blocks.iter().map(|block| block.sealed.len()).sum();
        let mut drawn = lock(&self.drawn);
        let seat = self.batches.enter(batch, bytes);
        drawn.last += 1;
        let ticket = drawn.last;
        drawn.seats.insert(ticket, seat);
        drop(drawn);
        self.gathering.note_written(1);
        ticket
    }

    /// Waits until the batch of a ticket is stored. `commit` stores all of its batches or none of
    /// them. This thread calls `commit` if no other thread does.
    ///
    /// # Errors
    /// Returns the errors of `commit`, or [`Error::Unavailable`] if no commit has taken the batch
    /// in time. No commit takes it later.
    pub(super) fn wait(
        &self,
        ticket: u64,
        commit: impl Fn(&[SealedBatch]) -> Result<()>,
    ) -> Result<()> {
        let seat = lock(&self.drawn).seats.get(&ticket).cloned();
        let Some(seat) = seat else { return Ok(()) };
        self.batches.wait(&seat, &Statement { tickets: self, commit })?;
        lock(&self.drawn).seats.remove(&ticket);
        Ok(())
    }

    /// Forgets a ticket and its outcome. If no commit has taken its batch, no commit will.
    pub(super) fn leave(&self, ticket: u64) {
        let seat = lock(&self.drawn).seats.remove(&ticket);
        if let Some(seat) = seat {
            self.batches.leave(&seat);
        }
    }
}

/// The commit of a group of batches, by one statement.
struct Statement<'t, C> {
    tickets: &'t Tickets,
    commit: C,
}

impl<C: Fn(&[SealedBatch]) -> Result<()>> Commit<SealedBatch, ()> for Statement<'_, C> {
    type Turn = ();

    const LATE: Option<(Duration, fn() -> Error)> =
        Some((WAIT_MAX, || failure::unavailable(WHAT, "no answer to the batches before")));

    fn begin(&self) -> Result<()> {
        self.tickets.patience.gather(&self.tickets.gathering);
        Ok(())
    }

    fn commit(&self, (): (), batches: &[SealedBatch]) -> Result<()> {
        let Tickets { patience, gathering, .. } = self.tickets;
        patience.timed(gathering, || (self.commit)(batches))
    }
}

#[cfg(test)]
mod tests;
