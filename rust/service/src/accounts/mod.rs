//! Accounts: tenants, their keys, and the identity behind a request.

mod key_text;
mod records;

mod authenticator;

#[cfg(test)]
mod tests;

pub use authenticator::{Authenticator, Rejection, wall_seconds};
pub use key_text::KeyText;
pub use records::{ApiKey, Identity, KEYS, TENANTS, Tenant};
