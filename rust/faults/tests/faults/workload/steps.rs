//! Steps of the work, each with its promises and what follows where it fails.

use fleetcast_faults::model::error::Error;
use fleetcast_faults::model::limits::WriteLimits;
use fleetcast_faults::plane::{Acknowledge, Due, Pending, WriteError};
use fleetcast_faults::wire::Format;

use super::client::Client;
use crate::batches::{self, Event, Expected, NOW_NS, RETENTION_SECONDS, Verdict, body, extent};

/// Batches that one flush makes durable together.
const BUFFERED: u32 = 3;
/// Batches that are appended before any of them is waited for.
const APPENDED: u32 = 3;

/// Steps of the workload, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Write,
    /// Some batches that one sync makes durable, and one that nobody waits for.
    Append,
    /// A large batch: the next one goes to another file of the log.
    Fill,
    /// A batch that is waited for later.
    Hold,
    /// Waits for those.
    Wait,
    /// Some batches that become durable together.
    Flush,
    Compact,
    /// A batch of the log and one of a segment in turn.
    Delete,
    Retain,
    Reopen,
}

/// Something of everything, several times.
pub(crate) fn steps(count: usize) -> Vec<Step> {
    let step = |at: usize| match at % 23 {
        11 | 18 | 20 => Step::Append,
        5 | 17 => Step::Hold,
        7 | 22 => Step::Wait,
        4 | 16 => Step::Flush,
        6 | 9 | 12 | 19 => Step::Compact,
        8 | 15 | 21 => Step::Delete,
        14 => Step::Reopen,
        _ if at == count * 2 / 3 => Step::Retain,
        _ => Step::Write,
    };
    (0..count).map(step).collect()
}

impl Client {
    pub(crate) fn work(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Write => self.write(Acknowledge::Durable),
                Step::Append => self.append(),
                Step::Fill => {
                    self.next_batch = batches::next_large(self.next_batch);
                    self.write(Acknowledge::Durable);
                }
                Step::Hold => self.hold(),
                Step::Wait => self.wait(),
                Step::Flush => self.flush(),
                Step::Compact => self.compact(),
                Step::Delete => self.delete(),
                Step::Retain => self.retain(),
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

    /// Notes that a batch is not stored, where the error says so.
    fn note_refusal(&mut self, batch: u32, error: &Error) {
        if matches!(error, Error::DiskFull) {
            self.note(Event::Refused(batch));
        }
    }

    fn write(&mut self, acknowledge: Acknowledge) {
        let batch = self.begin();
        let is_durable = acknowledge == Acknowledge::Durable;
        match self.try_write(batch, acknowledge) {
            Ok(()) if is_durable => self.note(Event::Acknowledged(batch)),
            Ok(()) => {}
            Err(error) => {
                self.note_refusal(batch, &error);
                self.failed(&error);
            }
        }
    }

    fn try_write(&mut self, batch: u32, acknowledge: Acknowledge) -> Result<(), Error> {
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

    fn append_one(&self, batch: u32) -> Result<Pending, Error> {
        let plane = self.plane.as_ref().expect("it was opened");
        let limits = WriteLimits::default();
        match plane.append(Format::Json, &body(batch), &limits, NOW_NS, Acknowledge::Durable) {
            Ok(pending) => Ok(pending),
            Err(WriteError::Failed(error)) => Err(error),
            Err(WriteError::Refused(refusal)) => panic!("{refusal:?}"),
        }
    }

    fn wait(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.wait_for(held, None);
    }

    /// Waits for batches in turn; `fault` came before.
    fn wait_for(&mut self, batches: Vec<(u32, Pending)>, mut fault: Option<Error>) {
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
            // Its client has gone: it may be stored.
            drop(pendings.remove(1));
        }
        self.wait_for(pendings, fault);
    }

    fn flush(&mut self) {
        let (first, reopened) = (self.next_batch, self.reopened);
        for _ in 0..BUFFERED {
            self.write(Acknowledge::Buffered { bytes_max: 1 << 20 });
        }
        if self.reopened > reopened {
            // Batches that waited in the plane that failed were promised to nobody.
            return;
        }
        let stored = self.plane().flush().or_else(|error| match error {
            // It waits on, and there is space again.
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
        if let Err(error) = self.plane().compact(Due::Now, NOW_NS) {
            self.failed(&error);
        }
    }

    /// The batch that the next delete is for.
    pub(crate) fn doomed(&self) -> u32 {
        let last = self.next_batch.saturating_sub(1);
        if last.is_multiple_of(2) { last } else { last / 2 }
    }

    fn delete(&mut self) {
        let batch = self.doomed();
        self.plane();
        self.note(Event::DeleteBegun(batch));
        // A process that another test starts has the lock until it runs a program of its own.
        let delete = || self.plane.as_ref()?.delete(&extent(batch), false).transpose();
        match std::iter::repeat_with(delete).flatten().next() {
            Some(Err(error)) => self.failed(&error),
            // It deletes what is durable.
            _ if self.held.iter().any(|(held, _)| *held == batch) => {}
            _ => self.note(Event::Deleted(batch)),
        }
    }

    fn retain(&mut self) {
        self.plane();
        self.note(Event::RetentionBegun);
        let plane = self.plane();
        let set = plane.set_retention(RETENTION_SECONDS);
        match set {
            Ok(()) => self.note(Event::RetentionSet),
            Err(error) => self.failed(&error),
        }
    }

    /// After a fault: reads go on. A full disk is all that it is; anything else ends the writes of
    /// this handle if it may have touched what they rely on.
    fn failed(&mut self, error: &Error) {
        self.expect_fault(error);
        let expected = self.expected(&Expected::default());
        // LMDB does not even read after its head page could not be written.
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
        match self.try_write(batch, Acknowledge::Durable) {
            Ok(()) => self.note(Event::Acknowledged(batch)),
            // It may fail as well where it was not poisoned; batches that waited are lost then.
            Err(Error::Poisoned | Error::Io { .. } | Error::Lost { .. }) => {}
            Err(error) => self.faults.push(format!("no clear answer after a fault: {error:?}")),
        }
        self.held.clear();
        self.plane = None;
        self.reopened += 1;
        // Batches that the next handle shows are there for good.
        let expected = self.expected(&Expected::default());
        let verdict = self.judge(&expected);
        if !verdict.is_clean() {
            self.faults.push(format!("opened anew after {error}: {verdict:?}"));
        }
        verdict.shown.iter().for_each(|batch| self.note(Event::Shown(*batch)));
    }
}
