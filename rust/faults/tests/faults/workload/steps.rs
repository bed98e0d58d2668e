//! Steps of the work. A step has its promises, and the work that follows a failure.

use fleetcast_faults::model::error::Error;
use fleetcast_faults::model::limits::WriteLimits;
use fleetcast_faults::plane::{Acknowledgement, CompactionTrigger, PendingBatch, WriteError};
use fleetcast_faults::wire::Format;

use super::client::Client;
use crate::batches::{
    self, Event, Expected, HOURS_SECONDS, NOW_NS, RETENTION_SECONDS, Verdict, body, extent,
};

/// Number of batches that one flush makes durable together.
const BUFFERED: u32 = 3;
/// Number of batches that are appended before the wait for the first.
const APPENDED: u32 = 3;

/// Steps of the workload, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Write,
    /// A batch that is in doubt if the write fails.
    WriteOnce,
    /// Some batches that one sync makes durable, and a batch without a waiting client.
    Append,
    /// A large batch. The next batch goes to another file of the log.
    Fill,
    /// A batch that the client waits for later.
    Hold,
    /// Waits for the held batches.
    Wait,
    /// The client of the held batches goes away.
    Leave,
    /// Some batches that become durable together.
    Flush,
    Compact,
    /// Deletes, in turn, a batch of the log and a batch of a segment.
    Delete,
    Retain,
    /// A new data key. Compactions drop the old key.
    Rekey,
    Reopen,
}

/// Returns steps with all kinds of work, several times.
pub(crate) fn steps(count: usize) -> Vec<Step> {
    let step = |at: usize| match at % 23 {
        _ if at == count * 2 / 3 => Step::Retain,
        11 | 18 | 20 => Step::Append,
        5 | 17 => Step::Hold,
        7 | 22 => Step::Wait,
        4 | 16 => Step::Flush,
        6 | 9 | 12 | 19 => Step::Compact,
        8 | 15 | 21 => Step::Delete,
        3 | 10 => Step::Rekey,
        14 => Step::Reopen,
        _ => Step::Write,
    };
    (0..count).map(step).collect()
}

