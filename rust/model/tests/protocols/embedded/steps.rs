//! Steps of processes that append, sync and read. A process may be killed between any two.

use super::state::{Frame, Machine, Process, Shared, Step};
use super::{Embedded, Flaw, READER, WRITES};

impl Embedded {
    /// Does the next step of a process. Returns `None` if it has to wait.
    pub(super) fn advance(&self, state: &mut Machine, process: usize) -> Option<()> {
        let own = state.processes[process];
        state.processes[process].step = match own.step {
            Step::Closed => return self.open(state, process),
            Step::Idle if process == READER => begin_read(state, process),
            Step::Looked { .. } | Step::FoundDead { .. } => return self.read(state, process),
            Step::ReaderWaiting => self.begin_sync_of_dead(state)?,
            Step::ReaderTarget(target) => {
                state.file.sync();
                Step::ReaderFlushed(target)
            }
            Step::ReaderFlushed(target) => {
                self.publish_synced(state, target);
                look(state)
            }
            Step::ReaderFailed => {
                note_failure(state);
                look(state)
            }
            Step::Published | Step::Syncing | Step::Target(_) | Step::Flushed(_) | Step::Failed => {
                return self.sync(state, process);
            }
            _ => return self.write(state, process),
        };
        Some(())
    }

    /// `Log::write`.
    fn write(&self, state: &mut Machine, process: usize) -> Option<()> {
        let own = state.processes[process];
        let shared = &mut state.shared;
        let step = match own.step {
            Step::Idle => {
                let is_locked = state.processes.into_iter().any(Process::has_append_lock);
                (own.batches < WRITES && !is_locked).then_some(())?;
                // `Log::check_sound`.
                if own.failures == shared.failures { Step::Appending } else { Step::Closed }
            }
            Step::Appending => {
                self.settle(state);
                Step::Settled
            }
            Step::Settled => {
                state.processes[process].start = shared.written;
                Step::Marked
            }
            Step::Marked => {
                if self.flaw != Some(Flaw::NoReservation) {
                    shared.reserved = own.start + 1;
                }
                Step::Reserved
            }
            Step::Reserved => {
                state.file.write(own.start, Frame::Part)?;
                Step::Half
            }
            Step::Half => {
                state.file.write(own.start, Frame::Whole(batch(process, own.batches)))?;
                Step::Whole
            }
            Step::Whole => {
                shared.written = own.start + 1;
                shared.reserved = shared.reserved.max(shared.written);
                Step::Published
            }
            _ => return None,
        };
        state.processes[process].step = step;
        if own.step == Step::Whole && self.flaw == Some(Flaw::AcknowledgedFirst) {
            state.acknowledged |= 1 << batch(process, own.batches);
        }
        Some(())
    }

    /// `Log::settle`: the caller has the right to append. A whole frame of a dead process is taken in.
    fn settle(&self, state: &mut Machine) {
        let shared = &mut state.shared;
        if shared.reserved != shared.written {
            let is_whole = state.file.whole(shared.written).is_some();
            if is_whole || self.flaw == Some(Flaw::NoChecksum) {
                shared.written += 1;
            }
            shared.reserved = shared.written;
        }
    }

    /// `Log::sync`: `SharedSync` takes a turn, and `Log::sync_written` syncs for all.
    fn sync(&self, state: &mut Machine, process: usize) -> Option<()> {
        let own = state.processes[process];
        let step = match own.step {
            Step::Published | Step::Syncing if own.failures != state.shared.failures => {
                // Its batch may be stored all the same.
                finish(state, process);
                Step::Closed
            }
            Step::Published if state.shared.synced > own.start => {
                state.acknowledged |= 1 << batch(process, own.batches);
                finish(state, process);
                Step::Idle
            }
            Step::Published => {
                (!self.is_sync_locked(state)).then_some(())?;
                if self.is_cut_off(state) {
                    return self.heal(state);
                }
                Step::Syncing
            }
            Step::Syncing => begin_sync(state, Step::Target),
            Step::Target(target) => {
                state.file.sync();
                Step::Flushed(target)
            }
            Step::Failed => {
                note_failure(state);
                Step::Published
            }
            Step::Flushed(target) => {
                self.publish_synced(state, target);
                Step::Published
            }
            _ => return None,
        };
        state.processes[process].step = step;
        Some(())
    }

    /// Returns true if a process has the right to sync.
    fn is_sync_locked(&self, state: &Machine) -> bool {
        // With this flaw, the reader asks for no right.
        let count = if self.flaw == Some(Flaw::NoTurn) { READER } else { READER + 1 };
        state.processes[..count].iter().any(|other| other.has_sync_lock())
    }

    /// `MappedFile::is_sync_cut_off`: the caller has the right to sync.
    fn is_cut_off(&self, state: &Machine) -> bool {
        state.shared.is_syncing && self.flaw != Some(Flaw::CutOffIgnored)
    }

    /// The sync in `Log::end_work_of_dead`.
    fn begin_sync_of_dead(&self, state: &mut Machine) -> Option<Step> {
        if self.flaw != Some(Flaw::NoTurn) {
            (!self.is_sync_locked(state)).then_some(())?;
            if self.is_cut_off(state) {
                self.heal(state)?;
                return Some(look(state));
            }
            if is_in_doubt(state) && self.flaw != Some(Flaw::DoubtIgnored) {
                return Some(look(state));
            }
        }
        Some(begin_sync(state, Step::ReaderTarget))
    }

