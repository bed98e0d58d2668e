//! Writes messages for tests.

use crate::model::time::SECOND_NS;

/// A value of the oneof.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sent {
    Number(f64),
    Bool(bool),
    Text(String),
    Int(i64),
}

/// A record to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) measurement: String,
    pub(crate) time_ns: i64,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) fields: Vec<(String, Sent)>,
}

/// A varint.
pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            bytes.push(low & 0x7f);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A field with a length.
pub(crate) fn delimited(number: u32, content: &[u8]) -> Vec<u8> {
    [varint(u64::from(number << 3 | 2)), varint(content.len() as u64), content.to_vec()].concat()
}

/// A field of wire type 0.
pub(crate) fn integer(number: u32, value: i64) -> Vec<u8> {
    [varint(u64::from(number << 3)), varint(value.cast_unsigned())].concat()
}

/// An entry of a map.
pub(crate) fn entry(number: u32, key: &str, value: &[u8]) -> Vec<u8> {
    delimited(number, &[delimited(1, key.as_bytes()), delimited(2, value)].concat())
}

impl Sent {
    /// The bytes of a `FieldValue`.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Number(value) => [&[0x09], &value.to_le_bytes()[..]].concat(),
            Self::Bool(value) => integer(2, i64::from(*value)),
            Self::Text(value) => delimited(3, value.as_bytes()),
            Self::Int(value) => integer(4, *value),
        }
    }
}

impl Record {
    /// Returns the fields of the record. Each entry of a map is a separate field.
    pub(crate) fn parts(&self) -> Vec<Vec<u8>> {
        let (seconds, nanos) =
            (self.time_ns.div_euclid(SECOND_NS), self.time_ns.rem_euclid(SECOND_NS));
        let mut parts = vec![
            delimited(1, self.measurement.as_bytes()),
            delimited(2, &[integer(1, seconds), integer(2, nanos)].concat()),
        ];
        parts.extend(self.tags.iter().map(|(key, value)| entry(3, key, value.as_bytes())));
        parts.extend(self.fields.iter().map(|(key, value)| entry(4, key, &value.encode())));
        parts
    }
}

/// A `WriteRequest` of `records`.
pub(crate) fn encode(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(|record| delimited(1, &record.parts().concat())).collect()
}
