//! The outcome of admission.

use std::sync::Arc;

use fleetcast_core::model::error::Error;

use super::routes::Route;
use crate::accounts::Identity;
use crate::planes::OpenPlane;
use crate::refusal::Refusal;

/// The reason for which a request is not served.
#[derive(Debug)]
pub enum Cause {
    /// A rule of the contract.
    Refused(Refusal),
    /// The accounts cannot be read now.
    AccountsUnavailable(Error),
    /// No store can be opened now, whoever asks.
    StoreFailed(Error),
}

/// The thing that is to be done next for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// It is to be served.
    Serve,
    /// It asks for the methods of its path, and needs no key.
    Options,
    /// All is well but the body, which is to be received.
    AwaitBody,
}

/// All that was found out about a request, up to the stage that ended it.
pub struct Decision {
    /// The address of the client, as far as limits care.
    pub address: String,
    /// The route, once it is known.
    pub route: Option<&'static Route>,
    /// The identity, once it is known.
    pub identity: Option<Arc<Identity>>,
    /// The open plane of the account.
    pub plane: Option<Arc<OpenPlane>>,
    /// Events for the audit log.
    pub events: Vec<&'static str>,
    /// The id in the key that the events are about, if it has the form of a key.
    pub key_id: Option<String>,
    /// The request is one too many of its account.
    pub is_over_share: bool,
    /// The reason for which the tenant's store cannot be opened, for the log.
    pub fault: Option<Error>,
    /// The end of it.
    pub outcome: Result<Grant, Cause>,
}

impl From<Refusal> for Cause {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
