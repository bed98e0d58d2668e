//! Books on requests: counters, histograms, lines of the access log.
//!
//! The names and bounds of the counters come from the application, which counts in the same
//! counters.

mod counters;
mod log_line;
mod request_id;

mod unreadable;

mod requests;

#[cfg(test)]
mod tests;

pub use counters::{Counters, Histogram};
pub use log_line::{Served, Status, write_line, write_timestamp};
pub use request_id::new_request_id;
pub use requests::{Books, Entry, Indexes, RequestIndexes, UnderWay, WriteIndexes};
pub use unreadable::{Source, note_unreadable};
