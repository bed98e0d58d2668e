//! Records of tenants and keys. Times are whole seconds since 1970 in UTC.

use std::sync::Arc;

use fleetcast_front::fair::Owner;
use serde::Deserialize;

/// The space of tenants, by name.
pub const TENANTS: &str = "tenants";
/// The space of keys, by id.
pub const KEYS: &str = "keys";

/// A customer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// The slug, which is the tenant key as well.
    pub name: String,
    /// The name of the data plane.
    pub account_id: String,
    /// The plan.
    pub plan: String,
    /// The tenant may write.
    pub live_ingest: bool,
    /// Seconds for which rows are kept; `None` for ever.
    pub retention_seconds: Option<i64>,
    /// Nothing is answered to the tenant.
    pub disabled: bool,
    /// Instant of its creation.
    pub created_at: i64,
}

/// A key as it is stored: of its secret only a keyed hash.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// The id, which is a part of the text.
    pub key_id: String,
    /// The name of the tenant.
    pub tenant: String,
    /// A name for people.
    pub name: String,
    /// Rights.
    pub scopes: Vec<String>,
    /// The environment that it is for.
    pub environment: String,
    /// Instant of its creation.
    pub created_at: i64,
    /// Instant of its end, if it has one.
    pub expires_at: Option<i64>,
    /// Instant of its revocation, if it was revoked.
    pub revoked_at: Option<i64>,
    /// The keyed hash of the secret, in hexadecimal.
    pub hash: String,
    /// The id of the key that it was last rotated to.
    #[serde(default)]
    pub replaced_by: Option<String>,
}

impl ApiKey {
    /// Returns true if the key is revoked or has expired.
    #[must_use]
    pub fn has_ended(&self, now: i64) -> bool {
        self.revoked_at.is_some() || self.expires_at.is_some_and(|end| end <= now)
    }
}

/// The tenant and the rights of a request.
#[derive(Debug)]
pub struct Identity {
    /// The account, which names the data plane and owns shares.
    pub account: Owner,
    /// The tenant.
    pub tenant: Tenant,
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
