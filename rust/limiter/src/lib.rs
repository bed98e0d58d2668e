//! Request rate and lockout of each client, counted by all processes of a host together.
//!
//! One file holds all counts: for each client, a ring of its last admitted instants and a ring of
//! its last failures. A call locks the file, reads a few hundred bytes, makes at most two changes,
//! and unlocks the file. Each change is one write inside one page. If a process is killed at any
//! instant, the kernel frees the lock. Every entry is then as before the call or as after it.
//!
//! The rings make the rate exact: a request is admitted if the N-th last admitted request is a
//! minute old. So any N + 1 requests admitted in a row span a minute at least. Example: with 30
//! requests per minute, the 31st request is admitted 60 s after the first, at the earliest.

//!
//! A module may use the modules listed above it.

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
pub use clock::boottime_ns;
pub use error::{LimiterError, LimiterResult};
pub use limiter::{Limiter, RetryAfter};
pub use rules::LimiterRules;
