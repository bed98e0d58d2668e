//! The word that tells a client if a write that failed may be stored.

use fleetcast_core::model::error::Error;

/// Outcome of a write that failed. A client sends a batch again as it is after `Nothing`.
/// After `Unknown`, the same batch may then be stored twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The batch is not stored, and will not be.
    #[default]
    Nothing,
    /// The batch may be stored, now or later.
    Unknown,
}

impl WriteOutcome {
    /// Returns the outcome of a write that failed with this error of its store.
    #[must_use]
    pub fn of_error(error: &Error) -> Self {
        match error {
            Error::DiskFull
            | Error::Unavailable { .. }
            | Error::TooLarge { .. }
            | Error::Missing(_)
            | Error::Invalid { .. }
            | Error::Forked => Self::Nothing,
            // A sync that fails, or a panic, may leave the batch in the log. An error that no append
            // is known to return says nothing.
            Error::Io { .. }
            | Error::Unknown { .. }
            | Error::Poisoned
            | Error::Lost { .. }
            | Error::Internal { .. }
            | Error::Closed
            | Error::Corrupt { .. }
            | Error::Database { .. }
            | Error::Foreign { .. }
            | Error::Overtaken
            | Error::Exists(_)
            | Error::Stale => Self::Unknown,
        }
    }

    /// Returns the value of the header and of the trailer.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o9_a_write_whose_answer_or_sync_is_lost_may_be_stored() {
        let what = || "append".to_owned();
        let word = |error: Error| WriteOutcome::of_error(&error).word();
        assert_eq!(word(Error::Unavailable { what: what() }), "none");
        assert_eq!(word(Error::DiskFull), "none");
        assert_eq!(word(Error::Unknown { what: what() }), "unknown");
        let source = std::io::Error::from_raw_os_error(5);
        assert_eq!(word(Error::Io { what: what(), source }), "unknown");
        assert_eq!(word(Error::Poisoned), "unknown");
        assert_eq!(word(Error::Internal { message: what() }), "unknown");
    }
}
