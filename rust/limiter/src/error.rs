//! The ways in which a count can fail.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Result of an operation of the limiter.
pub type LimiterResult<T> = std::result::Result<T, LimiterError>;

/// A fault of the operating system or of the embedding program.
#[derive(Debug)]
pub enum LimiterError {
    /// The operating system refused an operation on the file.
    Io {
        /// The operation in words, before its object.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The answer of the operating system.
        source: io::Error,
    },
    /// The handle was opened in another process. A fork must open another handle.
    Forked,
}

impl LimiterError {
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { operation, path: path.to_owned(), source }
    }
}

impl fmt::Display for LimiterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { operation, path, source } => {
                write!(f, "could not {operation} {}: {source}", path.display())
            }
            Self::Forked => {
                write!(f, "the limiter was opened before a fork; open it in this process")
            }
        }
    }
}

impl std::error::Error for LimiterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Forked => None,
        }
    }
}
