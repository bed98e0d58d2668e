//! Telemetry records as lines of `InfluxDB`'s line protocol, read by the rules in one pass.
//!
//! `measurement,tag=value field=1.5,other="text" 1769860800000000000`: names and tags escape what
//! would end them with a backslash, and fields are floats, integers (`1i`, `1u`), booleans or strings
//! in quotes. Lines without a time have the ingest instant. Empty lines and those that begin with `#`
//! are passed over and not counted. What JSON may say is accepted where the protocol has a way to say
//! it: an empty tag value, and no fields, which rejects the record.

mod parser;

mod fields;
mod tags;

mod record;

mod document;

#[cfg(test)]
mod tests;

pub use document::{line_records, parse_adapted_lines, parse_lines};
