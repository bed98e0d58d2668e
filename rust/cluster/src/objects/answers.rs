//! Answers of the object store: bounded in time, and as the engine's errors.

use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// Time for an answer that a request waits for. The request itself is answered within two seconds.
pub(super) const READ_TIMEOUT: Duration = Duration::from_millis(1_750);

/// Time for any other answer, its body included.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the outcome of `work` within [`ANSWER_TIMEOUT`], and [`Error::Stale`] if the object is
/// missing.
pub(super) async fn in_time<R>(
    what: &'static str,
    work: impl Future<Output = object_store::Result<R>>,
) -> Result<R> {
    answer_of(what, timeout(ANSWER_TIMEOUT, work).await)
}

/// Returns the value of an answer that arrived in time.
pub(super) fn answer_of<R>(
    what: &'static str,
    answer: std::result::Result<object_store::Result<R>, Elapsed>,
) -> Result<R> {
    match answer {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(object_store::Error::NotFound { .. })) => Err(Error::Stale),
        // The error's text may hold a URL, and the URL a signature.
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
