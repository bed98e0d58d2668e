//! Telemetry records as a `WriteRequest` (`protos/fleet/telemetry/v1/telemetry.proto`), read by the
//! rules in one pass over the protobuf wire format.
//!
//! It accepts what the generated classes accept: fields in any order, unknown ones skipped, of a
//! repeated singular field or map key the last one, messages merged. Groups, which proto3 cannot
//! write, are refused. Nothing is allocated for a length that is claimed, only for bytes that came.

mod parser;

mod fields;
mod tags;

mod record;

mod message;

#[cfg(test)]
mod tests;

pub use message::{is_acceptable, parse_protobuf};
