//! Telemetry records as a `WriteRequest` (`protos/fleet/telemetry/v1/telemetry.proto`), read in one
//! pass over the protobuf wire format.
//!
//! It accepts what the generated classes accept: fields in any order, unknown ones skipped, of a
//! repeated singular field or map key the last one, messages merged. Groups, which proto3 cannot
//! write, are refused. Nothing is allocated for a length that is claimed, only for bytes that came.
//!
//! `record` and `field` know all the rules, `shape` is only speed.

mod field;
mod message;
mod record;
mod scan;
mod series;
mod shape;

#[cfg(test)]
pub(super) mod encode;
#[cfg(test)]
mod tests;

pub use message::parse_protobuf;

/// First byte of every spelling of a series in protobuf, for [`crate::model::raw_keys::RawKeyCache`].
pub const RAW_KEY_FORMAT: u8 = b'p';
