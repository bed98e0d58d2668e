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
    /// A rule of the contract refuses the request.
    Refused(Refusal),
    /// The accounts cannot be read now.
    AccountsUnavailable(Error),
    /// No store can be opened now, for any client.
    StoreFailed(Error),
}

/// The next step for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The request is served.
    Serve,
    /// The request asks for the methods of its path, and needs no key.
    Options,
    /// Every check has passed, and the body must be received next.
    AwaitBody,
}

/// All facts about a request, up to the stage that ended it.
pub struct Decision {
    /// The address of the client that limits count.
    pub address: String,
    /// The route, once it is known.
    pub route: Option<&'static Route>,
    /// The identity, once it is known.
    pub identity: Option<Arc<Identity>>,
    /// The open plane of the account.
    pub plane: Option<Arc<OpenPlane>>,
    /// Events for the audit log.
    pub events: Vec<&'static str>,
    /// The id in the key that the events concern, if the text has the form of a key.
    pub key_id: Option<String>,
    /// True if the request exceeds its account's share.
    pub is_over_share: bool,
    /// The error for the log, if the tenant's store cannot be opened.
    pub fault: Option<Error>,
    /// The result of admission.
    pub outcome: Result<Grant, Cause>,
}

impl From<Refusal> for Cause {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
