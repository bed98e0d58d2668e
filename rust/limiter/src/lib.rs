//! Request rate and lockout per client, counted together by all processes of a host.
//!
//! One file holds everything: a ring of the last admitted instants and one of the last failures
//! for each client. A call takes the lock on the file, reads a few hundred bytes, makes at most two
//! changes, each with one write inside one page, and lets go. So whatever kills a process and
//! whenever, the kernel frees the lock and every entry is as it was before the call or after it.
//!
//! The rings make the rate exact: a request is admitted when the N-th last admitted one is a
//! minute old, so any N + 1 admitted in a row span a minute, wherever one starts to count.

//!
//! Each module may use those listed above it.

mod client;
mod error;
mod rules;

mod clock;
mod ring;

mod layout;

mod file;
mod table;

mod limiter;

#[cfg(test)]
mod tests;

pub use client::Client;
pub use error::{Error, Result};
pub use limiter::{Limiter, RetryAfter};
pub use rules::Rules;
