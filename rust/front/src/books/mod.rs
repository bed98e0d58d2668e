//! Accounts of requests that no application has seen: counters, histograms, lines of the access log.
//!
//! Names, bounds and texts come from the application, which accounts for all others by the same.

mod counters;
mod log_line;
mod request_id;

#[cfg(test)]
mod tests;

pub use counters::{Counters, Histogram};
pub use log_line::{LogLine, write_line, write_timestamp};
pub use request_id::{RequestId, new_request_id};
