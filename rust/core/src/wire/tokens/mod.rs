//! Tokens of the formats: where a value ends, and which value it is.

pub(crate) mod utf8;

pub(crate) mod json;
pub(crate) mod line;
pub(crate) mod protobuf;
