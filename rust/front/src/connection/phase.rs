//! Phases of a connection.

use std::time::Instant;

use crate::limits::ConnectionLimits;

/// The present activity of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// No request is under way.
    Idle,
    /// A head has begun.
    Head,
    /// The body is being received because the request needs it.
    Body,
    /// A request waits for a thread, or is with one.
    Busy,
    /// An answer is being sent.
    Send,
    /// Unread input is discarded before the next request.
    Skip,
    /// Unread input is discarded before the connection is closed.
    Linger,
}

impl Phase {
    /// Returns true if the connection may be closed to make room for another connection.
    pub(crate) fn is_interruptible(self) -> bool {
        !matches!(self, Self::Busy | Self::Send)
    }

    /// Returns the instant at which a worker that stopped at `stopped_at` closes the connection
    /// anyway.
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
