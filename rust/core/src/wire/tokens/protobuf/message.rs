//! The messages within a record, as `protos/fleet/telemetry/v1/telemetry.proto` defines them.

use std::borrow::Cow;

use super::scan::{MessageReader, ProtobufResult, delimited, fixed64, nearest, text, varint};
use crate::model::time::timestamp_ns;
use crate::wire::value::CellValue;

/// The field `tags` of `TelemetryRecord`.
pub(crate) const TAGS: u32 = delimited(3);
/// Fields of `Timestamp`.
const SECONDS: u32 = varint(1);
const NANOS: u32 = varint(2);
/// Fields of `FieldValue`, a oneof.
const NUMBER_VALUE: u32 = fixed64(1);
const BOOL_VALUE: u32 = varint(2);
const STRING_VALUE: u32 = delimited(3);
const INT_VALUE: u32 = varint(4);

/// Stands for a value that is not set before the record ends. It is not a number, so it is refused
/// too.
pub(crate) const UNSET: CellValue<'static> = CellValue::Float(f64::NAN);

/// A `Timestamp`.
#[derive(Default)]
pub(crate) struct Timestamp {
    seconds: i64,
    nanos: i32,
}

impl Timestamp {
    /// Merges the message `bytes` into this message.
    #[inline]
    pub(crate) fn merge(&mut self, bytes: &[u8]) -> ProtobufResult<()> {
        let mut reader = MessageReader::new(bytes);
        while !reader.is_empty() {
            match reader.tag()? {
                SECONDS => self.seconds = reader.varint()?.cast_signed(),
                NANOS => self.nanos = low_half(reader.varint()?).cast_signed(),
                other => reader.skip(other)?,
            }
        }
        Ok(())
    }

    /// Returns nanoseconds since 1970, or `None` if it is not an instant.
    #[inline]
    pub(crate) fn ns(&self) -> Option<i64> {
        timestamp_ns(self.seconds, self.nanos)
    }
}

/// Merges a `FieldValue` into `value`: the last field of a oneof counts. Integers become the
/// nearest double.
#[inline]
pub(crate) fn merge_field_value<'a>(
    bytes: &'a [u8],
    value: &mut CellValue<'a>,
) -> ProtobufResult<()> {
    let mut reader = MessageReader::new(bytes);
    while !reader.is_empty() {
        *value = match reader.tag()? {
            NUMBER_VALUE => CellValue::Float(reader.double()?),
            BOOL_VALUE => CellValue::Bool(reader.varint()? != 0),
            STRING_VALUE => CellValue::Text(Cow::Borrowed(text(reader.delimited()?)?)),
            INT_VALUE => CellValue::Float(nearest(reader.varint()?.cast_signed())),
            other => {
                reader.skip(other)?;
                continue;
            }
        };
    }
    Ok(())
}

/// Takes adjacent entries of `tags`. Reads only their lengths.
#[inline]
pub(crate) fn tags_run<'a>(reader: &mut MessageReader<'a>) -> ProtobufResult<&'a [u8]> {
    let start = reader.rest;
    reader.tag()?;
    reader.delimited()?;
    while reader.rest.first().is_some_and(|&byte| u32::from(byte) == TAGS) {
        reader.tag()?;
        reader.delimited()?;
    }
    Ok(start.get(..start.len() - reader.rest.len()).unwrap_or_default())
}

/// An `int32` is sent in 64 bits. The upper bits repeat its sign.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn low_half(value: u64) -> u32 {
    value as u32
}
