//! Telemetry records as lines of `InfluxDB`'s line protocol, read by the rules in one pass.
//!
//! Example: `measurement,tag=value field=1.5,other="text" 1769860800000000000`. In names and tags a
//! backslash escapes a byte that would end them. Fields are floats, integers (`1i`, `1u`), booleans
//! or strings in quotes. A line without a time has the ingest instant.
//!
//! Empty lines and lines that begin with `#` are skipped and do not count. An empty tag value is
//! accepted, as in JSON. A line without fields is accepted too, and its record is rejected.

mod parser;

mod fields;
mod tags;

mod record;

mod document;

#[cfg(test)]
mod tests;

pub use document::{line_records, parse_adapted_lines, parse_lines};
