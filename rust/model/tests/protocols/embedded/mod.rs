//! The log of one tenant on one machine: processes that append, sync and read, killed between any
//! two steps; power cuts; syncs that fail.
//!
//! A process stands for all its threads, which share one write and one sync
//! (`rust/core/tests/committer.rs`). The functions named are in `rust/core/src/storage/store/log`.

mod state;
mod steps;

mod tests;

use stateright::{Model, Property};

use self::state::{File, Frame, Machine, POSITIONS, Process, Shared, Step};
use self::steps::batch;

/// The process that reads.
const READER: usize = 2;
/// Count of the batches of each writer.
const WRITES: u8 = 2;

/// The model and its bounds.
#[derive(Clone, Debug)]
struct Embedded {
    kills: u8,
    cuts: u8,
    failing_syncs: u8,
    flaw: Option<Flaw>,
}

/// A step that is left out or done too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// A batch is acknowledged once it is written.
    AcknowledgedFirst,
    /// A sync counts for the bytes that were written while it ran.
    LateTarget,
    /// A sync that failed is tried again into a success.
    SyncOnceMore,
    /// A read syncs the frames of the dead beside the sync of another process.
    NoTurn,
    /// A read syncs the frames of the dead although a sync before has failed.
    DoubtIgnored,
    /// A sync does not ask if a process has died in its sync.
    CutOffIgnored,
    /// The end of the log is not written again after a failed sync.
    NoHealing,
    /// A frame of a dead process is taken in although its checksum is wrong.
    NoChecksum,
    /// A read does not look for frames of dead processes.
    DeadIgnored,
    /// A read shows the end that it saw first, although others have synced frames of the dead since.
    OldEnd,
    /// A writer does not publish how far it will write.
    NoReservation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Advance(usize),
    FailSync(usize),
    Kill(usize),
    /// The unsynced frames at these positions are on the disk all the same.
    CutPower {
        kept: u8,
    },
}

impl Embedded {
    fn kill(state: &mut Machine, process: usize) -> Option<()> {
        state.kills = state.kills.checked_sub(1)?;
        end(state, process)
    }

    fn cut_power(state: &mut Machine, kept: u8) -> Option<()> {
        state.cuts = state.cuts.checked_sub(1)?;
        let File { frames, disk, unwritable } = &mut state.file;
        for at in 0..POSITIONS {
            let is_kept = kept & 1 << at != 0;
            if frames[at] != disk[at] {
                frames[at] = if is_kept { frames[at] } else { Frame::Part };
            } else if is_kept {
                // The same state as without the bit.
                return None;
            }
        }
        (*disk, *unwritable) = (*frames, 0);
        for process in 0..state.processes.len() {
            // A process that has not opened the log cannot end.
            let _ = end(state, process);
        }
        Some(())
    }
}

/// The system drops the locks and the marks of a process that ends.
fn end(state: &mut Machine, process: usize) -> Option<()> {
    let own = &mut state.processes[process];
    let step = std::mem::replace(&mut own.step, Step::Closed);
    (step != Step::Closed).then_some(())?;
    if process != READER && step != Step::Idle {
        state.dead |= 1 << batch(process, own.batches);
        own.batches += 1;
    }
    own.dead = 0;
    Some(())
}

impl Model for Embedded {
    type State = Machine;
    type Action = Action;

    fn init_states(&self) -> Vec<Machine> {
        let process = Process { step: Step::Closed, batches: 0, start: 0, failures: 0, dead: 0 };
        vec![Machine {
            file: File::default(),
            shared: Shared::default(),
            processes: [process; 3],
            kills: self.kills,
            cuts: self.cuts,
            failing_syncs: self.failing_syncs,
            acknowledged: 0,
            shown: 0,
            dead: 0,
            missed: 0,
            has_bad_read: false,
            has_damage: false,
        }]
    }

    fn actions(&self, _state: &Machine, actions: &mut Vec<Action>) {
        for process in 0..3 {
            actions.push(Action::Advance(process));
            actions.extend([Action::FailSync(process), Action::Kill(process)]);
        }
        actions.extend((0..1 << POSITIONS).map(|kept| Action::CutPower { kept }));
    }

    fn next_state(&self, last: &Machine, action: Action) -> Option<Machine> {
        let mut state = *last;
        match action {
            Action::Advance(process) => self.advance(&mut state, process),
            Action::FailSync(process) => self.fail(&mut state, process),
            Action::Kill(process) => Self::kill(&mut state, process),
            Action::CutPower { kept } => Self::cut_power(&mut state, kept),
        }?;
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SURVIVES, |_, state: &Machine| {
                state.acknowledged & !durable(state) == 0
            }),
            Property::always(KEPT, |_, state: &Machine| state.shown & !durable(state) == 0),
            Property::always(ONCE, |_, state: &Machine| {
                let frames = &state.file.frames;
                (0..POSITIONS).all(|at| {
                    !matches!(frames[at], Frame::Whole(_)) || !frames[..at].contains(&frames[at])
                })
            }),
            Property::always(WHOLE, |_, state: &Machine| !state.has_bad_read),
            Property::always(OPENS, |_, state: &Machine| !state.has_damage),
            Property::sometimes(SUCCESS, |_, state: &Machine| {
                state.acknowledged.count_ones() == 2 && state.shown.count_ones() == 3
            }),
        ]
    }
}

/// Returns the batches that are there after a power cut at this instant, whatever it keeps.
fn durable(state: &Machine) -> u8 {
    let disk = File { frames: state.file.disk, ..File::default() };
    disk.batches(disk.end(0)).unwrap_or(0)
}

const SURVIVES: &str = "an acknowledged batch survives a power cut";
const KEPT: &str = "a batch that a read showed survives a power cut";
const ONCE: &str = "a batch is in the log once";
const WHOLE: &str = "reads show whole batches, those of the dead at once or never";
const OPENS: &str = "a log that was not damaged is opened";
const SUCCESS: &str = "a batch of a killed process is shown beside two that were acknowledged";
