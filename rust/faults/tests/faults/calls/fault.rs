//! Failures of calls that a test asks for.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

/// Failures of calls. Calls are counted from 0.
#[derive(Clone, Debug, Default)]
pub(crate) enum Fault {
    #[default]
    None,
    /// The calls with these numbers fail.
    Calls { calls: Range<u64>, errno: c_int },
    /// During these calls, a call that takes space fails. A write that fits in part is cut short.
    Full { calls: Range<u64> },
    /// No call fails. The process dies as soon as it has made this call.
    Death { call: u64 },
    /// No call fails. The process stops as soon as it has made this call, and is then killed.
    Stop { call: u64 },
    /// Stops as [`Self::Stop`] does. If the call is a write, only a part is written.
    Torn { call: u64 },
    /// If this call is a write, only a part is written, and the next call finds no space.
    Short { call: u64 },
    /// The syncs with these numbers fail. Syncs are counted separately.
    Syncs { syncs: Range<u64>, errno: c_int },
    /// The recording thread waits before or after this call, until `others` have
    /// done as much as they can. After the wait, the call fails with `errno` if it is a sync.
    Pause { call: u64, is_after: bool, others: Others, errno: Option<c_int> },
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
/// Exit code of a process in which a call failed.
pub(crate) const FAILED: i32 = 87;
