//! Converts errors of LMDB to errors of the engine.

use std::io;
use std::path::Path;

use heed::MdbError;

use crate::model::error::{Error, is_disk_full};

/// Reason to stop a transaction: an error of LMDB, or an error of the engine about the content.
pub(super) enum TxnError {
    Lmdb(heed::Error),
    Engine(Error),
    /// The file is shorter than its head says.
    Short,
}

pub(super) type TxnResult<R> = std::result::Result<R, TxnError>;

impl From<heed::Error> for TxnError {
    fn from(error: heed::Error) -> Self {
        Self::Lmdb(error)
    }
}

impl From<io::Error> for TxnError {
    fn from(error: io::Error) -> Self {
        Self::Lmdb(error.into())
    }
}

impl From<Error> for TxnError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// Converts an error that LMDB returned while doing `what`.
pub(super) fn database_error(what: &'static str, error: heed::Error) -> Error {
    match error {
        heed::Error::Io(source) if is_disk_full(&source) => Error::DiskFull,
        heed::Error::Io(source) => Error::Io { what: what.to_owned(), source },
        heed::Error::Mdb(
            MdbError::Corrupted
            | MdbError::PageNotFound
            | MdbError::Invalid
            | MdbError::VersionMismatch,
        ) => Error::Corrupt { what: "the store's database" },
        heed::Error::Mdb(MdbError::Panic) => Error::Poisoned,
        other => Error::Database { what, message: other.to_string() },
    }
}

/// Converts an error that LMDB returned while opening the environment at `path`.
pub(super) fn open_error(path: &Path, error: heed::Error) -> Error {
    match error {
        heed::Error::Io(source) => Error::io("open", path, source),
        other => database_error("open the store", other),
    }
}