    /// `Log::heal`. Returns `None` if it has to wait.
    fn heal(&self, state: &mut Machine) -> Option<()> {
        let is_locked = state.processes.into_iter().any(Process::has_append_lock);
        (!is_locked && !self.is_sync_locked(state)).then_some(())?;
        let end = state.file.recover(state.shared.synced);
        state.shared.publish_ends(end);
        state.shared.healed = state.shared.failures;
        state.shared.is_syncing = false;
        Some(())
    }

    /// `MappedFile::publish_synced`, of the position that was written before the sync.
    fn publish_synced(&self, state: &mut Machine, target: u8) {
        let is_late = self.flaw == Some(Flaw::LateTarget);
        let target = if is_late { state.shared.written } else { target };
        state.shared.synced = state.shared.synced.max(target);
        state.shared.is_syncing = false;
    }

    /// The sync of a process fails.
    pub(super) fn fail(&self, state: &mut Machine, process: usize) -> Option<()> {
        let own = state.processes[process];
        let is_reader = matches!(own.step, Step::ReaderTarget(_));
        (is_reader || matches!(own.step, Step::Target(_))).then_some(())?;
        state.failing_syncs = state.failing_syncs.checked_sub(1)?;
        state.file.fail();
        if self.flaw == Some(Flaw::SyncOnceMore) {
            // The caller asks again, and the second call succeeds.
            return Some(());
        }
        state.processes[process].step = if is_reader { Step::ReaderFailed } else { Step::Failed };
        Some(())
    }

    /// `OpenPermit::finish`.
    fn open(&self, state: &mut Machine, process: usize) -> Option<()> {
        let is_alone = state.processes.iter().all(|other| other.step == Step::Closed);
        if is_alone {
            let end = state.file.recover(0);
            state.has_damage |= end < state.shared.synced;
            state.shared = Shared::default();
            state.shared.publish_ends(end);
        } else if self.flaw == Some(Flaw::NoHealing) {
            state.shared.healed = state.shared.failures;
        } else if is_in_doubt(state) {
            self.heal(state)?;
        }
        let own = &mut state.processes[process];
        (own.step, own.failures) = (Step::Idle, state.shared.failures);
        Some(())
    }

    /// `Log::visible_end`.
    fn read(&self, state: &mut Machine, process: usize) -> Option<()> {
        let shared = state.shared;
        let step = match state.processes[process].step {
            Step::Looked { synced, reserved } => {
                let is_dead = |at: &u8| !state.processes.iter().any(|other| other.marks(*at));
                // `Log::first_dead` reads the synced position again behind the marks.
                let dead = (synced.max(shared.synced)..reserved).find(is_dead);
                match dead {
                    Some(at) if !is_in_doubt(state) && self.flaw != Some(Flaw::DeadIgnored) => {
                        Step::FoundDead { at, reserved }
                    }
                    _ => {
                        // Other processes may have synced frames of the dead since.
                        let is_old = self.flaw == Some(Flaw::OldEnd);
                        show(state, process, if is_old { synced } else { shared.synced });
                        Step::Idle
                    }
                }
            }
            Step::FoundDead { at, reserved } => {
                // `Log::end_work_of_dead`, unless its end was published since.
                let is_ended = shared.synced > at || shared.reserved != reserved;
                if is_ended {
                    look(state)
                } else if at < shared.written {
                    Step::ReaderWaiting
                } else {
                    let is_locked = state.processes.into_iter().any(Process::has_append_lock);
                    (!is_locked).then_some(())?;
                    self.settle(state);
                    Step::ReaderWaiting
                }
            }
            _ => return None,
        };
        state.processes[process].step = step;
        Some(())
    }
}

/// Returns the number of a batch of a process.
pub(super) fn batch(process: usize, batches: u8) -> u8 {
    process as u8 * WRITES + batches
}

fn look(state: &Machine) -> Step {
    Step::Looked { synced: state.shared.synced, reserved: state.shared.reserved }
}

/// `MappedFile::begin_sync`, in `Log::sync_written`.
fn begin_sync(state: &mut Machine, step: impl Fn(u8) -> Step) -> Step {
    state.shared.is_syncing = true;
    step(state.shared.written)
}

/// `MappedFile::note_failure`.
fn note_failure(state: &mut Machine) {
    state.shared.failures += 1;
    state.shared.is_syncing = false;
}

fn is_in_doubt(state: &Machine) -> bool {
    state.shared.failures != state.shared.healed
}

fn begin_read(state: &mut Machine, process: usize) -> Step {
    state.processes[process].dead = state.dead;
    look(state)
}

/// The read shows all frames up to `synced`.
fn show(state: &mut Machine, process: usize, synced: u8) {
    let dead = std::mem::take(&mut state.processes[process].dead);
    // After a failed sync, reads wait for the batches of the dead until the log is healed.
    let dead = if is_in_doubt(state) { 0 } else { dead };
    match state.file.batches(synced) {
        None => state.has_bad_read = true,
        Some(batches) => {
            state.has_bad_read |= batches & state.missed != 0;
            state.shown |= batches;
            state.missed |= dead & !batches;
        }
    }
}

/// The batch of a process has ended, acknowledged or not.
fn finish(state: &mut Machine, process: usize) {
    state.processes[process].batches += 1;
}
