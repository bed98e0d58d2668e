//! Why a write failed: the contract refuses the batch, or the machine failed.

use crate::model::error::Error;
use crate::model::fault::Refusal;

/// Why nothing of a batch was stored.
#[derive(Debug)]
pub enum WriteError {
    /// The contract refuses it.
    Refused(Refusal),
    /// The machine failed.
    Failed(Error),
}

impl From<Refusal> for WriteError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

pub(super) type WriteResult<T> = Result<T, WriteError>;
