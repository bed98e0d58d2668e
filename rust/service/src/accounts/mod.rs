//! Accounts: tenants, their keys, and the identity behind a request.

mod record;

mod records;

mod secret_hash;
mod secret_text;

mod authenticator;

#[cfg(test)]
mod tests;

pub use authenticator::{Authenticator, Rejection, wall_seconds};
pub use record::Record;
pub use records::{ApiKey, ConsoleSession, Identity, OperatorToken, Tenant, UsageRecord};
pub use secret_hash::{SecretHasher, read_hash};
pub use secret_text::{SecretKind, SecretText, new_secret_text};
