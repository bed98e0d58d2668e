//! Reads a record of the list.

use std::borrow::Cow;

use super::parser::{FieldsState, ProtobufParser};
use crate::wire::columns::AcceptedRecord;
use crate::wire::rules::is_rejected;
use crate::wire::template::SlotKind;
use crate::wire::tokens::protobuf::{
    MessageReader, ProtobufResult, TAGS, Timestamp, delimited, tags_run, text,
};

/// Fields of `TelemetryRecord`, in addition to its tags.
const MEASUREMENT: u32 = delimited(1);
const TIME: u32 = delimited(2);
const FIELDS: u32 = delimited(4);

/// The parts of a record that have been read so far.
struct ProtobufRecord<'a> {
    measurement: &'a str,
    time: Timestamp,
    /// The bytes of all entries of `tags`, including their field tags and lengths.
    tags: Cow<'a, [u8]>,
}

impl<'a> ProtobufParser<'a, '_> {
    /// Reads a record. Accepts or rejects it, unless the call is already refused.
    pub(super) fn record(&mut self, bytes: &'a [u8]) -> ProtobufResult<()> {
        let mut parts = ProtobufRecord {
            measurement: "",
            time: Timestamp::default(),
            tags: Cow::Borrowed(&[]),
        };
        let mut reader = MessageReader::new(bytes);
        self.cells.clear();
        self.templates.begin_record();
        self.fields = FieldsState::default();
        while !reader.is_empty() {
            let before = reader.rest;
            let tag = reader.tag()?;
            let after_tag = reader.rest;
            let (start, kind) = match tag {
                MEASUREMENT => {
                    parts.measurement = text(reader.delimited()?)?;
                    continue;
                }
                TIME => {
                    parts.time.merge(reader.delimited()?)?;
                    (after_tag, SlotKind::Time)
                }
                TAGS => {
                    reader.rest = before;
                    let run = tags_run(&mut reader)?;
                    if parts.tags.is_empty() {
                        parts.tags = Cow::Borrowed(run);
                    } else {
                        parts.tags.to_mut().extend_from_slice(run);
                    }
                    (before, SlotKind::Tags)
                }
                FIELDS => {
                    self.field(parts.measurement, reader.delimited()?)?;
                    (after_tag, SlotKind::Field)
                }
                other => {
                    reader.skip(other)?;
                    continue;
                }
            };
            let slot = bytes.len() - start.len()..bytes.len() - reader.rest.len();
            self.templates.note(slot, kind);
        }
        self.end_record(bytes, &parts)
    }

    fn end_record(&mut self, bytes: &[u8], parts: &ProtobufRecord<'a>) -> ProtobufResult<()> {
        let time_ns = parts.time.ns();
        let rejected = !self.keeps || is_rejected(!self.cells.is_empty(), time_ns);
        // A series that was accepted before with these bytes has no fault.
        let series = match self.batch.series.find(parts.measurement, &parts.tags) {
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
        let Self { batch, cells, cells_table, templates, .. } = self;
        match series {
            Some(series) if !rejected => {
                let time_ns = batch.columns.clamp(sent_ns);
                let (measurement, cells_table) = (parts.measurement, *cells_table);
                let row = AcceptedRecord { record, measurement, series, time_ns, cells_table };
                batch.columns.accept(&row, cells);
                templates.learn(bytes, measurement, batch, cells);
            }
            _ => batch.columns.batch().rejected_indices.push(record),
        }
        Ok(())
    }

    #[cold]
    #[expect(clippy::unnecessary_wraps, reason = "ends a record, and records go on")]
    fn refuse(&mut self, field: &'static str) -> ProtobufResult<()> {
        self.fault = Some(field);
        Ok(())
    }
}
