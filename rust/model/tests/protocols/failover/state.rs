//! Servers of PostgreSQL, and processes of fleetcast that write and read through them.

use super::Failover;
use super::log::{Batch, Batches, Log};

/// The server that is the primary in the first state.
pub(super) const OLD: usize = 0;
/// The standby that may be promoted.
pub(super) const HEIR: usize = 1;
/// The standby that may go on to follow the old primary.
pub(super) const THIRD: usize = 2;

/// Timelines before and after the promotion.
pub(super) const TIMELINES: [u8; 2] = [1, 2];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Primary { timeline: u8 },
    Standby { of: usize },
}

/// A statement, as a process sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Job {
    /// `APPEND` of `rust/cluster/src/store/append.rs`.
    Append(Batch),
    /// `VIEW` of `rust/cluster/src/store/view.rs`.
    Read,
}

/// A commit that waits for a standby. It holds the lock of the head's row, so it is the only commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Commit {
    /// `None` for the commit of `Session::barrier`, which changes no row.
    pub(super) batch: Option<Batch>,
    /// The process that waits for the answer.
    pub(super) process: Option<usize>,
    pub(super) is_copied: bool,
}

/// Settings of a server, which a reload changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Settings {
    /// True if `synchronous_standby_names` is set, and the settings beside it are on.
    pub(super) are_good: bool,
    /// The same as the checkpointer knows it, which hears of a reload before sessions or after them.
    /// If false, commits wait for no standby.
    pub(super) are_heard: bool,
    /// True within a minute after a reload.
    pub(super) is_reloaded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) role: Role,
    pub(super) is_frozen: bool,
    pub(super) settings: Settings,
    /// The log, as a reader sees it here.
    pub(super) log: Log,
    pub(super) commit: Option<Commit>,
    /// Batches in statements that were sent, whose sessions have ended since.
    pub(super) abandoned: Batches,
}

impl Server {
    pub(super) fn new(role: Role, log: Log) -> Self {
        Self {
            role,
            is_frozen: false,
            settings: Settings { are_good: true, are_heard: true, is_reloaded: false },
            log,
            commit: None,
            abandoned: Batches::default(),
        }
    }

    /// Returns the timeline of a primary, or 0 of a standby: `HostFacts::ask`.
    pub(super) fn timeline(&self) -> u8 {
        if let Role::Primary { timeline } = self.role { timeline } else { 0 }
    }

    /// Returns the log with the commit that waits, as standbys get it.
    pub(super) fn written(&self) -> Log {
        let batch = self.commit.and_then(|commit| commit.batch);
        batch.map_or(self.log, |batch| self.log.with(batch))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Outcome {
    Stored,
    /// The statement found its settings gone, and changed no row.
    Refused,
    View(Log),
}

/// The way of a process through a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Ready,
    Sent,
    /// The commit waits for a standby.
    Waiting,
    /// The server has done the statement, and `KEEPS_PROMISES` is behind it.
    Done(Outcome),
    /// Both answers are on their way.
    Answered {
        outcome: Outcome,
        keeps_promises: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    /// `ClusterFacts::timeline`.
    pub(super) seen: u8,
    /// The server of `Session`.
    pub(super) session: Option<usize>,
    /// Count of the jobs that have ended.
    pub(super) jobs: usize,
    pub(super) is_repeated: bool,
    pub(super) step: Step,
    /// Batches that were promised when the read under way began.
    pub(super) expected: Batches,
    /// The log as this process last read it; the last entry is `Watermarks::entry`.
    pub(super) shown: Log,
    /// The timeline under which all of `shown` was found: `ShownEntries::timeline`.
    pub(super) proven: u8,
}

/// The time since the promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Promotion {
    No,
    /// Less than the interval that `docs/scale-out.md` states.
    Recent,
    Past,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Installation {
    pub(super) servers: [Server; 3],
    pub(super) processes: [Process; 2],
    pub(super) promotion: Promotion,
    /// Faults that may still happen.
    pub(super) faults: u8,
    pub(super) cuts: u8,
    /// Batches that were acknowledged outside the stated interval, or by the newest primary.
    pub(super) acknowledged: Batches,
    /// Batches that reads showed under the same condition.
    pub(super) shown: Batches,
    pub(super) has_stale_read: bool,
    pub(super) has_silent_fork: bool,
}

impl Installation {
    pub(super) fn new(model: &Failover) -> Self {
        let process = Process {
            seen: TIMELINES[0],
            session: None,
            jobs: 0,
            is_repeated: false,
            step: Step::Ready,
            expected: Batches::default(),
            shown: Log::default(),
            proven: TIMELINES[0],
        };
        let standby = Server::new(Role::Standby { of: OLD }, Log::default());
        let primary = Server::new(Role::Primary { timeline: TIMELINES[0] }, Log::default());
        Self {
            servers: [primary, standby, standby],
            processes: [process; 2],
            promotion: Promotion::No,
            faults: model.faults,
            cuts: model.cuts,
            acknowledged: Batches::default(),
            shown: Batches::default(),
            has_stale_read: false,
            has_silent_fork: false,
        }
    }

    fn newest_timeline(&self) -> u8 {
        let [old, heir, third] = &self.servers;
        old.timeline().max(heir.timeline()).max(third.timeline())
    }

    /// Returns the log of the primary with the newest timeline.
    pub(super) fn newest(&self) -> Log {
        self.servers[if self.promotion == Promotion::No { OLD } else { HEIR }].log
    }

    /// Returns true if the documents promise that an answer of this server holds.
    pub(super) fn is_promised(&self, server: usize) -> bool {
        self.promotion != Promotion::Recent
            || self.servers[server].timeline() == self.newest_timeline()
    }
}
