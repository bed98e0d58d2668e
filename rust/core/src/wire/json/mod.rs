//! Telemetry records as a JSON array (RFC 8259), read by the rules in one pass without a document
//! tree.
//!
//! Stricter than JSON: no duplicate keys in a record or in its `tags` and `fields`, no nesting
//! deeper than [`crate::model::limits::JSON_DEPTH_MAX`], no lone surrogates. A leading byte order
//! mark is skipped. Values of unknown keys of a record are only checked for syntax. Inside them
//! keys may repeat and numbers may overflow, because the values are not kept.

mod parser;

mod fields;
mod tags;

mod lines;

mod record;

mod document;

#[cfg(test)]
mod tests;

pub use document::parse_json;
pub use lines::{json_records, parse_json_lines};
