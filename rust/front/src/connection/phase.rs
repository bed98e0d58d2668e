//! Activities of a connection.

use std::time::Instant;

use crate::limits::ConnectionLimits;

/// Activity of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// No request is under way.
    Idle,
    /// A head has begun.
    Head,
    /// A body that is wanted is being received.
    Body,
    /// A request waits for a thread, or is with one.
    Busy,
    /// An answer is being sent.
    Send,
    /// Input that nobody reads comes before the next request.
    Skip,
    /// Input that nobody reads comes before the end.
    Linger,
}

impl Phase {
    /// True where the connection may be closed to make room for another one.
    pub(crate) fn is_interruptible(self) -> bool {
        !matches!(self, Self::Busy | Self::Send)
    }

    /// Instant at which a worker that stopped at `stopped_at` waits no longer.
    pub(crate) fn stop_deadline(
        self,
        stopped_at: Option<Instant>,
        limits: &ConnectionLimits,
    ) -> Option<Instant> {
        let patience = match self {
            Self::Idle => limits.stop_idle,
            Self::Head | Self::Body => limits.stop_request,
            _ => return None,
        };
        Some(stopped_at? + patience)
    }
}
