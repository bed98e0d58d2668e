//! Records by their shape, see [`crate::wire::shape`].
//!
//! This gives what the rules would give: the text around a value is the same, each value is a
//! whole JSON value, and the text behind it begins with what ends a value.

use super::array::Parser;
use super::scan::Scanner;
use super::series::{first_brace_end, plain_tags};
use crate::model::batch::FieldType;
use crate::model::time::TimeReader;
use crate::wire::columns::Value;
use crate::wire::rules::{is_stored, series_name};
use crate::wire::series::{SeriesFinder, Unknown};
use crate::wire::shape::{Shape, Shaped, SlotValue, ValueColumns, Values};

/// What a slot of a shape holds.
#[derive(PartialEq)]
pub(super) enum Part {
    /// The text of the time, without its quotes.
    Time,
    /// The object of the tags.
    Tags,
    /// A number.
    Double,
    /// The value of a field of another type.
    Other(FieldType),
}

impl<'a> Parser<'a, '_> {
    /// Accepts the record that begins here if it has a known shape; the place behind it.
    #[inline]
    pub(super) fn shaped_record(&mut self, scan: Scanner<'a>) -> Option<usize> {
        if !self.is_sound() {
            return None;
        }
        let Self { columns, series, times, values, .. } = self;
        let (shape, shaped) = self.shapes.find(|shape| {
            let measurement = columns.measurement(shape.table)?;
            read_shaped(scan, shape, (measurement, series), times, values)
        })?;
        let series = match shaped.series {
            Ok(series) => series,
            Err(unknown) => {
                let tags = scan.text.get(shaped.tags)?;
                let pairs = plain_tags(tags)?;
                let measurement = columns.measurement(shape.table)?;
                let name = series_name(measurement, pairs, self.tenant_key, self.limits)?;
                series.add(name, unknown, measurement, tags.as_bytes())
            }
        };
        let time_ns = columns.clamp(shaped.sent_ns);
        columns.accept_known(shape.table, series, time_ns, &shape.columns, values);
        Some(shaped.end)
    }

    /// Remembers the shape of the record from `start` to `end`, which was just accepted.
    pub(super) fn learn_shape(&mut self, measurement: &str, start: usize, end: usize) {
        // Without its own time and tags, a record says too little for the fast way.
        let has = |value| self.slots.iter().any(|slot| slot.value == value);
        if self.shapes.wants_another()
            && has(SlotValue::Time)
            && has(SlotValue::Tags)
            && self.columns.is_complete()
            && let Some(shape) = self.shape(measurement, start, end)
        {
            self.shapes.learn(shape);
        }
    }

    fn shape(&self, measurement: &str, start: usize, end: usize) -> Option<Shape<Part>> {
        let mut columns = ValueColumns::default();
        let mut cells = self.cells.iter();
        let mut slots = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let part = match slot.value {
                SlotValue::Time => Part::Time,
                SlotValue::Tags => Part::Tags,
                SlotValue::Field => {
                    let cell = cells.next()?;
                    if let Value::Float(_) = cell.value {
                        columns.doubles.push(cell.column);
                        Part::Double
                    } else {
                        columns.others.push(cell.column);
                        Part::Other(cell.value.field_type())
                    }
                }
            };
            slots.push((slot.place.start - start..slot.place.end - start, part));
        }
        let record = self.text.as_bytes().get(start..end)?;
        let head = self.series.head(measurement);
        Shape::new(record, slots.into_iter(), (self.columns.last_table()?, columns), head)
    }
}

/// Reads the record if it has this shape and would be accepted.
fn read_shaped<'a>(
    mut scan: Scanner<'a>,
    shape: &Shape<Part>,
    (measurement, series): (&str, &mut SeriesFinder<'_>),
    times: &mut TimeReader,
    values: &mut Values<'a>,
) -> Option<Shaped> {
    let mut shaped = Shaped { series: Ok(0), tags: 0..0, sent_ns: 0, end: 0 };
    values.clear();
    for (text, part) in &shape.parts {
        scan.at += text.length_in(scan.rest())?;
        match part {
            Part::Double => {
                values.doubles.push(scan.double().ok().filter(|value| value.is_finite())?);
            }
            Part::Other(field_type) => {
                let value = simple_value(&mut scan)?;
                if value.field_type() != *field_type {
                    return None;
                }
                values.others.push(value);
            }
            Part::Time => {
                let length;
                (shaped.sent_ns, length) = match times.begins(scan.rest()) {
                    Some(found) => found,
                    None => any_time(scan, times)?,
                };
                if !is_stored(shaped.sent_ns) {
                    return None;
                }
                scan.at += length;
            }
            Part::Tags => {
                let length;
                (shaped.series, length) = match series.find_next(&shape.head, scan.rest()) {
                    Some((found, length)) => (Ok(found), length),
                    None => find_tags(scan, measurement, series)?,
                };
                shaped.tags = scan.at..scan.at + length;
                scan.at += length;
            }
        }
    }
    shaped.end = scan.at + shape.last.length_in(scan.rest())?;
    Some(shaped)
}

/// The time that begins here, which is not like the one before, and its length.
fn any_time(scan: Scanner<'_>, times: &mut TimeReader) -> Option<(i64, usize)> {
    let text = scan.bytes().get(scan.at..scan.plain_end(scan.at))?;
    Some((times.parse_ns(text)?, text.len()))
}

/// The series of the tags that begin here, and their length. If it is known that is right, see
/// [`Parser::tags`], else they end at a brace that may be within a text.
fn find_tags(
    scan: Scanner<'_>,
    measurement: &str,
    series: &mut SeriesFinder<'_>,
) -> Option<(Result<u32, Unknown>, usize)> {
    let length = first_brace_end(scan.rest())?;
    Some((series.find(measurement, scan.rest().get(..length)?), length))
}

/// A field value that is no number, and needs no thought.
#[inline]
fn simple_value<'a>(scan: &mut Scanner<'a>) -> Option<Value<'a>> {
    match scan.peek() {
        b'"' => scan.string().ok().map(Value::Text),
        b't' => scan.literal(b"true").ok().map(|()| Value::Bool(true)),
        b'f' => scan.literal(b"false").ok().map(|()| Value::Bool(false)),
        _ => None,
    }
}
