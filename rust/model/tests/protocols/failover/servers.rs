//! Steps of the servers, and faults. Each returns `None` if it cannot happen in the state that it
//! is given.

use super::log::Batch;
use super::state::{
    Commit, HEIR, Installation, Job, OLD, Outcome, Promotion, Role, Server, Step, TIMELINES,
};
use super::{Failover, Fault, Flaw};

impl Failover {
    /// The primary does the statement of a process.
    pub(super) fn execute(&self, state: &mut Installation, process: usize) -> Option<()> {
        let own = state.processes[process];
        let at = own.session?;
        if own.step != Step::Sent || state.servers[at].is_frozen {
            return None;
        }
        let step = match self.jobs[process][own.jobs] {
            Job::Read => Step::Done(Outcome::View(state.servers[at].log)),
            Job::Append(batch) => self.append(&mut state.servers[at], batch, Some(process))?,
        };
        state.processes[process].step = step;
        Some(())
    }

    /// The primary does a statement whose session has ended.
    pub(super) fn execute_abandoned(
        &self,
        state: &mut Installation,
        at: usize,
        batch: Batch,
    ) -> Option<()> {
        let server = &mut state.servers[at];
        if server.is_frozen || !server.abandoned.contains(batch) {
            return None;
        }
        self.append(server, batch, None)?;
        server.abandoned.remove(batch);
        Some(())
    }

    /// `APPEND`, and `ClusterStore::find` if the ids of its blocks are there.
    fn append(&self, server: &mut Server, batch: Batch, process: Option<usize>) -> Option<Step> {
        // A commit holds the lock of the head's row until a standby has it.
        server.commit.is_none().then_some(())?;
        if !server.settings.are_good {
            // The statement asks for the standbys itself.
            return Some(Step::Done(Outcome::Refused));
        }
        let is_stored = server.log.contains(batch) && self.flaw != Some(Flaw::NewIds);
        if is_stored && self.flaw == Some(Flaw::DuplicateIsProof) {
            return Some(Step::Done(Outcome::Stored));
        }
        let batch = (!is_stored).then_some(batch);
        server.commit = Some(Commit { batch, process, is_copied: false });
        Some(Step::Waiting)
    }

    /// A standby gets all that its primary has, shown or not.
    pub(super) fn replicate(state: &mut Installation, standby: usize) -> Option<()> {
        let Role::Standby { of } = state.servers[standby].role else { return None };
        let primary = &mut state.servers[of];
        let is_new = primary.commit.is_some_and(|commit| !commit.is_copied);
        let log = primary.written();
        primary.commit.iter_mut().for_each(|commit| commit.is_copied = true);
        let is_idle = state.servers[of].is_frozen || (state.servers[standby].log == log && !is_new);
        state.servers[standby].log = log;
        (!is_idle).then_some(())
    }

    /// The wait for a standby ends, also if a reload took the standbys away. The rows are visible.
    pub(super) fn commit(state: &mut Installation, at: usize) -> Option<()> {
        let server = &mut state.servers[at];
        let commit = server.commit?;
        if server.is_frozen || (server.settings.are_heard && !commit.is_copied) {
            return None;
        }
        (server.log, server.commit) = (server.written(), None);
        if let Some(process) = commit.process {
            state.processes[process].step = Step::Done(Outcome::Stored);
        }
        Some(())
    }

