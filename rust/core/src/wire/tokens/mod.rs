//! Tokens of the formats: find the end of a value and decode it.

pub(crate) mod utf8;

pub(crate) mod json;
pub(crate) mod line;
pub(crate) mod protobuf;
