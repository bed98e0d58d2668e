//! Faults of the machine, of files and of the embedding program, but never of a client's input.
//!
//! Bad input is a value of [`crate::model::fault::BatchRefusal`], not an [`Error`].

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Result of an engine operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A fault of the machine, of the files or of the caller's set-up.
#[derive(Debug)]
pub enum Error {
    /// Stored bytes are not the bytes that this program wrote: they are damaged, foreign, or opened
    /// with another key.
    Corrupt {
        /// The thing that was read, in words of `docs/format.md`.
        what: &'static str,
    },
    /// A record is not the record that was last written in its place, or is from a build before
    /// 0.3.0.
    Foreign {
        /// The record or its store, and the fault.
        what: String,
    },
    /// The operating system refused an operation on a file.
    Io {
        /// The operation and its object in words.
        what: String,
        /// The answer of the operating system.
        source: std::io::Error,
    },
    /// LMDB refused an operation for another reason than a full disk.
    Database {
        /// The operation in words.
        what: &'static str,
        /// The answer of LMDB.
        message: String,
    },
    /// Compaction removed the data before it was read, so the read must start again. A caller of a
    /// plane sees this error only if compaction outran the read many times.
    Stale,
    /// No space is left on the device. The write had no effect, and may be tried again later.
    DiskFull,
    /// A commit failed and left the durability of earlier pages in doubt. The plane refuses writes
    /// until it is opened again.
    Poisoned,
    /// The handle was opened in another process. A forked process must open its own handle.
    Forked,
    /// The handle was closed.
    Closed,
    /// Batches that were acknowledged before they were durable (asynchronous mode) are lost.
    Lost {
        /// Number of the lost records.
        rows: u64,
        /// The fault that prevented storing the records.
        cause: Box<Error>,
    },
    /// Rows that must be stored together exceed the limits of a block.
    TooLarge {
        /// `rows`, `values` or `bytes of text`.
        what: &'static str,
        /// Number of rows, values or bytes.
        count: usize,
        /// Maximum number in a block.
        max: usize,
    },
    /// The engine that keeps the store cannot be reached or refuses. The store did not change, the
    /// handle stays usable, and the call may be made again later.
    Unavailable {
        /// The engine, the operation and its answer in words.
        what: String,
    },
    /// The engine that keeps the store got a change and did not answer. The change may be stored
    /// now or later, or not at all. The handle stays usable.
    Unknown {
        /// The engine, the operation and the fault in words.
        what: String,
    },
    /// Another compactor has taken over, because the lease of this compactor expired before its
    /// work was done.
    Overtaken,
    /// A new store cannot be created because something exists at this path.
    Exists(String),
    /// No store exists at this path.
    Missing(String),
    /// A bug: the call panicked. The state is as after a crash at that moment.
    Internal {
        /// Message of the panic.
        message: String,
    },
    /// A setting or argument of the embedding program is out of its range.
    Invalid {
        /// The fault, and the values that are allowed.
        message: String,
    },
}

impl Error {
    /// Returns [`Error::Io`] for an operation on `path`, or [`Error::DiskFull`] if no space is
    /// left.
    #[must_use]
    pub fn io(operation: &str, path: &std::path::Path, source: std::io::Error) -> Self {
        if is_disk_full(&source) {
            return Self::DiskFull;
        }
        Self::Io { what: format!("{operation} {}", path.display()), source }
    }

    /// Returns [`Error::Exists`] for `path`.
    #[must_use]
    pub fn exists(path: &std::path::Path) -> Self {
        Self::Exists(path.display().to_string())
    }

    /// Returns [`Error::Missing`] for `path`.
    #[must_use]
    pub fn missing(path: &std::path::Path) -> Self {
        Self::Missing(path.display().to_string())
    }

    /// Returns [`Error::Foreign`] for stored bytes of `version`, which only builds before 0.3.0
    /// wrote.
    #[must_use]
    pub fn too_old(what: &str, version: u32) -> Self {
        let advice = "0.3.0 reads and exports it";
        let what = format!("{what} has version {version}, of a build before 0.3.0: {advice}");
        Self::Foreign { what }
    }

