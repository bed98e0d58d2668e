//! Answers of the database as the engine's errors. None of them repeats an address, which may hold a
//! password.

use std::error::Error as _;

use fleetcast_core::model::error::Error;
use tokio_postgres::error::SqlState;

/// How a statement failed.
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
    /// The error for a caller to whom nothing was promised yet: of a read, or of a statement that is
    /// not repeated.
    pub(crate) fn of_read(self, what: &'static str) -> Error {
        match self {
            Self::Refused(error) => error,
            Self::Duplicate | Self::NoPartition => refused(what, "rows that are there already"),
            Self::Lost(cause) => unavailable(what, &cause),
        }
    }

    /// The error for a statement that changes something.
    pub(crate) fn of_change(self, what: &'static str) -> Error {
        match self {
            Self::Lost(cause) => unknown(what, &cause),
            other => other.of_read(what),
        }
    }
}

/// The database cannot be used now, and nothing happened.
pub(crate) fn unavailable(what: &'static str, cause: &str) -> Error {
    Error::Database { what, message: format!("PostgreSQL is unavailable: {cause}") }
}

/// The answer of the database did not come.
pub(crate) fn unknown(what: &'static str, cause: &str) -> Error {
    let message = format!("PostgreSQL did not answer, it may be stored: {cause}");
    Error::Database { what, message }
}

/// The database answered with an error that no repetition mends.
pub(crate) fn refused(what: &'static str, message: &str) -> Error {
    Error::Database { what, message: format!("PostgreSQL refused it: {message}") }
}

/// How `error` leaves the statement that it answers.
pub(crate) fn of(what: &'static str, error: &tokio_postgres::Error) -> Failure {
    let Some(answer) = error.as_db_error() else {
        return Failure::Lost(cause_of(error));
    };
    let code = answer.code();
    // A session that ends while its commit waits for standbys has committed.
    if matches!(answer.severity(), "FATAL" | "PANIC") || code.code().starts_with("57P") {
        return Failure::Lost(answer.message().to_owned());
    }
    match *code {
        SqlState::UNIQUE_VIOLATION => Failure::Duplicate,
        SqlState::CHECK_VIOLATION if answer.constraint().is_none() => Failure::NoPartition,
        SqlState::DISK_FULL => Failure::Refused(Error::DiskFull),
        _ => Failure::Refused(refused(what, answer.message())),
    }
}

/// The innermost cause, which says more than what wraps it.
pub(crate) fn cause_of(error: &tokio_postgres::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if let Some(answer) = error.as_db_error() {
        return answer.message().to_owned();
    }
    if error.source().is_none() { error.to_string() } else { cause.to_string() }
}
