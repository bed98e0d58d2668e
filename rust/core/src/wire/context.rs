//! Context in which every format reads the bytes of a body.

use crate::model::limits::{BODY_NAMES_BYTES, NAMES_PER_BODY_BYTE_MAX, WriteLimits};
use crate::model::raw_keys::RawKeyCache;

/// A tenant's names and bounds, and the instant of a batch.
#[derive(Clone, Copy)]
pub struct ParseContext<'a> {
    /// Series that are known by the raw bytes of their tags.
    pub raw_keys: &'a RawKeyCache,
    /// Bounds of the batch and of the tenant.
    pub limits: &'a WriteLimits,
    /// Key of the tenant. It replaces the value of every tag that names the tenant.
    pub tenant_key: &'a str,
    /// Nanoseconds since 1970. It replaces later times, and is the time of records without a time.
    pub ingest_ns: i64,
    /// Bytes of names that the body may add.
    pub(super) names_bytes_max: usize,
}

impl<'a> ParseContext<'a> {
    /// Returns a context of these parts.
    #[must_use]
    pub const fn new(
        raw_keys: &'a RawKeyCache,
        limits: &'a WriteLimits,
        tenant_key: &'a str,
        ingest_ns: i64,
    ) -> Self {
        Self { raw_keys, limits, tenant_key, ingest_ns, names_bytes_max: usize::MAX }
    }

    /// Returns the same context for a format in which many names share parts that are sent once.
    pub(super) const fn of_shared_names(self, body: &[u8]) -> Self {
        let names_bytes_max = body.len() * NAMES_PER_BODY_BYTE_MAX + BODY_NAMES_BYTES;
        Self { names_bytes_max, ..self }
    }
}
