//! Encodes the records of clients, which are objects of Python, as the bytes of a write.

mod times;

mod json;
mod protobuf;

pub(crate) use json::encode_json;
pub(crate) use protobuf::{encode_protobuf, is_acceptable};
pub(crate) use times::{instant, optional_instant, time_ns};
