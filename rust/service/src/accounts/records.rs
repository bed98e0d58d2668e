//! Records of tenants, keys, operator tokens, console sessions and usage.
//!
//! Times are whole seconds since 1970 in UTC. A record holds only the keyed hash of a secret, in
//! hexadecimal.

use std::sync::Arc;

use fleetcast_front::fair::Owner;
use serde::{Deserialize, Serialize};

use super::record::Record;

/// Seconds after the last request at which a console session ends.
const SESSION_IDLE_SECONDS: i64 = 30 * 60;
/// Seconds that a session's last use may lie ahead of the clock. Time services set clocks back by
/// less.
const USED_AHEAD_SECONDS_MAX: i64 = 60;

/// A customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// The slug, which is also the tenant key.
    pub name: String,
    /// The name of the data plane.
    pub account_id: String,
    /// The plan.
    pub plan: String,
    /// If true, the tenant may write.
    pub live_ingest: bool,
    /// Seconds for which rows are kept; `None` if they are kept for ever.
    pub retention_seconds: Option<i64>,
    /// If true, every request of the tenant is refused.
    pub disabled: bool,
    /// Instant of its creation.
    pub created_at: i64,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// The id, which is a part of the text.
    pub key_id: String,
    /// The name of the tenant.
    pub tenant: String,
    /// A name for people.
    pub name: String,
    /// The scopes: the rights that the key gives.
    pub scopes: Vec<String>,
    /// The environment that the key is for.
    pub environment: String,
    /// Instant of its creation.
    pub created_at: i64,
    /// Instant at which the key expires; `None` if it never expires.
    pub expires_at: Option<i64>,
    /// Instant of the revocation; `None` if the key was not revoked.
    pub revoked_at: Option<i64>,
    /// The hash of its secret.
    pub hash: String,
    /// The id of the key that this key was last rotated to.
    ///
    /// Times do not say which of two keys is newer: both may be of one second, or a clock was set
    /// back in between.
    #[serde(default)]
    pub replaced_by: Option<String>,
}

impl ApiKey {
    /// Returns `revoked` or `expired` if the key is no longer valid.
    #[must_use]
    pub fn ended(&self, now: i64) -> Option<&'static str> {
        ended(self.revoked_at, self.expires_at, now)
    }
}

/// A token that opens the console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorToken {
    /// The id, which is a part of the text.
    pub token_id: String,
    /// A name for people.
    pub name: String,
    /// Instant of its creation.
    pub created_at: i64,
    /// Instant of its end.
    pub expires_at: i64,
    /// Instant of the revocation; `None` if the token was not revoked.
    pub revoked_at: Option<i64>,
    /// The hash of its secret.
    pub hash: String,
}

impl OperatorToken {
    /// Returns `revoked` or `expired` if the token is no longer valid.
    #[must_use]
    pub fn ended(&self, now: i64) -> Option<&'static str> {
        ended(self.revoked_at, Some(self.expires_at), now)
    }
}

/// A session at the console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleSession {
    /// The id, which is a part of the text.
    pub session_id: String,
    /// The id of the token that opened it.
    pub token_id: String,
    /// The address of the client.
    pub address: String,
    /// Instant of its opening.
    pub opened_at: i64,
    /// Instant of the last request that was noted.
    pub used_at: i64,
    /// Instant of its end.
    pub expires_at: i64,
    /// The hash of its secret.
    pub hash: String,
}

impl ConsoleSession {
    /// Returns true if the session has ended, or was not used for half an hour.
    ///
    /// If the last use lies more than a minute ahead of `now`, a wrong clock wrote it. Its true
    /// time is unknown, so the session has ended.
    #[must_use]
    pub fn has_ended(&self, now: i64) -> bool {
        let idle_seconds = now.saturating_sub(self.used_at);
        let is_in_use = (-USED_AHEAD_SECONDS_MAX..SESSION_IDLE_SECONDS).contains(&idle_seconds);
        now >= self.expires_at || !is_in_use
    }
}

/// Requests of an account. The record's key is the account's id, or `<account id>/<node id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageRecord {
    /// All requests.
    pub requests: u64,
    /// The name of the run whose requests were added last.
    pub run: String,
    /// Count of the requests of that run.
    pub counted: u64,
}

/// Kinds of records: the space and the name of each kind.
macro_rules! records {
    ($($kind:ty, $space:literal, $what:literal;)*) => {$(
        impl Record for $kind {
            const SPACE: &'static str = $space;
            const WHAT: &'static str = $what;
        }
    )*};
}

records! {
    Tenant, "tenants", "the record of a tenant";
    ApiKey, "keys", "the record of a key";
    OperatorToken, "operators", "the record of an operator token";
    ConsoleSession, "sessions", "the record of a console session";
    UsageRecord, "usage", "the record of a usage";
}

fn ended(revoked_at: Option<i64>, expires_at: Option<i64>, now: i64) -> Option<&'static str> {
    match (revoked_at, expires_at) {
        (Some(_), _) => Some("revoked"),
        (None, Some(end)) if end <= now => Some("expired"),
        _ => None,
    }
}

/// The tenant and the rights of a request.
#[derive(Debug)]
pub struct Identity {
    /// The account, which names the data plane and owns shares.
    pub account: Owner,
    /// The tenant.
    pub tenant: Arc<Tenant>,
    /// The key.
    pub key: Arc<ApiKey>,
}

impl Identity {
    /// Returns true if the key carries a scope.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.key.scopes.iter().any(|each| each == scope)
    }
}
