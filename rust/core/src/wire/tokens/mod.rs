//! Tokens of the formats: where a value ends, and which value it is.

pub(crate) mod json;
pub(crate) mod protobuf;
