//! Failures of calls, as a test wants them.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

/// Failures that are wanted. Calls are counted from 0.
#[derive(Clone, Debug, Default)]
pub(crate) enum Fault {
    #[default]
    None,
    /// These calls.
    Calls { calls: Range<u64>, errno: c_int },
    /// Whatever takes space during these calls; a write that fits in part is cut short.
    Full { calls: Range<u64> },
    /// Nothing fails, and the process dies as soon as it has made this call.
    Death { call: u64 },
    /// Nothing fails, and the process stops as soon as it has made this call, to be killed so.
    Stop { call: u64 },
    /// As [`Self::Stop`]; if the call is a write, it is made in part.
    Torn { call: u64 },
    /// This call, if it is a write, is made in part, and the next one finds no space.
    Short { call: u64 },
    /// These syncs, counted by themselves.
    Syncs { syncs: Range<u64>, errno: c_int },
    /// Nothing fails, and the thread that records waits before it makes this call, or once it has
    /// made it, until `others` have done what they can meanwhile.
    Pause { call: u64, is_after: bool, others: Others },
}

/// Work of other threads.
#[derive(Clone)]
pub(crate) struct Others(pub(crate) Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Others {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Others")
    }
}

/// Exit code of a process that died.
pub(crate) const DIED: i32 = 86;
/// Exit code of a process one of whose calls failed.
pub(crate) const FAILED: i32 = 87;
