//! A request as admission sees it.

use std::collections::HashMap;
use std::sync::Arc;

use fleetcast_front::fair::Owner;
use fleetcast_front::{self as front, ParsedRequest};

/// The part of a body that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyState {
    /// This many bytes have arrived, and no more are awaited.
    Come(usize),
    /// The body has not arrived and has not been asked for.
    Due,
    /// The body is longer than was allowed when the head arrived, and is not read.
    Oversized,
}

impl Default for BodyState {
    fn default() -> Self {
        Self::Come(0)
    }
}

/// A request.
pub trait ClientRequest {
    /// The method as it was sent.
    fn method(&self) -> &str;

    /// The path of the target, not decoded.
    fn path(&self) -> &str;

    /// The address of the client's end of the connection.
    fn peer(&self) -> &str;

    /// The value of the field with the given name. Example: `X_API_KEY` names `X-Api-Key`.
    fn field(&self, name: &str) -> Option<&[u8]>;

    /// The part of the body that has arrived.
    fn body(&self) -> BodyState;

    /// Returns true if the body comes in chunks, which are put together.
    fn is_chunked(&self) -> bool;

    /// Returns true if the request was counted for its client when its head arrived.
    fn is_counted(&self) -> bool;

    /// Marks the request as counted.
    fn set_counted(&mut self);

    /// Counts the request for the account of its key. Returns false if that exceeds the account's
    /// share.
    fn claim(&mut self, account: &Owner) -> bool;
}

/// Counts a request for an account. Returns false if that exceeds the account's share.
pub type Claim = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A request that did not come through a front of this project.
#[derive(Clone, Default)]
pub struct PlainRequest {
    /// The method as it was sent.
    pub method: String,
    /// The path of the target, not decoded.
    pub path: String,
    /// The address of the client's end of the connection.
    pub peer: String,
    /// Values of fields by the names that [`ClientRequest::field`] takes.
    pub fields: HashMap<String, Vec<u8>>,
    /// The part of the body that has arrived.
    pub body: BodyState,
    /// If true, the body comes in chunks.
    pub is_chunked: bool,
    /// If true, the request was counted for its client.
    pub is_counted: bool,
    /// True if the request exceeds its account's share.
    pub is_over_share: bool,
    /// Counts the request for an account, if a front keeps shares.
    pub claim: Option<Claim>,
}

impl ClientRequest for PlainRequest {
    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn peer(&self) -> &str {
        &self.peer
    }

    fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(name).map(Vec::as_slice)
    }

    fn body(&self) -> BodyState {
        self.body
    }

    fn is_chunked(&self) -> bool {
        self.is_chunked
    }

    fn is_counted(&self) -> bool {
        self.is_counted
    }

    fn set_counted(&mut self) {
        self.is_counted = true;
    }

    fn claim(&mut self, account: &Owner) -> bool {
        !self.is_over_share && self.claim.as_ref().is_none_or(|claim| claim(account))
    }
}

impl ClientRequest for front::Request {
    fn method(&self) -> &str {
        self.head().map_or("", |head| head.method())
    }

    fn path(&self) -> &str {
        self.head().map_or("", |head| head.path())
    }

    fn peer(&self) -> &str {
        &Self::peer(self).address
    }

    fn field(&self, name: &str) -> Option<&[u8]> {
        self.head()?.field(name)
    }

    fn body(&self) -> BodyState {
        match self.asked() {
            ParsedRequest::Whole { framing, .. } if framing.is_oversized => BodyState::Oversized,
            _ if self.is_body_due() => BodyState::Due,
            _ => BodyState::Come(Self::body(self).len()),
        }
    }

    fn is_chunked(&self) -> bool {
        matches!(self.asked(), ParsedRequest::Whole { framing, .. } if framing.is_chunked)
    }

    fn is_counted(&self) -> bool {
        self.is_admitted()
    }

    fn set_counted(&mut self) {
        self.set_admitted();
    }

    fn claim(&mut self, account: &Owner) -> bool {
        !self.is_over_share() && Self::claim(self, account)
    }
}
