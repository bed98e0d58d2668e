//! Accounting of requests: counters, histograms, lines of the access log.
//!
//! The names and bounds of the counters come from the application, which counts in the same
//! counters.

mod counters;
mod log_line;
mod request_id;

mod line_bound;
mod unreadable;

mod requests;

#[cfg(test)]
mod tests;

pub use counters::{Counters, Histogram};
pub use line_bound::{name_process, refusal_is_logged, tell_left_out, write_served};
pub use log_line::{AnswerStatus, ServedRequest};
pub use request_id::new_request_id;
pub use requests::{
    Accounting, InFlightGuard, Indexes, RequestEntry, RequestIndexes, RequestLabels, WriteIndexes,
};
pub use unreadable::{RecordSource, note_unreadable};
