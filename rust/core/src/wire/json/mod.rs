//! Telemetry records as a JSON array (RFC 8259), read in one pass without a document tree.
//!
//! What is stricter than JSON: no duplicate keys in a record or in its `tags` and `fields`,
//! no nesting deeper than [`crate::model::limits::JSON_DEPTH_MAX`], no lone surrogates. A
//! leading byte order mark is skipped. Values of unknown keys of a record are only checked for
//! syntax: inside them keys may repeat and numbers may overflow, since nothing is kept of them.
//!
//! `record` knows all the rules. `shape` is only speed: it takes records that are spelled like
//! an earlier accepted one, and leaves every doubt to `record`.

mod array;
mod faults;
mod fields;
mod number;
mod power;
mod record;
mod scan;
mod series;
mod shape;
mod string;

#[cfg(test)]
mod tests;

pub use array::parse_json;

/// First byte of every spelling of a series in JSON, for [`crate::model::raw_keys::RawKeyCache`].
pub const RAW_KEY_FORMAT: u8 = b'j';
