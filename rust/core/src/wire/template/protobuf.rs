//! Record templates of protobuf.
//!
//! A match has the result that the rules would have. The bytes around the values are the same. Each
//! value has the same length as before or contains its length, and the record ends after the last
//! value.

use std::ops::Range;

use super::{Match, SlotContent, Template, Templates};
use crate::model::batch::FieldType;
use crate::wire::builder::BatchBuilder;
use crate::wire::prefix::Prefix;
use crate::wire::rules::is_stored;
use crate::wire::series::SeriesFinder;
use crate::wire::tokens::protobuf::{
    LAST_BYTE_MAX, MessageReader, Timestamp, UNSET, merge_field_value, tags_run,
};
use crate::wire::value::{CellValue, FieldCell, RecordValues};

const DOUBLE_BYTES: usize = 8;

/// An entry of `fields` without its field tag. It has a length, then these bytes (the key and the
/// field tag of the value), then a value of this type.
#[derive(PartialEq)]
pub(crate) struct MapEntry(Prefix, FieldType);

impl<'a> Templates<'a, MapEntry> {
    /// Accepts the record of `length` bytes at the start of `text` into `batch` if it matches a
    /// template. Returns true if it matched.
    #[inline]
    pub(crate) fn accept(
        &mut self,
        text: &'a [u8],
        length: usize,
        batch: &mut BatchBuilder<'_>,
    ) -> bool {
        let BatchBuilder { columns, series, .. } = batch;
        let found = self.find(|template, values| {
            let measurement = columns.measurement(template.table)?;
            read(text, template, (measurement, series), values).filter(|found| found.end == length)
        });
        let Some((template, values, found)) = found else { return false };
        let Ok(series) = found.series else { return false };
        let time_ns = columns.clamp(found.sent_ns);
        columns.accept_known(template.table, series, time_ns, &template.columns, values);
        true
    }

    /// Learns the template of `record`, which was just accepted.
    pub(crate) fn learn(
        &mut self,
        record: &[u8],
        measurement: &str,
        batch: &BatchBuilder<'_>,
        cells: &[FieldCell<'_>],
    ) {
        self.learn_from((record, 0), measurement, batch, cells, |slot, cell| {
            field_part(record.get(slot.clone())?, slot, cell)
        });
    }
}

/// Returns the part of an entry of `fields` that holds the value of `cell`. `slot` begins at the
/// length of the entry. Returns `None` if the entry is not exactly its key and its value with
/// lengths of a byte each.
fn field_part(
    entry: &[u8],
    slot: Range<usize>,
    cell: &FieldCell<'_>,
) -> Option<(Range<usize>, SlotContent<MapEntry>)> {
    let (length, content) = entry.split_first()?;
    let key_length = u8::try_from(cell.name.len()).ok()?;
    let key = [&[0x0a, key_length], cell.name.as_bytes(), &[0x12]].concat();
    let (value_length, value) = content.strip_prefix(&*key)?.split_first()?;
    let is_plain = *length <= LAST_BYTE_MAX
        && usize::from(*length) == content.len()
        && usize::from(*value_length) == value.len();
    is_plain.then(|| match value {
        [0x09, double @ ..] if double.len() == DOUBLE_BYTES => {
            (slot.end - DOUBLE_BYTES..slot.end, SlotContent::Double)
        }
        _ => (slot, SlotContent::Other(MapEntry(Prefix::new(&key), cell.value.field_type()))),
    })
}

/// Reads the record at the start of `text` if it matches `template` and would be accepted.
fn read<'a>(
    text: &'a [u8],
    template: &Template<MapEntry>,
    (measurement, series): (&str, &mut SeriesFinder<'_>),
    values: &mut RecordValues<'a>,
) -> Option<Match> {
    let mut found = Match::new();
    let mut reader = MessageReader::new(text);
    values.clear();
    for (between, part) in &template.parts {
        reader.take(between.length_in(reader.rest)?).ok()?;
        match part {
            SlotContent::Double => {
                values.doubles.push(reader.double().ok().filter(|value| value.is_finite())?);
            }
            SlotContent::Other(MapEntry(key, field_type)) => {
                let value = entry_value(reader.delimited().ok()?, key)?;
                if value.field_type() != *field_type || value.is_not_finite() {
                    return None;
                }
                values.others.push(value);
            }
            SlotContent::Time => {
                let mut time = Timestamp::default();
                time.merge(reader.delimited().ok()?).ok()?;
                found.sent_ns = time.ns().filter(|time_ns| is_stored(*time_ns))?;
            }
            SlotContent::Tags => {
                if let Some((known, length)) = series.find_next(template.raw_key_start, reader.rest)
                {
                    found.series = Ok(known);
                    reader.take(length).ok()?;
                } else {
                    // A raw key that is not tags belongs to no series.
                    let tags = tags_run(&mut reader).ok()?;
                    found.series = series.find(measurement, tags);
                }
            }
        }
    }
    reader.take(template.last.length_in(reader.rest)?).ok()?;
    found.end = text.len() - reader.rest.len();
    Some(found)
}

/// Returns the value of an entry of `fields` that has the same key as before and no other content.
fn entry_value<'a>(entry: &'a [u8], key: &Prefix) -> Option<CellValue<'a>> {
    let mut reader = MessageReader::new(entry);
    reader.take(key.length_in(entry)?).ok()?;
    let mut value = UNSET;
    merge_field_value(reader.delimited().ok()?, &mut value).ok()?;
    reader.is_empty().then_some(value)
}
