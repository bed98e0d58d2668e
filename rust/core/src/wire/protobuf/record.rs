//! One record of the list.

use std::borrow::Cow;

use super::field::FieldsState;
use super::message::Parser;
use super::scan::{Reader, Scan, delimited, text, varint};
use crate::time::{YEAR_2000_NS, timestamp_ns};
use crate::wire::columns::Row;

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
    seconds: i64,
    nanos: i32,
    /// The bytes of all entries of `tags`, their tags and lengths included.
    tags: Cow<'a, [u8]>,
}

impl<'a> Parser<'a, '_> {
    /// Reads one record, and accepts or rejects it unless something refuses the call.
    #[inline]
    pub(super) fn record(&mut self, bytes: &'a [u8]) -> Scan<()> {
        let mut parts = Parts { measurement: "", seconds: 0, nanos: 0, tags: Cow::Borrowed(&[]) };
        let mut reader = Reader::new(bytes);
        let mut has_fields = false;
        self.doubles.clear();
        self.cells.clear();
        self.fields = FieldsState::default();
        while !reader.is_empty() {
            let before = reader.rest;
            match reader.tag()? {
                MEASUREMENT => parts.measurement = self.measurement(reader.delimited()?)?,
                TIME => timestamp(reader.delimited()?, &mut parts)?,
                TAGS => {
                    let run = tags_run(before, &mut reader)?;
                    if parts.tags.is_empty() {
                        parts.tags = Cow::Borrowed(run);
                    } else {
                        parts.tags.to_mut().extend_from_slice(run);
                    }
                }
                FIELDS => {
                    if !has_fields {
                        has_fields = true;
                        self.begin_fields(parts.measurement);
                    }
                    reader.rest = before;
                    self.fields_run(&mut reader)?;
                }
                other => reader.skip(other)?,
            }
        }
        self.end_record(parts)
    }

    #[inline]
    fn measurement(&mut self, bytes: &'a [u8]) -> Scan<&'a str> {
        if bytes != self.measurement.as_bytes() {
            self.measurement = text(bytes)?;
        }
        Ok(self.measurement)
    }

    #[inline]
    fn end_record(&mut self, parts: Parts<'a>) -> Scan<()> {
        let time_ns = timestamp_ns(parts.seconds, parts.nanos);
        let has_fields = !self.cells.is_empty() || !self.doubles.is_empty();
        let rejected = !has_fields || time_ns.is_some_and(|ns| ns < YEAR_2000_NS);
        // A series that was accepted before under these very bytes has nothing wrong with it.
        let series = match self.find_series(parts.measurement, &parts.tags) {
            Some(series) => Ok(Some(series)),
            None => self.new_series(parts.measurement, parts.tags, !rejected)?,
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
                self.accept(&row);
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

/// Adjacent entries of `tags`, the first of which begins at `start`, unread but for their lengths.
#[inline]
fn tags_run<'a>(start: &'a [u8], reader: &mut Reader<'a>) -> Scan<&'a [u8]> {
    reader.delimited()?;
    while reader.rest.first().is_some_and(|&byte| u32::from(byte) == TAGS) {
        reader.tag()?;
        reader.delimited()?;
    }
    Ok(start.get(..start.len() - reader.rest.len()).unwrap_or_default())
}

/// Merges a `Timestamp` into what is known of the record.
#[inline]
fn timestamp(bytes: &[u8], parts: &mut Parts<'_>) -> Scan<()> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        match reader.tag()? {
            SECONDS => parts.seconds = reader.varint()?.cast_signed(),
            NANOS => parts.nanos = low_half(reader.varint()?).cast_signed(),
            other => reader.skip(other)?,
        }
    }
    Ok(())
}

/// An `int32` is sent in 64 bits; the upper ones are its sign.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn low_half(value: u64) -> u32 {
    value as u32
}