    /// Returns a copy of the error for another caller that waited for the same commit or
    /// connection.
    #[must_use]
    pub fn for_each_waiter(&self) -> Self {
        match self {
            Self::Corrupt { what } => Self::Corrupt { what },
            Self::Stale => Self::Stale,
            Self::DiskFull => Self::DiskFull,
            Self::Invalid { message } => Self::Invalid { message: message.clone() },
            Self::Unavailable { what } => Self::Unavailable { what: what.clone() },
            Self::Unknown { what } => Self::Unknown { what: what.clone() },
            Self::Missing(what) => Self::Missing(what.clone()),
            Self::Forked => Self::Forked,
            Self::Closed => Self::Closed,
            Self::Database { what, message } => Self::Database { what, message: message.clone() },
            Self::Io { what, source } => {
                let source = source.raw_os_error().map_or_else(
                    || std::io::Error::from(source.kind()),
                    std::io::Error::from_raw_os_error,
                );
                Self::Io { what: what.clone(), source }
            }
            _ => Self::Poisoned,
        }
    }
}

/// Runs `work`. A panic in `work` becomes [`Error::Internal`], so that a bug ends only one call.
///
/// Example: `catching(|| panic!("boom"))` returns [`Error::Internal`] with the message `boom`.
///
/// # Errors
/// Returns the errors of `work`, or [`Error::Internal`] if `work` panics.
pub fn catching<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    // A panic may poison locks. Code that takes over a poisoned lock does so only if the guarded
    // value is sound.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::Internal { message: text.unwrap_or("no message").to_owned() })
    })
}

/// Returns true if a device, a quota or a file size limit has no room left.
pub(crate) fn is_disk_full(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt { what } => {
                write!(f, "{what} is damaged or was written with another key")
            }
            Self::Io { what, source } => {
                let text = source.to_string();
                // The words already say all that the number says.
                let words = text.split(" (os error").next().unwrap_or(&text);
                write!(f, "could not {what}: {words}")
            }
            Self::Database { what, message } => write!(f, "could not {what}: {message}"),
            Self::Stale => write!(f, "the store was compacted faster than it could be read"),
            Self::DiskFull => write!(f, "no space is left on the device"),
            Self::Poisoned => write!(f, "an earlier commit failed; the store must be opened anew"),
            Self::Forked => {
                write!(f, "the store was opened before a fork; open it in this process")
            }
            Self::Closed => write!(f, "the store is closed"),
            Self::Lost { rows, cause } => {
                write!(f, "{rows} acknowledged records are lost: {cause}")
            }
            Self::TooLarge { what, count, max } => {
                write!(f, "{count} {what} in a block, which holds {max}: send smaller batches")
            }
            Self::Unavailable { what } => write!(f, "{what}; nothing was changed"),
            Self::Unknown { what } => write!(f, "{what}; what was sent may be stored"),
            Self::Overtaken => write!(f, "another process has taken over the compaction"),
            Self::Exists(what) => write!(f, "{what} already exists"),
            Self::Missing(what) => write!(f, "{what} does not exist"),
            Self::Internal { message } => {
                write!(f, "internal fault in the engine, please report it: {message}")
            }
            Self::Foreign { what: message } | Self::Invalid { message } => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_the_system_are_told_in_its_words_without_their_number() {
        let error = Error::io("open", "/a".as_ref(), std::io::Error::from_raw_os_error(13));
        assert_eq!(error.to_string(), "could not open /a: Permission denied");
    }

    #[test]
    fn a_bug_ends_one_call_and_says_so() {
        let values = [1, 2];
        let at = std::hint::black_box(2);
        let internal = |outcome| match outcome {
            Err(Error::Internal { message }) => message,
            other => panic!("{other:?}"),
        };
        let formatted = internal(catching(|| Ok(values[at])));
        assert_eq!(formatted, "index out of bounds: the len is 2 but the index is 2");
        assert_eq!(internal(catching(|| panic!("as it is"))), "as it is");
        assert!(matches!(catching(|| Ok(1)), Ok(1)));
        assert!(matches!(catching(|| Err::<(), _>(Error::Stale)), Err(Error::Stale)));
    }
}
