//! Answers of the object store, in time and as the engine's errors.

use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// Time for an answer that a request waits for, which is told within two seconds.
pub(super) const READ_TIMEOUT: Duration = Duration::from_millis(1_750);

/// Time for any other answer with its body.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Outcome of `work` within [`ANSWER_TIMEOUT`]; [`Error::Stale`] for an object that is not there.
pub(super) async fn in_time<R>(
    what: &'static str,
    work: impl Future<Output = object_store::Result<R>>,
) -> Result<R> {
    answer_of(what, timeout(ANSWER_TIMEOUT, work).await)
}

/// The value of an answer that came in time.
pub(super) fn answer_of<R>(
    what: &'static str,
    answer: std::result::Result<object_store::Result<R>, Elapsed>,
) -> Result<R> {
    match answer {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(object_store::Error::NotFound { .. })) => Err(Error::Stale),
        // Its text may hold a URL, and this a signature.
        Ok(Err(error)) => Err(unavailable(what, kind_of(&error))),
        Err(_) => Err(unavailable(what, "no answer in time")),
    }
}

fn kind_of(error: &object_store::Error) -> &'static str {
    match error {
        object_store::Error::PermissionDenied { .. } => "permission denied",
        object_store::Error::Unauthenticated { .. } => "the credentials are refused",
        object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => {
            "the server does not know how"
        }
        _ => "no sound answer",
    }
}

pub(super) fn unavailable(what: &'static str, cause: &str) -> Error {
    Error::Unavailable { what: format!("the object store cannot {what}: {cause}") }
}
