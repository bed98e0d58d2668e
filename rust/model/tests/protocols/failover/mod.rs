//! One log on three servers of PostgreSQL, while a standby replaces a primary that may live on.
//!
//! Statements, commits, answers and questions of the watch are steps of their own, so they happen
//! in every order. PostgreSQL itself is taken for granted: a statement takes effect whole or not at
//! all, and a standby gets commits in their order.

mod log;

mod state;

mod servers;
mod steps;

mod tests;

use stateright::{Model, Property};

use self::log::Batch;
use self::state::{Installation, Job, OLD, Promotion, THIRD};

/// The model and its bounds.
#[derive(Clone, Debug)]
struct Failover {
    /// Jobs of each process, one after another.
    jobs: [&'static [Job]; 2],
    kinds: &'static [Fault],
    /// Count of faults beside the promotion.
    faults: u8,
    /// Count of answers that are lost on their way or come too late.
    cuts: u8,
    flaw: Option<Flaw>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Freeze,
    Restart,
    Reload,
    Promote,
}

/// A check that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// The timeline is compared when a session is opened, and never again.
    TimelineAtConnectOnly,
    /// The settings are looked at when a session is opened, and never again.
    SettingsAtConnectOnly,
    /// `Session::open` does not wait for a commit.
    NoBarrier,
    /// `ClusterStore::find` does not wait for a commit.
    DuplicateIsProof,
    /// A batch that is sent again has other ids.
    NewIds,
    /// `ShownState::continues` is not asked.
    NoWatermark,
    /// `ClusterStore::proven` compares no entries after a promotion.
    HistoryNotCompared,
    /// After a reload, the wait for a standby is taken for a proof.
    ReloadIgnored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Open { process: usize, server: usize },
    Send(usize),
    Execute(usize),
    ExecuteAbandoned { server: usize, batch: Batch },
    Replicate(usize),
    Commit(usize),
    Check(usize),
    Receive(usize),
    Cut(usize),
    Watch(usize),
    Close(usize),
    Freeze,
    Restart,
    Reload,
    Hear,
    Forget,
    Promote,
    Rejoin(usize),
    Pass,
}

impl Model for Failover {
    type State = Installation;
    type Action = Action;

    fn init_states(&self) -> Vec<Installation> {
        vec![Installation::new(self)]
    }

    /// Each step that may be possible; `next_state` knows the conditions.
    fn actions(&self, state: &Installation, actions: &mut Vec<Action>) {
        for at in 0..state.servers.len() {
            actions.extend([Action::Replicate(at), Action::Commit(at)]);
            let batches = (0..8).filter(|batch| state.servers[at].abandoned.contains(*batch));
            actions.extend(batches.map(|batch| Action::ExecuteAbandoned { server: at, batch }));
        }
        for process in 0..state.processes.len() {
            let steps =
                [Action::Send, Action::Execute, Action::Check, Action::Receive, Action::Cut];
            actions.extend(steps.map(|step| step(process)));
            actions.extend([Action::Watch(process), Action::Close(process)]);
            actions.extend((0..state.servers.len()).map(|server| Action::Open { process, server }));
        }
        actions.extend([Action::Freeze, Action::Restart, Action::Promote]);
        actions.extend([Action::Reload, Action::Hear, Action::Forget]);
        actions.extend([Action::Rejoin(OLD), Action::Rejoin(THIRD), Action::Pass]);
    }

    fn next_state(&self, last: &Installation, action: Action) -> Option<Installation> {
        let mut state = *last;
        let next = &mut state;
        match action {
            Action::Open { process, server } => self.open(next, process, server),
            Action::Send(process) => self.send(next, process),
            Action::Execute(process) => self.execute(next, process),
            Action::ExecuteAbandoned { server, batch } => {
                self.execute_abandoned(next, server, batch)
            }
            Action::Replicate(standby) => Self::replicate(next, standby),
            Action::Commit(server) => Self::commit(next, server),
            Action::Check(process) => self.check(next, process),
            Action::Receive(process) => self.receive(next, process),
            Action::Cut(process) => self.cut(next, process),
            Action::Watch(process) => Self::watch(next, process),
            Action::Close(process) => self.close(next, process),
            Action::Freeze => self.freeze(next),
            Action::Restart => self.restart(next),
            Action::Reload => self.reload(next),
            Action::Hear => Self::hear(next),
            Action::Forget => Self::forget(next),
            Action::Promote => self.promote(next),
            Action::Rejoin(server) => self.rejoin(next, server),
            Action::Pass => Self::pass(next),
        }?;
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(LOST, |_, state: &Installation| {
                state.acknowledged.are_in(state.newest())
            }),
            // A read may show rows that were committed while the settings were wrong.
            Property::always(TAKEN_BACK, |model: &Self, state: &Installation| {
                model.kinds.contains(&Fault::Reload) || state.shown.are_in(state.newest())
            }),
            Property::always(TWICE, |_, state: &Installation| {
                !state.servers.iter().any(|server| server.log.has_doubles())
            }),
            Property::always(STALE, |_, state: &Installation| !state.has_stale_read),
            Property::always(FORK, |_, state: &Installation| !state.has_silent_fork),
            Property::sometimes(SUCCESS, |model: &Self, state: &Installation| {
                let is_done = |at: usize| state.processes[at].jobs == model.jobs[at].len();
                state.promotion == Promotion::Past && is_done(0) && is_done(1)
            }),
        ]
    }
}

const LOST: &str = "no acknowledged batch is lost";
const TAKEN_BACK: &str = "no row that a read showed is taken back";
const TWICE: &str = "no batch is stored twice";
const STALE: &str = "reads have all that was acknowledged before them";
const FORK: &str = "a reader notices that the history forked";
const SUCCESS: &str = "all jobs end, under the new primary";
