//! Answers of the database as the engine's errors. None of them repeats an address, which may hold a
//! password.

use std::error::Error as _;

use fleetcast_core::model::error::Error;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::WrongType;

/// Failure of a statement.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database refused it: nothing of it took effect.
    Refused(Error),
    /// A row of it is there already.
    Duplicate,
    /// No partition of the log takes its rows.
    NoPartition,
    /// The answer did not come: it may have taken effect.
    Lost(String),
}

impl Failure {
    /// The error of a statement that changes nothing, or whose loss changes nothing.
    pub(crate) fn of_read(self, what: &'static str) -> Error {
        match self {
            Self::Refused(error) => error,
            Self::Duplicate | Self::NoPartition => refused(what, "rows that it does not take"),
            Self::Lost(cause) => unavailable(what, &cause),
        }
    }

    /// The error of a statement that changes something.
    pub(crate) fn of_change(self, what: &'static str) -> Error {
        match self {
            Self::Lost(cause) => unknown(what, &cause),
            other => other.of_read(what),
        }
    }
}

/// The database cannot be used now, and nothing happened.
pub(crate) fn unavailable(what: &'static str, cause: &str) -> Error {
    Error::Unavailable { what: format!("PostgreSQL cannot {what}: {cause}") }
}

/// The answer of the database did not come.
pub(crate) fn unknown(what: &'static str, cause: &str) -> Error {
    Error::Unknown { what: format!("PostgreSQL did not answer when it was to {what}: {cause}") }
}

/// The database answered with an error that no repetition mends.
pub(crate) fn refused(what: &'static str, message: &str) -> Error {
    Error::Unavailable { what: format!("PostgreSQL refused to {what}: {message}") }
}

/// Failure of the statement that `error` answers.
pub(crate) fn of(what: &'static str, error: &tokio_postgres::Error) -> Failure {
    let Some(answer) = error.as_db_error() else {
        // Nothing was sent.
        if error.source().is_some_and(<dyn std::error::Error>::is::<WrongType>) {
            return Failure::Refused(Error::Internal { message: error.to_string() });
        }
        return Failure::Lost(cause_of(error));
    };
    let is_end = matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    // A session that ends while its commit waits for standbys has committed.
    if is_end || answer.code().code().starts_with("57P") {
        return Failure::Lost(answer.message().to_owned());
    }
    match *answer.code() {
        SqlState::UNIQUE_VIOLATION => Failure::Duplicate,
        // No constraint was violated, and the row of none is meant.
        SqlState::CHECK_VIOLATION if answer.constraint().is_none() => Failure::NoPartition,
        SqlState::DISK_FULL => Failure::Refused(Error::DiskFull),
        _ => Failure::Refused(refused(what, answer.message())),
    }
}

/// The innermost cause, which says more than what wraps it.
fn cause_of(error: &tokio_postgres::Error) -> String {
    let Some(mut cause) = error.source() else { return error.to_string() };
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
