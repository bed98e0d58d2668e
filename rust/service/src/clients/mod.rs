//! Clients: the addresses that they speak from, and how much is taken from each.

mod address;

mod limits;

#[cfg(test)]
mod tests;

pub use address::{ClientAddresses, Networks};
pub use limits::{ClientLimits, LimiterFile, OnFault};
