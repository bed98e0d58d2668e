//! Request heads: the end of one, its content, and its effect on the body and the connection.
//!
//! Malformed is what gunicorn's parser refuses when it gets the same bytes one by one, so that the
//! answer never depends on how a head was cut into packets. Whoever holds the bytes looks for the
//! end of the head with a [`HeadScanner`] and gives the head alone to [`RequestHead::parse`].
//!
//! Each module may use those listed above it.

mod refusal;
mod span;

mod request_line;
mod scanner;

mod fields;

mod framing;

mod request;

mod body;

#[cfg(test)]
mod tests;

pub use body::{BodyFraming, BodyLimits};
pub use refusal::Refusal;
pub use request::{RequestHead, field_name};
pub use scanner::HeadScanner;
