//! Requests that fail: the contract refuses them, or the machine failed.

use crate::model::error::Error;
use crate::model::fault::BatchRefusal;
use crate::query::QueryRefusal;

/// Why a request failed.
#[derive(Debug)]
pub enum Failure<R> {
    /// The contract refuses the request.
    Refused(R),
    /// The machine failed.
    Failed(Error),
}

/// Why a batch was not stored.
pub type WriteError = Failure<BatchRefusal>;

/// Why a read is not answered.
pub type ReadError = Failure<QueryRefusal>;

impl<R> Failure<R> {
    /// The same, with a refusal of another kind.
    pub fn refused_as<Q: From<R>>(self) -> Failure<Q> {
        match self {
            Self::Refused(refusal) => Failure::Refused(refusal.into()),
            Self::Failed(error) => Failure::Failed(error),
        }
    }
}

impl From<BatchRefusal> for WriteError {
    fn from(refusal: BatchRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<QueryRefusal> for ReadError {
    fn from(refusal: QueryRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<R> From<Error> for Failure<R> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