    /// The server answers `KEEPS_PROMISES`, which was sent behind the statement.
    pub(super) fn check(&self, state: &mut Installation, process: usize) -> Option<()> {
        let own = state.processes[process];
        let at = own.session?;
        let server = &state.servers[at];
        let Step::Done(outcome) = own.step else { return None };
        let keeps_promises =
            server.settings.are_good || self.flaw == Some(Flaw::SettingsAtConnectOnly);
        let is_checked =
            !matches!(self.flaw, Some(Flaw::SettingsAtConnectOnly | Flaw::ReloadIgnored));
        let is_asked = keeps_promises && server.settings.is_reloaded && is_checked;
        if outcome == Outcome::Stored && is_asked {
            // `Session::replicated` asks the standbys.
            let has_copy = |other: &Server| {
                other.role == Role::Standby { of: at } && other.log.starts_with(server.log)
            };
            state.servers.iter().any(has_copy).then_some(())?;
        }
        (!server.is_frozen).then_some(())?;
        state.processes[process].step = Step::Answered { outcome, keeps_promises };
        Some(())
    }

    /// Freezes the old primary, or wakes it up.
    pub(super) fn freeze(&self, state: &mut Installation) -> Option<()> {
        if !state.servers[OLD].is_frozen {
            self.begin(state, Fault::Freeze)?;
        }
        state.servers[OLD].is_frozen ^= true;
        Some(())
    }

    /// The old primary crashes and starts again, alone: it shows rows that no standby has.
    pub(super) fn restart(&self, state: &mut Installation) -> Option<()> {
        (state.servers[OLD].timeline() > 0).then_some(())?;
        self.begin(state, Fault::Restart)?;
        self.end_sessions(state, OLD);
        let server = &mut state.servers[OLD];
        *server = Server::new(server.role, server.written());
        Some(())
    }

    /// A reload takes the standbys away, or gives them back, perhaps within one statement.
    pub(super) fn reload(&self, state: &mut Installation) -> Option<()> {
        (state.servers[OLD].timeline() > 0).then_some(())?;
        if state.servers[OLD].settings.are_good {
            self.begin(state, Fault::Reload)?;
        }
        let settings = &mut state.servers[OLD].settings;
        (settings.are_good, settings.is_reloaded) = (!settings.are_good, true);
        Some(())
    }

    /// A minute has passed since the last reload. No statement takes as long.
    pub(super) fn forget(state: &mut Installation) -> Option<()> {
        let is_done = state.processes.iter().all(|process| process.step == Step::Ready);
        let settings = &mut state.servers[OLD].settings;
        let is_heard = settings.are_heard == settings.are_good;
        (settings.is_reloaded && is_heard && is_done).then(|| settings.is_reloaded = false)
    }

    /// The checkpointer hears of a reload.
    pub(super) fn hear(state: &mut Installation) -> Option<()> {
        let settings = &mut state.servers[OLD].settings;
        (settings.are_heard != settings.are_good).then(|| settings.are_heard = settings.are_good)
    }

    /// The cluster manager promotes the standby that has most, if the primary lives or not.
    pub(super) fn promote(&self, state: &mut Installation) -> Option<()> {
        let [_, heir, third] = &state.servers;
        (state.promotion == Promotion::No && heir.log.count() >= third.log.count()).then_some(())?;
        self.kinds.contains(&Fault::Promote).then_some(())?;
        state.servers[HEIR].role = Role::Primary { timeline: TIMELINES[1] };
        state.promotion = Promotion::Recent;
        Some(())
    }

    /// A server becomes a standby of the new primary, from a new base backup.
    pub(super) fn rejoin(&self, state: &mut Installation, at: usize) -> Option<()> {
        let role = Role::Standby { of: HEIR };
        (state.promotion != Promotion::No && state.servers[at].role != role).then_some(())?;
        self.end_sessions(state, at);
        state.servers[at] = Server::new(role, state.servers[HEIR].log);
        Some(())
    }

    fn end_sessions(&self, state: &mut Installation, at: usize) {
        for process in 0..state.processes.len() {
            if state.processes[process].session == Some(at) {
                self.lose(state, process).expect("it has a session");
            }
        }
    }

    fn begin(&self, state: &mut Installation, fault: Fault) -> Option<()> {
        self.kinds.contains(&fault).then_some(())?;
        state.faults = state.faults.checked_sub(1)?;
        Some(())
    }
}
