//! Encodes records of a client as the bytes of a write.

/// First bytes of the fields of the messages: first `WriteRequest.records`, then the fields of a
/// record.
const RECORDS: u8 = 0x0a;
const MEASUREMENT: u8 = 0x0a;
const TIME: u8 = 0x12;
const TAGS: u8 = 0x1a;
const FIELDS: u8 = 0x22;
/// First bytes of the fields of a time. A field that is 0 is left out.
const SECONDS: u8 = 0x08;
const NANOS: u8 = 0x10;
/// First bytes of the fields of an entry of a map.
const KEY: u8 = 0x0a;
const VALUE: u8 = 0x12;
/// First bytes of the fields of a value.
const NUMBER: u8 = 0x09;
const BOOL: u8 = 0x10;
const TEXT: u8 = 0x1a;
const INT: u8 = 0x20;

/// Bytes of the largest value that is not a text, including its first byte.
const VALUE_BYTES_MAX: usize = 11;

/// Value of a field in protobuf.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldValue<'a> {
    /// `number_value`
    Number(f64),
    /// `bool_value`
    Bool(bool),
    /// `string_value`
    Text(&'a str),
    /// `int_value`
    Int(i64),
}

/// Writes records as fields of a `WriteRequest`, so a request is made by joining records. Tags and
/// fields keep their order.
///
/// Example: [`Self::begin`], [`Self::tag`] for each tag, [`Self::field`] for each field, then
/// [`Self::end`].
#[derive(Default)]
pub struct RecordEncoder {
    record: Vec<u8>,
}

impl RecordEncoder {
    /// Begins a record. Its time has the parts of a protobuf `Timestamp`.
    pub fn begin(&mut self, measurement: &str, seconds: i64, nanos: u32) {
        self.record.clear();
        if !measurement.is_empty() {
            write_text(&mut self.record, MEASUREMENT, measurement);
        }
        let mut time = [0; 2 * VALUE_BYTES_MAX];
        let mut length = 0;
        for (tag, number) in [(SECONDS, seconds.cast_unsigned()), (NANOS, u64::from(nanos))] {
            if number != 0 {
                time[length] = tag;
                length += 1 + put_varint(&mut time[length + 1..], number);
            }
        }
        write_bytes(&mut self.record, TIME, &time[..length]);
    }

    /// Adds a tag.
    pub fn tag(&mut self, key: &str, value: &str) {
        self.record.push(TAGS);
        write_length(&mut self.record, text_length(key.len()) + text_length(value.len()));
        write_text(&mut self.record, KEY, key);
        write_text(&mut self.record, VALUE, value);
    }

    /// Adds a field.
    pub fn field(&mut self, name: &str, value: FieldValue<'_>) {
        let mut small = [0; VALUE_BYTES_MAX];
        let (start, text) = match value {
            FieldValue::Number(value) => {
                small[0] = NUMBER;
                small[1..9].copy_from_slice(&value.to_le_bytes());
                (&small[..9], None)
            }
            FieldValue::Bool(value) => {
                small[..2].copy_from_slice(&[BOOL, u8::from(value)]);
                (&small[..2], None)
            }
            FieldValue::Int(value) => {
                small[0] = INT;
                let length = put_varint(&mut small[1..], value.cast_unsigned());
                (&small[..=length], None)
            }
            FieldValue::Text(text) => (&small[..0], Some(text)),
        };
        let value_length = text.map_or(start.len(), |text| text_length(text.len()));
        let out = &mut self.record;
        out.push(FIELDS);
        write_length(out, text_length(name.len()) + text_length(value_length));
        write_text(out, KEY, name);
        out.push(VALUE);
        write_length(out, value_length);
        out.extend_from_slice(start);
        if let Some(text) = text {
            write_text(out, TEXT, text);
        }
    }

    /// Appends the record to `out`.
    pub fn end(&self, out: &mut Vec<u8>) {
        write_bytes(out, RECORDS, &self.record);
    }
}

/// Returns the length of a field with `length` bytes of content.
fn text_length(length: usize) -> usize {
    1 + put_varint(&mut [0; VALUE_BYTES_MAX], length as u64) + length
}

fn write_text(out: &mut Vec<u8>, tag: u8, text: &str) {
    write_bytes(out, tag, text.as_bytes());
}

fn write_bytes(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    out.push(tag);
    write_length(out, content.len());
    out.extend_from_slice(content);
}

#[inline]
fn write_length(out: &mut Vec<u8>, length: usize) {
    let mut bytes = [0; VALUE_BYTES_MAX];
    let count = put_varint(&mut bytes, length as u64);
    out.extend_from_slice(&bytes[..count]);
}

/// Writes a number to the start of `bytes`, at most ten bytes. Returns the number of bytes.
#[inline]
fn put_varint(bytes: &mut [u8], mut value: u64) -> usize {
    let mut length = 0;
    while value > 0x7f {
        bytes[length] = value.to_le_bytes()[0] | 0x80;
        value >>= 7;
        length += 1;
    }
    bytes[length] = value.to_le_bytes()[0];
    length + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::SECOND_NS;
    use crate::wire::tests::messages::{Record, Sent, encode};
    use proptest::prelude::*;

    fn sent() -> impl Strategy<Value = Sent> {
        prop_oneof![
            any::<f64>().prop_map(Sent::Number),
            any::<bool>().prop_map(Sent::Bool),
            ".{0,200}".prop_map(Sent::Text),
            any::<i64>().prop_map(Sent::Int),
        ]
    }

    #[test]
    fn what_is_nothing_is_left_out() {
        let mut encoder = RecordEncoder::default();
        let mut out = Vec::new();
        encoder.begin("", 0, 0);
        encoder.end(&mut out);
        assert_eq!(out, [RECORDS, 2, TIME, 0]);
    }

    proptest! {
        #[test]
        fn records_are_the_messages_that_they_should_be(
            measurement in ".{1,5}",
            time_ns in any::<i64>().prop_filter("no part is 0", |ns| {
                ns.div_euclid(SECOND_NS) != 0 && ns.rem_euclid(SECOND_NS) != 0
            }),
            tags in prop::collection::vec((".{0,200}", ".{0,200}"), 0..4),
            fields in prop::collection::vec((".{0,200}", sent()), 0..4),
        ) {
            let mut encoder = RecordEncoder::default();
            let nanos = u32::try_from(time_ns.rem_euclid(SECOND_NS)).unwrap();
            encoder.begin(&measurement, time_ns.div_euclid(SECOND_NS), nanos);
            for (key, value) in &tags {
                encoder.tag(key, value);
            }
            for (name, value) in &fields {
                encoder.field(name, match value {
                    Sent::Number(value) => FieldValue::Number(*value),
                    Sent::Bool(value) => FieldValue::Bool(*value),
                    Sent::Text(text) => FieldValue::Text(text),
                    Sent::Int(value) => FieldValue::Int(*value),
                });
            }
            let mut out = Vec::new();
            encoder.end(&mut out);
            prop_assert_eq!(out, encode(&[Record { measurement, time_ns, tags, fields }]));
        }
    }
}
