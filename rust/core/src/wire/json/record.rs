//! Reads a record of the array.

use std::borrow::Cow;

use super::lines::ends_line;
use super::parser::{DocumentLayout, JsonParser, RECORD_DEPTH};
use super::tags::JsonTags;
use crate::model::fault::FaultCode;
use crate::wire::columns::AcceptedRecord;
use crate::wire::faults::NOWHERE;
use crate::wire::rules::is_rejected;
use crate::wire::template::SlotKind;
use crate::wire::tokens::json::{JsonResult, Scanner};

enum RecordKey<'a> {
    Measurement,
    Time,
    Tags,
    Fields,
    Other(Cow<'a, str>),
}

impl RecordKey<'_> {
    /// Returns the bit of a known key in a set of keys.
    const fn bit(&self) -> u8 {
        match self {
            Self::Measurement => 1,
            Self::Time => 2,
            Self::Tags => 4,
            Self::Fields => 8,
            Self::Other(_) => 0,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Measurement => "measurement",
            Self::Time => "time",
            Self::Tags => "tags",
            Self::Fields => "fields",
            Self::Other(name) => name,
        }
    }
}

/// The parts of a record that have been read so far.
struct JsonRecord<'a> {
    /// Set of [`RecordKey::bit`].
    seen: u8,
    measurement: Option<Cow<'a, str>>,
    time_ns: Option<i64>,
    tags: JsonTags<'a>,
}

