//! One record of the list.

use std::borrow::Cow;

use super::field::FieldsState;
use super::message::Parser;
use super::scan::{Reader, Scan, delimited, text, varint};
use crate::model::time::timestamp_ns;
use crate::wire::columns::Row;
use crate::wire::rules::is_rejected;
use crate::wire::shape::{Slot, SlotValue};

/// Fields of `TelemetryRecord`.
const MEASUREMENT: u32 = delimited(1);
const TIME: u32 = delimited(2);
pub(super) const TAGS: u32 = delimited(3);
const FIELDS: u32 = delimited(4);
/// Fields of `Timestamp`.
const SECONDS: u32 = varint(1);
const NANOS: u32 = varint(2);

/// What is known of a record so far.
struct Parts<'a> {
    measurement: &'a str,
    time: Timestamp,
    /// The bytes of all entries of `tags`, their tags and lengths included.
    tags: Cow<'a, [u8]>,
}

/// A `Timestamp`.
#[derive(Default)]
pub(super) struct Timestamp {
    seconds: i64,
    nanos: i32,
}

impl Timestamp {
    /// Merges the message `bytes` into this one.
    #[inline]
    pub(super) fn merge(&mut self, bytes: &[u8]) -> Scan<()> {
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            match reader.tag()? {
                SECONDS => self.seconds = reader.varint()?.cast_signed(),
                NANOS => self.nanos = low_half(reader.varint()?).cast_signed(),
                other => reader.skip(other)?,
            }
        }
        Ok(())
    }

    /// Nanoseconds since 1970, or `None` where it is no instant.
    #[inline]
    pub(super) fn ns(&self) -> Option<i64> {
        timestamp_ns(self.seconds, self.nanos)
    }
}

impl<'a> Parser<'a, '_> {
    /// Reads one record, and accepts or rejects it unless something refuses the call.
    pub(super) fn record(&mut self, bytes: &'a [u8]) -> Scan<()> {
        let mut parts =
            Parts { measurement: "", time: Timestamp::default(), tags: Cow::Borrowed(&[]) };
        let mut reader = Reader::new(bytes);
        self.cells.clear();
        self.slots.clear();
        self.fields = FieldsState::default();
        while !reader.is_empty() {
            let before = reader.rest;
            let tag = reader.tag()?;
            let behind_tag = reader.rest;
            let (start, value) = match tag {
                MEASUREMENT => {
                    parts.measurement = text(reader.delimited()?)?;
                    continue;
                }
                TIME => {
                    parts.time.merge(reader.delimited()?)?;
                    (behind_tag, SlotValue::Time)
                }
                TAGS => {
                    reader.rest = before;
                    let run = tags_run(&mut reader)?;
                    if parts.tags.is_empty() {
                        parts.tags = Cow::Borrowed(run);
                    } else {
                        parts.tags.to_mut().extend_from_slice(run);
                    }
                    (before, SlotValue::Tags)
                }
                FIELDS => {
                    self.field(parts.measurement, reader.delimited()?)?;
                    (behind_tag, SlotValue::Field)
                }
                other => {
                    reader.skip(other)?;
                    continue;
                }
            };
            let place = bytes.len() - start.len()..bytes.len() - reader.rest.len();
            self.slots.push(Slot { place, value });
        }
        self.end_record(bytes, &parts)
    }

    fn end_record(&mut self, bytes: &[u8], parts: &Parts<'a>) -> Scan<()> {
        let time_ns = parts.time.ns();
        let rejected = is_rejected(!self.cells.is_empty(), time_ns);
        // A series that was accepted before under these very bytes has nothing wrong with it.
        let series = match self.series.find(parts.measurement, &parts.tags) {
            Ok(series) => Ok(Some(series)),
            Err(unknown) => self.new_series(parts.measurement, &parts.tags, unknown, !rejected)?,
        };
        if !self.is_sound() {
            return Ok(());
        }
        let (series, sent_ns) = match (series, time_ns) {
            (Err(field), _) => return self.refuse(field),
            _ if self.has_faulty_field() => return self.refuse("fields"),
            _ if parts.measurement.is_empty() => return self.refuse("measurement"),
            (_, None) => return self.refuse("time"),
            (Ok(series), Some(sent_ns)) => (series, sent_ns),
        };
        let record = u32::try_from(self.received).expect("bounded by the records of a batch");
        match series {
            Some(series) if !rejected => {
                let time_ns = self.columns.clamp(sent_ns);
                let (measurement, cells_table) = (parts.measurement, self.cells_table);
                let row = Row { record, measurement, series, time_ns, cells_table };
                self.columns.accept(&row, &mut self.cells);
                self.learn_shape(measurement, bytes);
            }
            _ => self.columns.batch().rejected_indices.push(record),
        }
        Ok(())
    }

    #[cold]
    #[expect(clippy::unnecessary_wraps, reason = "ends a record, and records go on")]
    fn refuse(&mut self, field: &'static str) -> Scan<()> {
        self.fault = Some(field);
        Ok(())
    }
}

/// Adjacent entries of `tags`, unread but for their lengths.
#[inline]
pub(super) fn tags_run<'a>(reader: &mut Reader<'a>) -> Scan<&'a [u8]> {
    let start = reader.rest;
    reader.tag()?;
    reader.delimited()?;
    while reader.rest.first().is_some_and(|&byte| u32::from(byte) == TAGS) {
        reader.tag()?;
        reader.delimited()?;
    }
    Ok(start.get(..start.len() - reader.rest.len()).unwrap_or_default())
}

/// An `int32` is sent in 64 bits; the upper ones are its sign.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn low_half(value: u64) -> u32 {
    value as u32
}
