//! Steps of processes. Each returns `None` if it cannot happen in the state that it is given.

use super::log::{Batches, Log};
use super::state::{HEIR, Installation, Job, Outcome, Promotion, Role, Step};
use super::{Failover, Flaw};

impl Failover {
    /// `Session::open`: asks all hosts, compares timelines and settings, and waits for the commit of
    /// `Session::barrier`. Other hosts may not have answered.
    pub(super) fn open(&self, state: &mut Installation, process: usize, at: usize) -> Option<()> {
        let (server, own) = (&state.servers[at], &state.processes[process]);
        let timeline = server.timeline();
        let is_wanted = own.session.is_none() && own.jobs < self.jobs[process].len();
        let is_good = !server.is_frozen && timeline > 0 && server.settings.are_good;
        if !is_wanted || !is_good || timeline < own.seen {
            return None;
        }
        let has_copy = state
            .servers
            .iter()
            .any(|other| other.role == Role::Standby { of: at } && other.log == server.written());
        (has_copy || self.flaw == Some(Flaw::NoBarrier)).then_some(())?;
        let own = &mut state.processes[process];
        (own.session, own.seen) = (Some(at), timeline);
        Some(())
    }

    /// `CommitParameters::send` and `ClusterStore::news`, over `Session::query`. `Pool::own` and
    /// `Pool::shared` give no session of an older timeline (`Session::is_alive`).
    pub(super) fn send(&self, state: &mut Installation, process: usize) -> Option<()> {
        let own = &state.processes[process];
        let job = self.jobs[process].get(own.jobs)?;
        if own.step != Step::Ready || own.session.is_none() || self.is_replaced(state, process) {
            return None;
        }
        let expected = if *job == Job::Read { state.acknowledged } else { Batches::default() };
        let own = &mut state.processes[process];
        (own.step, own.expected) = (Step::Sent, expected);
        Some(())
    }

    /// `Session::in_good_standing` gets both answers. The session and its answer count only if the
    /// settings keep the promises and the process knows of no newer timeline.
    pub(super) fn receive(&self, state: &mut Installation, process: usize) -> Option<()> {
        let own = &state.processes[process];
        let at = own.session?;
        let Step::Answered { outcome, keeps_promises } = own.step else { return None };
        if !keeps_promises || self.is_replaced(state, process) {
            return self.lose(state, process);
        }
        match (outcome, self.jobs[process][own.jobs]) {
            (Outcome::Stored, Job::Append(batch)) if state.is_promised(at) => {
                state.acknowledged.add(batch);
            }
            (Outcome::View(log), _) => self.view(state, process, at, log),
            _ => {}
        }
        finish(state, process);
        Some(())
    }

    /// `ShownState::continues`: the entry that was shown last is still at its place. The first read
    /// under a newer timeline asks the same of each entry (`ClusterStore::proven`). If not, the history
    /// forked, and the process reads the store again.
    fn view(&self, state: &mut Installation, process: usize, at: usize, log: Log) {
        let is_promised = state.is_promised(at);
        let timeline = state.servers[at].timeline();
        let own = &mut state.processes[process];
        let is_proven = own.proven == timeline || self.flaw == Some(Flaw::HistoryNotCompared);
        own.proven = timeline;
        let known = own.shown.count().checked_sub(1);
        let is_there = known.is_none_or(|last| log.get(last) == own.shown.get(last))
            && (is_proven || log.starts_with(own.shown));
        if !is_there && self.flaw != Some(Flaw::NoWatermark) {
            own.shown = Log::default();
            return;
        }
        state.has_silent_fork |= !log.starts_with(own.shown);
        own.shown = log;
        if is_promised {
            state.has_stale_read |= !own.expected.are_in(log);
            state.shown.add_all(log);
        }
    }

    /// The connection is cut, or the process has waited long enough (`ClusterStore::store`).
    pub(super) fn cut(&self, state: &mut Installation, process: usize) -> Option<()> {
        (state.processes[process].step != Step::Ready).then_some(())?;
        state.cuts = state.cuts.checked_sub(1)?;
        self.lose(state, process)
    }

    /// Ends the session. The answer is lost: a batch is sent again once, with the same id. The
    /// server may do the statement all the same.
    pub(super) fn lose(&self, state: &mut Installation, process: usize) -> Option<()> {
        let own = &mut state.processes[process];
        let at = own.session.take()?;
        let step = std::mem::replace(&mut own.step, Step::Ready);
        let server = &mut state.servers[at];
        match (step, self.jobs[process].get(own.jobs)) {
            (Step::Sent, Some(Job::Append(batch))) => server.abandoned.add(*batch),
            (Step::Waiting, _) => server.commit.iter_mut().for_each(|commit| commit.process = None),
            _ => {}
        }
        if own.is_repeated {
            finish(state, process);
        } else {
            own.is_repeated = step != Step::Ready;
        }
        Some(())
    }

    /// `watch_host`: asks the other hosts for their timelines.
    pub(super) fn watch(state: &mut Installation, process: usize) -> Option<()> {
        let newest = state.servers[HEIR].timeline();
        let own = &mut state.processes[process];
        (newest > own.seen).then(|| own.seen = newest)
    }

    /// A session of an older timeline that rests is not used again (`Session::is_alive`).
    pub(super) fn close(&self, state: &mut Installation, process: usize) -> Option<()> {
        let is_ready = state.processes[process].step == Step::Ready;
        (is_ready && self.is_replaced(state, process)).then_some(())?;
        self.lose(state, process)
    }

    /// The stated interval has passed: `ROUND` of `watch.rs` and a round trip since the promotion. In
    /// that time each process has asked the new primary.
    pub(super) fn pass(state: &mut Installation) -> Option<()> {
        let newest = state.servers[HEIR].timeline();
        let has_asked = state.processes.iter().all(|process| process.seen >= newest);
        (state.promotion == Promotion::Recent && has_asked)
            .then(|| state.promotion = Promotion::Past)
    }

    /// `Session::is_replaced`.
    fn is_replaced(&self, state: &Installation, process: usize) -> bool {
        let own = &state.processes[process];
        let is_older = own.session.is_some_and(|at| state.servers[at].timeline() < own.seen);
        is_older && self.flaw != Some(Flaw::TimelineAtConnectOnly)
    }
}

/// Ends the job, whatever its outcome is.
fn finish(state: &mut Installation, process: usize) {
    let own = &mut state.processes[process];
    own.jobs += 1;
    (own.step, own.is_repeated, own.expected) = (Step::Ready, false, Batches::default());
}
