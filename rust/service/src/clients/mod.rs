//! Clients: their addresses, and the limits on each.

mod address;

mod limits;

#[cfg(test)]
mod tests;

pub use address::{ClientAddresses, Networks};
pub use limits::{ClientLimits, FaultHandler, LimiterFile};
