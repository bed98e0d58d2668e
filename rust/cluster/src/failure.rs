//! Answers of the database as the engine's errors. No error repeats an address, which may hold a
//! password.

use std::error::Error as _;

use fleetcast_core::model::error::Error;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::WrongType;

/// Failure of a statement.
#[derive(Debug)]
pub(crate) enum StatementFailure {
    /// The database refused the statement, which had no effect.
    Refused(Error),
    /// A row of the statement exists already.
    Duplicate,
    /// No partition of the log accepts the rows.
    NoPartition,
    /// The answer did not arrive; the statement may have taken effect.
    Lost(String),
}

impl StatementFailure {
    /// Returns the error of a statement that changes no data, or whose loss changes no data.
    pub(crate) fn of_read(self, what: &'static str) -> Error {
        match self {
            Self::Refused(error) => error,
            Self::Duplicate | Self::NoPartition => refused(what, "rows that it does not take"),
            Self::Lost(cause) => unavailable(what, &cause),
        }
    }

    /// Returns the error of a statement that changes data.
    pub(crate) fn of_change(self, what: &'static str) -> Error {
        match self {
            Self::Lost(cause) => unknown(what, &cause),
            other => other.of_read(what),
        }
    }
}

/// The database cannot be used now, and the statement had no effect.
pub(crate) fn unavailable(what: &'static str, cause: &str) -> Error {
    Error::Unavailable { what: format!("PostgreSQL cannot {what}: {cause}") }
}

/// The answer of the database did not arrive.
pub(crate) fn unknown(what: &'static str, cause: &str) -> Error {
    Error::Unknown { what: format!("PostgreSQL did not answer when it was to {what}: {cause}") }
}

/// The database answered with an error that a repetition does not cure.
pub(crate) fn refused(what: &'static str, message: &str) -> Error {
    Error::Unavailable { what: format!("PostgreSQL refused to {what}: {message}") }
}

/// Returns the failure of the statement that `error` answers.
pub(crate) fn of(what: &'static str, error: &tokio_postgres::Error) -> StatementFailure {
    let Some(answer) = error.as_db_error() else {
        // The statement was not sent.
        if error.source().is_some_and(<dyn std::error::Error>::is::<WrongType>) {
            return StatementFailure::Refused(Error::Internal { message: error.to_string() });
        }
        return StatementFailure::Lost(cause_of(error));
    };
    let is_end = matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    // A session that ends while its commit waits for standbys has committed.
    if is_end || answer.code().code().starts_with("57P") {
        return StatementFailure::Lost(answer.message().to_owned());
    }
    match *answer.code() {
        SqlState::UNIQUE_VIOLATION => StatementFailure::Duplicate,
        // A check violation without a constraint's name means that no partition fits the row.
        SqlState::CHECK_VIOLATION if answer.constraint().is_none() => StatementFailure::NoPartition,
        SqlState::DISK_FULL => StatementFailure::Refused(Error::DiskFull),
        _ => StatementFailure::Refused(refused(what, answer.message())),
    }
}

/// Returns the innermost cause, which says more than the errors around it.
fn cause_of(error: &tokio_postgres::Error) -> String {
    let Some(mut cause) = error.source() else { return error.to_string() };
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
