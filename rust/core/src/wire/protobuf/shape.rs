//! Records by their shape, see [`crate::wire::shape`].
//!
//! This gives what the rules would give: the bytes around the values are the same, each value is as
//! long as it was or tells its own length, and the record ends behind the last.

use super::field::{UNSET, field_value, is_not_finite};
use super::message::Parser;
use super::record::{Timestamp, tags_run};
use super::scan::{LAST_BYTE_MAX, Reader};
use crate::model::batch::FieldType;
use crate::wire::columns::{Cell, Value};
use crate::wire::prefix::Prefix;
use crate::wire::rules::is_stored;
use crate::wire::series::SeriesFinder;
use crate::wire::shape::{Shape, Shaped, Slot, SlotValue, ValueColumns, Values};

const DOUBLE_BYTES: usize = 8;

/// What a slot of a shape holds.
#[derive(PartialEq)]
pub(super) enum Part {
    /// The length of the time and the time.
    Time,
    /// All entries of the tags.
    Tags,
    /// The eight bytes of a double.
    Double,
    /// An entry of `fields` without its tag: its length, then these bytes, which are its key and the
    /// tag of its value, then the value, which is of this type.
    Other(Prefix, FieldType),
}

impl<'a> Parser<'a, '_> {
    /// Accepts the record that `text` begins with, of `length` bytes, if it has a known shape;
    /// whether it has.
    #[inline]
    pub(super) fn shaped_record(&mut self, text: &'a [u8], length: usize) -> bool {
        if !self.is_sound() {
            return false;
        }
        let Self { columns, series, values, .. } = self;
        let found = self.shapes.find(|shape| {
            let measurement = columns.measurement(shape.table)?;
            read_shaped(text, shape, (measurement, series), values)
                .filter(|shaped| shaped.end == length)
        });
        let Some((shape, shaped)) = found else { return false };
        let Ok(series) = shaped.series else { return false };
        let time_ns = columns.clamp(shaped.sent_ns);
        columns.accept_known(shape.table, series, time_ns, &shape.columns, values);
        true
    }

    /// Remembers the shape of `record`, which was just accepted.
    pub(super) fn learn_shape(&mut self, measurement: &str, record: &[u8]) {
        // Without its own time and tags, a record says too little for the fast way; with them in
        // pieces, or a key that comes twice, too much.
        let count = |value| self.slots.iter().filter(|slot| slot.value == value).count();
        if self.shapes.wants_another()
            && count(SlotValue::Time) == 1
            && count(SlotValue::Tags) == 1
            && count(SlotValue::Field) == self.cells.len()
            && self.columns.is_complete()
            && let Some(shape) = self.shape(measurement, record)
        {
            self.shapes.learn(shape);
        }
    }

    fn shape(&self, measurement: &str, record: &[u8]) -> Option<Shape<Part>> {
        let mut columns = ValueColumns::default();
        let mut cells = self.cells.iter();
        let mut slots = Vec::with_capacity(self.slots.len());
        for Slot { place, value } in &self.slots {
            let mut place = place.clone();
            let part = match value {
                SlotValue::Time => Part::Time,
                SlotValue::Tags => Part::Tags,
                SlotValue::Field => {
                    let cell = cells.next()?;
                    let part = field_part(record.get(place.clone())?, cell)?;
                    if part == Part::Double {
                        place.start = place.end - DOUBLE_BYTES;
                        columns.doubles.push(cell.column);
                    } else {
                        columns.others.push(cell.column);
                    }
                    part
                }
            };
            slots.push((place, part));
        }
        let head = self.series.head(measurement);
        Shape::new(record, slots.into_iter(), (self.columns.last_table()?, columns), head)
    }
}

/// What an entry of `fields`, from its length on, holds for the cell that was made of it; `None`
/// where it is not its key and its value and nothing else, with lengths of a byte each.
fn field_part(entry: &[u8], cell: &Cell<'_>) -> Option<Part> {
    let (length, content) = entry.split_first()?;
    let key_length = u8::try_from(cell.name.len()).ok()?;
    let key = [&[0x0a, key_length], cell.name.as_bytes(), &[0x12]].concat();
    let (value_length, value) = content.strip_prefix(&*key)?.split_first()?;
    let is_plain = *length <= LAST_BYTE_MAX
        && usize::from(*length) == content.len()
        && usize::from(*value_length) == value.len();
    let field_type = cell.value.field_type();
    is_plain.then(|| match value {
        [0x09, double @ ..] if double.len() == DOUBLE_BYTES => Part::Double,
        _ => Part::Other(Prefix::new(&key), field_type),
    })
}

/// Reads the record that `text` begins with if it has this shape and would be accepted.
fn read_shaped<'a>(
    text: &'a [u8],
    shape: &Shape<Part>,
    (measurement, series): (&str, &mut SeriesFinder<'_>),
    values: &mut Values<'a>,
) -> Option<Shaped> {
    let mut shaped = Shaped { series: Ok(0), tags: 0..0, sent_ns: 0, end: 0 };
    let mut reader = Reader::new(text);
    values.clear();
    for (between, part) in &shape.parts {
        reader.take(between.length_in(reader.rest)?).ok()?;
        match part {
            Part::Double => {
                values.doubles.push(reader.double().ok().filter(|value| value.is_finite())?);
            }
            Part::Other(key, field_type) => {
                let value = entry_value(reader.delimited().ok()?, key)?;
                if value.field_type() != *field_type || is_not_finite(&value) {
                    return None;
                }
                values.others.push(value);
            }
            Part::Time => {
                let mut time = Timestamp::default();
                time.merge(reader.delimited().ok()?).ok()?;
                shaped.sent_ns = time.ns().filter(|time_ns| is_stored(*time_ns))?;
            }
            Part::Tags => {
                if let Some((found, length)) = series.find_next(&shape.head, reader.rest) {
                    shaped.series = Ok(found);
                    reader.take(length).ok()?;
                } else {
                    // Where these are no tags, no series is spelled like them.
                    let tags = tags_run(&mut reader).ok()?;
                    shaped.series = series.find(measurement, tags);
                }
            }
        }
    }
    reader.take(shape.last.length_in(reader.rest)?).ok()?;
    shaped.end = text.len() - reader.rest.len();
    Some(shaped)
}

/// The value of an entry of `fields` whose key is as it was before, and which holds nothing else.
fn entry_value<'a>(entry: &'a [u8], key: &Prefix) -> Option<Value<'a>> {
    let mut reader = Reader::new(entry);
    reader.take(key.length_in(entry)?).ok()?;
    let mut value = UNSET;
    field_value(reader.delimited().ok()?, &mut value).ok()?;
    reader.is_empty().then_some(value)
}