impl Client {
    pub(crate) fn work(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Write => self.write(Acknowledgement::Durable),
                Step::WriteOnce => self.write_once(),
                Step::Append => self.append(),
                Step::Fill => {
                    self.next_batch = batches::next_large(self.next_batch);
                    self.write(Acknowledgement::Durable);
                }
                Step::Hold => self.hold(),
                Step::Wait => self.wait(),
                Step::Leave => self.held.clear(),
                Step::Flush => self.flush(),
                Step::Compact => self.compact(),
                Step::Delete => self.delete(),
                Step::Retain => self.retain(),
                Step::Rekey => self.rekey(),
                Step::Reopen => {
                    self.held.clear();
                    self.plane = None;
                }
            }
        }
    }

    /// Begins the next batch.
    fn begin(&mut self) -> u32 {
        let batch = self.next_batch;
        self.next_batch += 1;
        self.plane();
        self.note(Event::Begun(batch));
        batch
    }

    /// Notes that a batch is not stored, if the error says so.
    fn note_refusal(&mut self, batch: u32, error: &Error) {
        if matches!(error, Error::DiskFull) {
            self.note(Event::Refused(batch));
        }
    }

    fn write(&mut self, acknowledge: Acknowledgement) {
        let batch = self.begin();
        let is_durable = acknowledge == Acknowledgement::Durable;
        match self.try_write(batch, acknowledge) {
            Ok(()) if is_durable => self.note(Event::Acknowledged(batch)),
            Ok(()) => {}
            Err(error) => {
                self.note_refusal(batch, &error);
                self.failed(&error);
            }
        }
    }

    fn write_once(&mut self) {
        let batch = self.begin();
        if self.try_write(batch, Acknowledgement::Durable).is_ok() {
            self.note(Event::Acknowledged(batch));
        }
    }

    fn try_write(&mut self, batch: u32, acknowledge: Acknowledgement) -> Result<(), Error> {
        let written = self.plane().write(
            Format::Json,
            &body(batch),
            &WriteLimits::default(),
            NOW_NS,
            acknowledge,
        );
        match written {
            Ok(_) => Ok(()),
            Err(WriteError::Failed(error)) => Err(error),
            Err(WriteError::Refused(refusal)) => panic!("{refusal:?}"),
        }
    }

    fn hold(&mut self) {
        let batch = self.begin();
        match self.append_one(batch) {
            Ok(pending) => self.held.push((batch, pending)),
            Err(error) => {
                self.note_refusal(batch, &error);
                self.failed(&error);
            }
        }
    }

    fn append_one(&self, batch: u32) -> Result<PendingBatch, Error> {
        let plane = self.plane.as_ref().expect("it was opened");
        let limits = WriteLimits::default();
        match plane.append(Format::Json, &body(batch), &limits, NOW_NS, Acknowledgement::Durable) {
            Ok(pending) => Ok(pending),
            Err(WriteError::Failed(error)) => Err(error),
            Err(WriteError::Refused(refusal)) => panic!("{refusal:?}"),
        }
    }

    fn wait(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.wait_for(held, None);
    }

    /// Waits for batches in turn. `fault` is an error that came before.
    fn wait_for(&mut self, batches: Vec<(u32, PendingBatch)>, mut fault: Option<Error>) {
        for (batch, pending) in batches {
            match pending.wait() {
                Ok(_) => self.note(Event::Acknowledged(batch)),
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        if let Some(error) = fault {
            self.failed(&error);
        }
    }

    fn append(&mut self) {
        let mut pendings = Vec::new();
        let mut fault = None;
        for _ in 0..APPENDED {
            let batch = self.begin();
            match self.append_one(batch) {
                Ok(pending) => pendings.push((batch, pending)),
                Err(error) => {
                    self.note_refusal(batch, &error);
                    fault = Some(error);
                    break;
                }
            }
        }
        if pendings.len() > 1 {
            // The client of this batch has gone, so the batch may be stored.
            drop(pendings.remove(1));
        }
        self.wait_for(pendings, fault);
    }

    fn flush(&mut self) {
        let (first, reopened) = (self.next_batch, self.reopened);
        for _ in 0..BUFFERED {
            self.write(Acknowledgement::Buffered { bytes_max: 1 << 20 });
        }
        if self.reopened > reopened {
            // Batches that waited in the failed plane were never promised.
            return;
        }
        let stored = self.plane().flush().or_else(|error| match error {
            // The batches still wait, and there is space again.
            Error::DiskFull => self.plane().flush(),
            error => Err(error),
        });
        match stored {
            Ok(()) => {
                let begun: Vec<_> = self.events.iter().map(|(_, event)| *event).collect();
                for batch in first..self.next_batch {
                    if !begun.contains(&Event::Refused(batch)) {
                        self.note(Event::Acknowledged(batch));
                    }
                }
            }
            Err(error) => self.failed(&error),
        }
    }

    fn compact(&mut self) {
        if let Err(error) = self.plane().compact(CompactionTrigger::Now, NOW_NS) {
            self.failed(&error);
        }
    }

    /// Returns the batch for the next delete. Example: after batch 6 this is batch 6, and after
    /// batch 7 it is batch 3.
    pub(crate) fn doomed(&self) -> u32 {
        let last = self.next_batch.saturating_sub(1);
        if last.is_multiple_of(2) { last } else { last / 2 }
    }

    fn delete(&mut self) {
        let batch = self.doomed();
        self.plane();
        self.note(Event::DeleteBegun(batch));
        // A process that another test starts has the lock until it executes its program.
        let delete = || self.plane.as_ref()?.delete(&extent(batch), false).transpose();
        match std::iter::repeat_with(delete).flatten().next() {
            // Only the hour of the batch is left.
            Some(Err(Error::Invalid { .. })) => {}
            Some(Err(error)) => self.failed(&error),
            // A delete removes durable batches only.
            _ if self.held.iter().any(|(held, _)| *held == batch) => {}
            _ => self.note(Event::Deleted(batch)),
        }
    }

    fn rekey(&mut self) {
        self.plane();
        // A process that another test starts has the lock until it executes its program.
        let rekey = || self.plane.as_ref()?.rekey().transpose();
        if let Some(Err(error)) = std::iter::repeat_with(rekey).flatten().next() {
            self.failed(&error);
        }
    }

    fn retain(&mut self) {
        match self.plane().keep_hours(HOURS_SECONDS) {
            Ok(true) => self.note(Event::HoursKept),
            Ok(false) => {}
            Err(error) => self.failed(&error),
        }
        self.plane();
        self.note(Event::RetentionBegun);
        let plane = self.plane();
        let set = plane.set_retention(RETENTION_SECONDS);
        match set {
            Ok(()) => self.note(Event::RetentionSet),
            Err(error) => self.failed(&error),
        }
    }

    /// Continues after a fault. Reads must work. After a full disk, no more is needed. After any
    /// other fault, the writes of this handle end if the fault may have touched their data.
    fn failed(&mut self, error: &Error) {
        self.expect_fault(error);
        let expected = self.expected(&Expected::default());
        // LMDB refuses even reads after its head page could not be written.
        let is_readable = !matches!(self.plane().ping(), Err(Error::Poisoned));
        let verdict = if is_readable { self.judge(&expected) } else { Verdict::default() };
        verdict.shown.iter().for_each(|batch| self.note(Event::Shown(*batch)));
        if !verdict.is_clean() {
            self.faults.push(format!("after {error}: {verdict:?}"));
        }
        if is_readable && matches!(error, Error::DiskFull) {
            return;
        }
        let batch = self.next_batch;
        self.next_batch += 1;
        self.note(Event::Begun(batch));
        match self.try_write(batch, Acknowledgement::Durable) {
            Ok(()) => self.note(Event::Acknowledged(batch)),
            // The write may also fail if the handle was not poisoned. Waiting batches are then
            // lost.
            Err(Error::Poisoned | Error::Io { .. } | Error::Lost { .. }) => {}
            Err(error) => self.faults.push(format!("no clear answer after a fault: {error:?}")),
        }
        self.held.clear();
        self.plane = None;
        self.reopened += 1;
        // Batches that the next handle shows are stored for good.
        let expected = self.expected(&Expected::default());
        let verdict = self.judge(&expected);
        if !verdict.is_clean() {
            self.faults.push(format!("opened anew after {error}: {verdict:?}"));
        }
        verdict.shown.iter().for_each(|batch| self.note(Event::Shown(*batch)));
    }
}
