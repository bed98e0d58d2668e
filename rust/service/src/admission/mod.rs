//! Admission: decides if a request may be served, by the contract's stages in their order.
//!
//! Every surface asks admission about each request. No result is kept for the next request.

mod routes;

mod request;

mod body;

mod keys;

mod decision;

mod stages;

#[cfg(test)]
mod tests;

pub(crate) use body::coding;
pub use decision::{Cause, Decision, Grant};
pub use keys::KeyPlaces;
pub use request::{BodyState, Claim, ClientRequest, PlainRequest};
pub use routes::{ADAPTER_ROUTES, Language, PUBLIC_ROUTES, Route, TELEMETRY};
pub use stages::{Admission, admit_known, check_rights};
