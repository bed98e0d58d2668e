//! Wire formats: bytes of a batch in, [`crate::model::batch::Batch`] or [`crate::model::fault::Refusal`] out.
//!
//! Every format finds a known series by the bytes that spell it, checks the rest of a record by
//! the same rules, and gives its accepted cells to `columns`. The order of what is refused
//! first is that of stages 9 to 13 in `docs/contract.md`. A record that is spelled like one
//! before it is taken by its `shape`, which is only speed: every doubt is left to the rules.

mod columns;
#[cfg(test)]
mod company;
mod json;
mod keys;
mod prefix;
mod protobuf;
mod rules;
mod series;
mod shape;

pub use json::{RAW_KEY_FORMAT as JSON_RAW_KEY_FORMAT, parse_json};
pub use protobuf::{RAW_KEY_FORMAT as PROTOBUF_RAW_KEY_FORMAT, parse_protobuf};

use crate::model::batch::ParseResult;
use crate::model::limits::WriteLimits;
use crate::model::raw_keys::RawKeyCache;

/// How the bytes of a batch spell its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON array of records.
    Json,
    /// A serialized `fleet.telemetry.v1.WriteRequest`.
    Protobuf,
}

impl Format {
    /// Reads `body` as [`parse_json`] or [`parse_protobuf`] does.
    ///
    /// # Errors
    /// Theirs.
    ///
    /// # Panics
    /// As they do.
    pub fn parse(
        self,
        body: &[u8],
        raw_keys: &RawKeyCache,
        limits: &WriteLimits,
        tenant_key: &str,
        ingest_ns: i64,
    ) -> ParseResult {
        match self {
            Self::Json => parse_json(body, raw_keys, limits, tenant_key, ingest_ns),
            Self::Protobuf => parse_protobuf(body, raw_keys, limits, tenant_key, ingest_ns),
        }
    }
}
