//! Tokens of the protobuf wire format, and the smallest messages of a record.

mod scan;

mod message;

pub(crate) use message::{TAGS, Timestamp, UNSET, merge_field_value, tags_run};
pub(crate) use scan::{
    LAST_BYTE_MAX, MalformedMessage, MessageReader, ProtobufResult, delimited, fixed64, nearest,
    text, varint,
};
