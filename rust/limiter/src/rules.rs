//! The limits of rate and lockout.

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Nanoseconds over which the rate is counted.
pub(crate) const RATE_WINDOW_NS: u64 = 60 * SECOND_NS;

/// Limits of rate and lockout. A limit of 0 is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimiterRules {
    /// Most requests admitted in any 60 s.
    pub requests_per_minute: u32,
    /// Failures within the window that lock a client out.
    pub lockout_failures: u32,
    /// The window in seconds: the first and the last of these failures lie less than this apart.
    pub lockout_window_seconds: u32,
    /// Duration of a lockout in seconds.
    pub lockout_seconds: u32,
}
