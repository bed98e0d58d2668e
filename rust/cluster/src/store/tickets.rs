//! Batches on their way into the log of a tenant, by tickets.
//!
//! A batch draws a ticket and waits for nothing. The first thread that asks for the outcome of a
//! ticket commits all batches that wait, in the order of their tickets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::store::{Commit, Committer, Gathering, NewBlock, Patience, Seat};

use super::small::lock;
use crate::failure;

pub(super) const WHAT: &str = "append to the log";

/// No batch waits longer behind a commit that has no answer: no commit takes it then.
const WAIT_MAX: Duration = Duration::from_millis(1_500);

#[derive(Default)]
pub(super) struct Tickets {
    batches: Committer<Vec<NewBlock>>,
    drawn: Mutex<Drawn>,
    gathering: Gathering,
    patience: Patience,
}

#[derive(Default)]
struct Drawn {
    last: u64,
    /// Tickets whose outcome is not known, or is an error. Any other ticket is stored.
    seats: HashMap<u64, Arc<Seat<()>>>,
}

impl Tickets {
    /// A ticket for these blocks. No commit takes them before a thread waits for a ticket.
    pub(super) fn draw(&self, blocks: Vec<NewBlock>) -> u64 {
        let bytes = blocks.iter().map(|block| block.sealed.len()).sum();
        let mut drawn = lock(&self.drawn);
        let seat = self.batches.enter(blocks, bytes);
        drawn.last += 1;
        let ticket = drawn.last;
        drawn.seats.insert(ticket, seat);
        drop(drawn);
        self.gathering.note_written(1);
        ticket
    }

    /// Returns once the batch of a ticket is stored. `commit` stores all of the batches that it is
    /// given or none of them; this thread calls it if no other thread does.
    ///
    /// # Errors
    /// Those of `commit`; [`Error::Unavailable`] if no commit took the batch in time, nor will.
    pub(super) fn wait(
        &self,
        ticket: u64,
        commit: impl Fn(&[Vec<NewBlock>]) -> Result<()>,
    ) -> Result<()> {
        let seat = lock(&self.drawn).seats.get(&ticket).cloned();
        let Some(seat) = seat else { return Ok(()) };
        self.batches.wait(&seat, &Statement { tickets: self, commit })?;
        lock(&self.drawn).seats.remove(&ticket);
        Ok(())
    }

    /// Forgets a ticket and its outcome. If no commit has taken its batch, none will.
    pub(super) fn leave(&self, ticket: u64) {
        let seat = lock(&self.drawn).seats.remove(&ticket);
        if let Some(seat) = seat {
            self.batches.leave(&seat);
        }
    }
}

/// One statement for the batches of a group.
struct Statement<'t, C> {
    tickets: &'t Tickets,
    commit: C,
}

impl<C: Fn(&[Vec<NewBlock>]) -> Result<()>> Commit<Vec<NewBlock>, ()> for Statement<'_, C> {
    type Turn = ();

    const LATE: Option<(Duration, fn() -> Error)> =
        Some((WAIT_MAX, || failure::unavailable(WHAT, "no answer to the batches before")));

    fn begin(&self) -> Result<()> {
        self.tickets.patience.gather(&self.tickets.gathering);
        Ok(())
    }

    fn commit(&self, (): (), batches: &[Vec<NewBlock>]) -> Result<()> {
        let Tickets { patience, gathering, .. } = self.tickets;
        patience.timed(gathering, || (self.commit)(batches))
    }
}

#[cfg(test)]
mod tests;
