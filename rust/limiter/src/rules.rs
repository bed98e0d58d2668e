//! The numbers by which clients are refused.

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// The span over which the rate is counted.
pub(crate) const RATE_WINDOW_NS: u64 = 60 * SECOND_NS;

/// Limits of rate and lockout. A limit of 0 is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Requests admitted in any 60 s.
    pub requests_per_minute: u32,
    /// Failures within the window that lock a client out.
    pub lockout_failures: u32,
    /// The window: the first and the last of these failures lie less than this apart, seconds.
    pub lockout_window_seconds: u32,
    /// Duration of a lockout, seconds.
    pub lockout_seconds: u32,
}
