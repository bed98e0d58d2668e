//! Record templates of JSON.
//!
//! A match means what the rules would give: the text around a value is the same, each value is a
//! whole JSON value, and the text after it begins with what ends a value.

use super::{Match, Part, Template, Templates};
use crate::model::batch::FieldType;
use crate::model::time::TimeReader;
use crate::wire::builder::BatchBuilder;
use crate::wire::rules::{Tags, is_stored, series_name};
use crate::wire::series::{SeriesFinder, Unknown};
use crate::wire::tokens::json::Scanner;
use crate::wire::value::{Cell, RowValues, Value};

/// Tags for which there is room at first.
const TAGS_EXPECTED: usize = 8;

impl<'a> Templates<'a, FieldType> {
    /// Accepts the record that begins here into `batch` if it matches a template; the offset after it.
    #[inline]
    pub(crate) fn accept(
        &mut self,
        scan: Scanner<'a>,
        batch: &mut BatchBuilder<'_>,
        times: &mut TimeReader,
    ) -> Option<usize> {
        let BatchBuilder { limits, tenant_key, columns, series } = batch;
        let (template, values, found) = self.find(|template, values| {
            let measurement = columns.measurement(template.table)?;
            read(scan, template, (measurement, series), times, values)
        })?;
        let series = match found.series {
            Ok(series) => series,
            Err(unknown) => {
                let tags = scan.text.get(found.tags)?;
                let measurement = columns.measurement(template.table)?;
                let name = series_name(measurement, plain_tags(tags)?, tenant_key, limits)?;
                series.add(name, unknown, measurement, tags.as_bytes())
            }
        };
        let time_ns = columns.clamp(found.sent_ns);
        columns.accept_known(template.table, series, time_ns, &template.columns, values);
        Some(found.end)
    }

    /// Learns the template of the record from `start` to `end`, which was just accepted.
    pub(crate) fn learn(
        &mut self,
        text: &str,
        (start, end): (usize, usize),
        measurement: &str,
        batch: &BatchBuilder<'_>,
        cells: &[Cell<'_>],
    ) {
        let record = text.as_bytes().get(start..end).unwrap_or_default();
        self.learn_from((record, start), measurement, batch, cells, |slot, cell| {
            let part = match cell.value.field_type() {
                FieldType::Float => Part::Double,
                other => Part::Other(other),
            };
            Some((slot, part))
        });
    }
}

/// Reads the record if it matches `template` and would be accepted.
fn read<'a>(
    mut scan: Scanner<'a>,
    template: &Template<FieldType>,
    (measurement, series): (&str, &mut SeriesFinder<'_>),
    times: &mut TimeReader,
    values: &mut RowValues<'a>,
) -> Option<Match> {
    let mut found = Match { series: Ok(0), tags: 0..0, sent_ns: 0, end: 0 };
    values.clear();
    for (text, part) in &template.parts {
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
                (found.sent_ns, length) = match times.begins(scan.rest()) {
                    Some(time) => time,
                    None => any_time(scan, times)?,
                };
                if !is_stored(found.sent_ns) {
                    return None;
                }
                scan.at += length;
            }
            Part::Tags => {
                let length;
                (found.series, length) =
                    match series.find_next(&template.raw_key_start, scan.rest()) {
                        Some((series, length)) => (Ok(series), length),
                        None => find_tags(scan, measurement, series)?,
                    };
                found.tags = scan.at..scan.at + length;
                scan.at += length;
            }
        }
    }
    found.end = scan.at + template.last.length_in(scan.rest())?;
    Some(found)
}

/// The time that begins here, which is in another minute than the one before, and its length.
fn any_time(scan: Scanner<'_>, times: &mut TimeReader) -> Option<(i64, usize)> {
    let text = scan.bytes().get(scan.at..scan.plain_end(scan.at))?;
    Some((times.parse_ns(text)?, text.len()))
}

/// The series of the tags that begin here, and their length. A known series has complete tags; of an
/// unknown one they end at the first brace, which may be within a string.
fn find_tags(
    scan: Scanner<'_>,
    measurement: &str,
    series: &mut SeriesFinder<'_>,
) -> Option<(Result<u32, Unknown>, usize)> {
    let length = scan.first_brace_length()?;
    Some((series.find(measurement, scan.rest().get(..length)?), length))
}

/// Keys and values of the object that `text` is, if all values are strings and the syntax is right.
/// The same key may come twice.
fn plain_tags(text: &str) -> Option<Tags<'_>> {
    let mut pairs = Vec::with_capacity(TAGS_EXPECTED);
    let mut scan = Scanner::new(text, 0);
    scan.expect(b'{').ok()?;
    let mut more = scan.first(b'}');
    while more {
        let key = scan.string().ok()?;
        scan.colon().ok()?;
        pairs.push((key, scan.string().ok()?));
        more = scan.next(b'}').ok()?;
    }
    (scan.at == text.len()).then_some(pairs)
}

/// A field value that is no number, and is of a type that fields have.
#[inline]
fn simple_value<'a>(scan: &mut Scanner<'a>) -> Option<Value<'a>> {
    match scan.peek() {
        b'"' => scan.string().ok().map(Value::Text),
        b't' => scan.literal(b"true").ok().map(|()| Value::Bool(true)),
        b'f' => scan.literal(b"false").ok().map(|()| Value::Bool(false)),
        _ => None,
    }
}
