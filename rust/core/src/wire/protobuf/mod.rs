//! Telemetry records as a `WriteRequest` (`protos/fleet/telemetry/v1/telemetry.proto`), read by the
//! rules in one pass over the protobuf wire format.
//!
//! The reader accepts the messages that the generated classes accept. Fields may come in any order,
//! and unknown fields are skipped. If a singular field or a map key is repeated, the last one
//! counts, and messages are merged. Groups are refused, because proto3 cannot write them. Memory is
//! allocated only for bytes that arrived, never for a claimed length.

mod parser;

mod fields;
mod tags;

mod record;

mod message;

#[cfg(test)]
mod tests;

pub use message::{is_acceptable, parse_protobuf};
