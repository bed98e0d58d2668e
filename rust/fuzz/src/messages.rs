//! `protos/fleet/telemetry/v1/telemetry.proto` by hand, for `prost`. Tests in Python also compare
//! the wire format with the generated classes.

use std::collections::BTreeMap;

use prost::Message;

/// A batch.
#[derive(Clone, PartialEq, Message)]
pub struct WriteRequest {
    /// `records`
    #[prost(message, repeated, tag = "1")]
    pub records: Vec<TelemetryRecord>,
}

/// A record.
#[derive(Clone, PartialEq, Message)]
pub struct TelemetryRecord {
    /// `measurement`
    #[prost(string, tag = "1")]
    pub measurement: String,
    /// `time`
    #[prost(message, optional, tag = "2")]
    pub time: Option<Timestamp>,
    /// `tags`
    #[prost(btree_map = "string, string", tag = "3")]
    pub tags: BTreeMap<String, String>,
    /// `fields`
    #[prost(btree_map = "string, message", tag = "4")]
    pub fields: BTreeMap<String, FieldValue>,
}

/// `google.protobuf.Timestamp`.
#[derive(Clone, PartialEq, Message)]
pub struct Timestamp {
    /// `seconds`
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// `nanos`
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// The value of a field.
#[derive(Clone, PartialEq, Message)]
pub struct FieldValue {
    /// `value`
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4")]
    pub value: Option<Kind>,
}

/// Kind of a value, and the value.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Kind {
    /// `number_value`
    #[prost(double, tag = "1")]
    Number(f64),
    /// `bool_value`
    #[prost(bool, tag = "2")]
    Bool(bool),
    /// `string_value`
    #[prost(string, tag = "3")]
    Text(String),
    /// `int_value`
    #[prost(int64, tag = "4")]
    Int(i64),
}