impl<'a> JsonParser<'a, '_> {
    /// Reads record `index`, an object. Accepts or rejects it, unless the batch is already refused.
    /// Returns the offset after it.
    pub(super) fn record(&mut self, mut scan: Scanner<'a>, index: usize) -> JsonResult<usize> {
        let mut parts =
            JsonRecord { seen: 0, measurement: None, time_ns: None, tags: JsonTags::Absent };
        let start = scan.at;
        self.cells.clear();
        self.templates.begin_record();
        self.other_keys.clear();
        scan.expect(b'{')?;
        let mut more = scan.first(b'}');
        while more {
            let key_at = scan.at;
            let key = record_key(&mut scan)?;
            scan.colon()?;
            let fault = if self.is_new_key(&key, parts.seen) {
                parts.seen |= key.bit();
                let fault;
                (fault, scan.at) = self.value(scan, index, &key, &mut parts)?;
                fault
            } else {
                scan.at = scan.value_end(RECORD_DEPTH)?;
                Some(FaultCode::DuplicateKey)
            };
            if let Some(code) = fault {
                self.faults.push(key_at, code, index, &[key.name()]);
            }
            more = scan.next(b'}')?;
        }
        if self.layout == DocumentLayout::Lines && !ends_line(scan.bytes(), scan.at) {
            return scan.error();
        }
        if self.end_record(index, &parts)?
            && let Some(measurement) = &parts.measurement
        {
            let Self { text, templates, batch, cells, .. } = self;
            templates.learn(text, (start, scan.at), measurement, batch, cells);
        }
        Ok(scan.at)
    }

    #[inline]
    fn is_new_key(&mut self, key: &RecordKey<'a>, seen: u8) -> bool {
        match key {
            RecordKey::Other(name) => self.other_keys.insert(name.clone()),
            known => seen & known.bit() == 0,
        }
    }

    /// Reads the value of `key` into `parts`. Returns the fault of the value itself, and the offset
    /// after it.
    #[inline]
    fn value(
        &mut self,
        mut scan: Scanner<'a>,
        index: usize,
        key: &RecordKey<'a>,
        parts: &mut JsonRecord<'a>,
    ) -> JsonResult<(Option<FaultCode>, usize)> {
        let start = scan.at;
        let fault = match key {
            RecordKey::Measurement => match string_value(&mut scan)? {
                None => Some(FaultCode::StringType),
                Some(text) if text.is_empty() => Some(FaultCode::StringTooShort),
                text => {
                    parts.measurement = text;
                    None
                }
            },
            RecordKey::Time => match string_value(&mut scan)? {
                None => Some(FaultCode::DatetimeType),
                Some(text) => {
                    // Leave a time with escapes to the rules.
                    if matches!(text, Cow::Borrowed(_)) {
                        self.templates.note(start + 1..scan.at - 1, SlotKind::Time);
                    }
                    parts.time_ns = self.times.parse_ns(text.as_bytes());
                    parts.time_ns.is_none().then_some(FaultCode::DatetimeParsing)
                }
            },
            RecordKey::Tags => {
                (parts.tags, scan.at) = self.tags(scan, parts.measurement.as_deref())?;
                self.templates.note(start..scan.at, SlotKind::Tags);
                matches!(parts.tags, JsonTags::Faulty).then_some(FaultCode::DictType)
            }
            RecordKey::Fields if scan.peek() == b'{' => {
                let table = match parts.measurement.as_deref() {
                    Some(measurement) => self.batch.columns.find_table(measurement),
                    None => self.batch.columns.last_table(),
                };
                scan.at = self.fields(scan, index, table)?;
                None
            }
            RecordKey::Fields | RecordKey::Other(_) => {
                scan.at = scan.value_end(RECORD_DEPTH)?;
                matches!(key, RecordKey::Fields).then_some(FaultCode::DictType)
            }
        };
        Ok((fault, scan.at))
    }

    /// Decides on a record after it is read. Returns true if the record is accepted.
    fn end_record(&mut self, index: usize, parts: &JsonRecord<'a>) -> JsonResult<bool> {
        self.faults.next_pass();
        let rejected = is_rejected(!self.cells.is_empty(), parts.time_ns);
        let measurement = parts.measurement.as_ref();
        let series = self.series_of(index, measurement, parts.tags, !rejected)?;
        for key in [RecordKey::Measurement, RecordKey::Time] {
            if parts.seen & key.bit() == 0 {
                self.faults.push(NOWHERE, FaultCode::Missing, index, &[key.name()]);
            }
        }
        let mut accepted = false;
        if self.is_sound() {
            let record = u32::try_from(index).expect("bounded by the records of a batch");
            match (measurement, parts.time_ns, series) {
                (Some(measurement), Some(sent_ns), Some(series)) if !rejected => {
                    accepted = true;
                    let time_ns = self.batch.columns.clamp(sent_ns);
                    let cells_table = self.cells_table;
                    let row = AcceptedRecord { record, measurement, series, time_ns, cells_table };
                    self.batch.columns.accept(&row, &mut self.cells);
                }
                _ => self.batch.columns.batch().rejected_indices.push(record),
            }
        }
        self.faults.end_record();
        Ok(accepted)
    }
}

#[inline]
fn record_key<'a>(scan: &mut Scanner<'a>) -> JsonResult<RecordKey<'a>> {
    if scan.take_prefix(b"\"time\"") {
        return Ok(RecordKey::Time);
    }
    if scan.take_prefix(b"\"tags\"") {
        return Ok(RecordKey::Tags);
    }
    if scan.take_prefix(b"\"fields\"") {
        return Ok(RecordKey::Fields);
    }
    if scan.take_prefix(b"\"measurement\"") {
        return Ok(RecordKey::Measurement);
    }
    let name = scan.string()?;
    Ok(match &*name {
        "measurement" => RecordKey::Measurement,
        "time" => RecordKey::Time,
        "tags" => RecordKey::Tags,
        "fields" => RecordKey::Fields,
        _ => RecordKey::Other(name),
    })
}

/// Returns a string. If the value is not a string, skips it and returns `None`.
#[inline]
fn string_value<'a>(scan: &mut Scanner<'a>) -> JsonResult<Option<Cow<'a, str>>> {
    if scan.peek() == b'"' {
        return scan.string().map(Some);
    }
    scan.at = scan.value_end(RECORD_DEPTH)?;
    Ok(None)
}
