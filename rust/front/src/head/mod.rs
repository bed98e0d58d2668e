//! Request heads: their end, their content, and their effect on the body and the connection.
//!
//! A head is malformed if gunicorn's parser refuses the same bytes one by one. The answer thus never
//! depends on how a head was cut into packets. The owner of the bytes looks for the end of the head
//! with a [`HeadScanner`] and gives only the head to [`RequestHead::parse`].
//!
//! Each module may use the modules listed above it.

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
pub use refusal::HeadFault;
pub use request::{RequestHead, field_name};
pub use scanner::HeadScanner;
