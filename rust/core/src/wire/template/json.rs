//! Record templates of JSON.
//!
//! A match has the result that the rules would have. The text around each value is the same. Each
//! value is a whole JSON value, and the text after it begins with a byte that ends a value.

use std::borrow::Cow;

use super::{LooseFields, Match, SlotContent, Template, Templates};
use crate::model::batch::FieldType;
use crate::model::time::TimeReader;
use crate::wire::builder::BatchBuilder;
use crate::wire::columns::Columns;
use crate::wire::prefix::Prefix;
use crate::wire::rules::{TagPairs, is_stored, series_name};
use crate::wire::series::{SeriesFinder, UnknownKey};
use crate::wire::tokens::json::Scanner;
use crate::wire::value::{CellValue, FieldCell, RecordValues};

/// Tags for which memory is reserved at first.
const TAGS_EXPECTED: usize = 8;

impl<'a> Templates<'a, FieldType> {
    /// Accepts the record that begins here into `batch` if it matches a template and `may_end`
    /// allows its end. Returns the offset after it. `may_end` also learns if the match is loose:
    /// the record may then have other white space than the template.
    #[inline]
    pub(crate) fn accept(
        &mut self,
        scan: Scanner<'a>,
        batch: &mut BatchBuilder<'_>,
        times: &mut TimeReader,
        may_end: impl Fn(usize, bool) -> bool,
    ) -> Option<usize> {
        let BatchBuilder { limits, tenant_key, columns, series, tags: templates } = batch;
        let (template, values, found) = self.find(|template, values| {
            let found = read(scan, template, (columns, series), times, values)?;
            may_end(found.end, found.is_loose).then_some(found)
        })?;
        let series = match found.series {
            Ok(series) => series,
            Err(unknown) => {
                let tags = scan.text.get(found.tags)?;
                let measurement = columns.measurement(template.table)?;
                if let Some(known) = templates.add((measurement, tags), tenant_key, unknown, series)
                {
                    known
                } else {
                    let pairs = plain_tags(tags)?;
                    let name = series_name(measurement, pairs.clone(), tenant_key, limits)?;
                    templates.learn(tags, &pairs);
                    series.add(&name, unknown, measurement, tags.as_bytes())
                }
            }
        };
        let time_ns = columns.clamp(found.sent_ns);
        if found.is_loose {
            let of_values = std::mem::take(&mut values.columns);
            columns.accept_known(template.table, series, time_ns, &of_values, values);
            values.columns = of_values;
        } else {
            columns.accept_known(template.table, series, time_ns, &template.columns, values);
        }
        Some(found.end)
    }

    /// Learns the template of the record from `start` to `end`, which was just accepted.
    pub(crate) fn learn(
        &mut self,
        text: &str,
        (start, end): (usize, usize),
        measurement: &str,
        batch: &BatchBuilder<'_>,
        cells: &[FieldCell<'_>],
    ) {
        let record = text.as_bytes().get(start..end).unwrap_or_default();
        let learned = self.learn_from((record, start), measurement, batch, cells, |slot, cell| {
            let part = match cell.value.field_type() {
                FieldType::Float => SlotContent::Double,
                other => SlotContent::Other(other),
            };
            Some((slot, part))
        });
        if let (Some(template), Some(first)) = (learned, cells.first()) {
            template.loose = LooseFields::of(template, &first.name);
        }
    }
}

impl LooseFields {
    /// Returns the fields of a template. `first` is the name of the first field.
    fn of(template: &Template<FieldType>, first: &str) -> Option<Self> {
        let is_field =
            |(_, part): &(Prefix, _)| matches!(part, SlotContent::Double | SlotContent::Other(_));
        let start = template.parts.iter().position(is_field)?;
        let count = template.columns.len();
        let text = template.parts.get(start)?.0.bytes().trim_ascii_end().strip_suffix(b":")?;
        // A name with escapes differs in the text.
        let key = [b"\"", first.as_bytes(), b"\""].concat();
        let before = text.trim_ascii_end().strip_suffix(&*key)?;
        Some(Self { parts: start..start + count, start: Prefix::new(before) })
    }
}

/// Reads the record if it matches `template` and would be accepted.
fn read<'a>(
    mut scan: Scanner<'a>,
    template: &Template<FieldType>,
    (columns, series): (&Columns, &mut SeriesFinder<'_>),
    times: &mut TimeReader,
    values: &mut RecordValues<'a>,
) -> Option<Match> {
    let mut found = Match::new();
    values.doubles.clear();
    values.others.clear();
    let mut known = (columns, series, times);
    for (index, (text, part)) in template.parts.iter().enumerate() {
        let Some(length) = text.length_in(scan.rest()) else {
            return read_loose(scan, (template, index), &mut known, found, values);
        };
        scan.at += length;
        read_part(&mut scan, (template, part), &mut known, &mut found, values)?;
    }
    let Some(length) = template.last.length_in(scan.rest()) else {
        return read_loose(scan, (template, template.parts.len()), &mut known, found, values);
    };
    found.end = scan.at + length;
    Some(found)
}

/// State for reading a record: columns, series, and the minute of the last time.
type RecordContext<'k, 'c> = (&'k Columns, &'k mut SeriesFinder<'c>, &'k mut TimeReader);

/// Reads the content of one slot.
#[expect(clippy::inline_always, reason = "its caller is a loop over few slots")]
#[inline(always)]
fn read_part<'a>(
    scan: &mut Scanner<'a>,
    (template, part): (&Template<FieldType>, &SlotContent<FieldType>),
    (columns, series, times): &mut RecordContext<'_, '_>,
    found: &mut Match,
    values: &mut RecordValues<'a>,
) -> Option<()> {
    match part {
        SlotContent::Double => {
            values.doubles.push(scan.double().ok().filter(|value| value.is_finite())?);
        }
        SlotContent::Other(field_type) => values.others.push(simple_value(scan, *field_type)?),
        SlotContent::Time => {
            let length;
            (found.sent_ns, length) = match times.begins(scan.rest()) {
                Some(time) => time,
                None => any_time(*scan, times)?,
            };
            if !is_stored(found.sent_ns) {
                return None;
            }
            scan.at += length;
        }
        SlotContent::Tags => {
            let length;
            (found.series, length) = match series.find_next(template.raw_key_start, scan.rest()) {
                Some((series, length)) => (Ok(series), length),
                None => find_tags(*scan, columns.measurement(template.table)?, series)?,
            };
            found.tags = scan.at..scan.at + length;
            scan.at += length;
        }
    }
    Some(())
}

/// Continues with a record that differs from `template` at the text before the part at `index`.
/// Only the order of its fields may differ, and some fields may be absent.
#[inline(never)]
fn read_loose<'a>(
    mut scan: Scanner<'a>,
    (template, index): (&Template<FieldType>, usize),
    known: &mut RecordContext<'_, '_>,
    mut found: Match,
    values: &mut RecordValues<'a>,
) -> Option<Match> {
    let LooseFields { parts, start } = template.loose.as_ref()?;
    if index < parts.start || index > parts.end {
        return None;
    }
    let mut more = true;
    if index == parts.start {
        scan.at += start.length_in(scan.rest())?;
    } else {
        more = scan.next(b'}').ok()?;
    }
    values.columns.copy_beginning(&template.columns, (values.doubles.len(), values.others.len()));
    scan.at = other_fields(scan, more, (known.0, template.table), values)?;
    // More fields than the template has need a new template.
    if values.columns.len() > parts.len() {
        return None;
    }
    // The text after the fields begins with their closing bracket.
    scan.at -= 1;
    for (text, part) in template.parts.get(parts.end..)? {
        scan.at += text.length_in(scan.rest())?;
        read_part(&mut scan, (template, part), known, &mut found, values)?;
    }
    found.end = scan.at + template.last.length_in(scan.rest())?;
    found.is_loose = true;
    Some(found)
}

/// Reads the fields from here on, if there are `more`. Looks up their keys in a table. Returns the
/// offset after their closing bracket.
fn other_fields<'a>(
    mut scan: Scanner<'a>,
    mut more: bool,
    (columns, table): (&Columns, u32),
    values: &mut RecordValues<'a>,
) -> Option<usize> {
    let mut seen = 0;
    for column in values.columns.iter() {
        seen |= column_bit(column)?;
    }
    while more {
        let Ok(Cow::Borrowed(name)) = scan.string() else { return None };
        let column = columns.find_column(table, name);
        let bit = column_bit(column).filter(|bit| seen & bit == 0)?;
        seen |= bit;
        scan.colon().ok()?;
        match columns.field_type(table, column)? {
            FieldType::Float => {
                values.doubles.push(scan.double().ok().filter(|value| value.is_finite())?);
                values.columns.doubles.push(column);
            }
            other => {
                values.others.push(simple_value(&mut scan, other)?);
                values.columns.others.push(column);
            }
        }
        more = scan.next(b'}').ok()?;
    }
    Some(scan.at)
}

/// Returns the bit of a column in a set of columns, if there is room for it.
#[inline]
const fn column_bit(column: u32) -> Option<u64> {
    1_u64.checked_shl(column)
}

/// Reads the time that begins here, in another minute than the previous time. Returns the time and
/// its length.
fn any_time(scan: Scanner<'_>, times: &mut TimeReader) -> Option<(i64, usize)> {
    let text = scan.bytes().get(scan.at..scan.plain_end(scan.at))?;
    Some((times.parse_ns(text)?, text.len()))
}

/// Finds the series of the tags that begin here. Returns it with the length of the tags. Tags of a
/// known series are complete. Unknown tags end at the first brace, which may be within a string.
fn find_tags(
    scan: Scanner<'_>,
    measurement: &str,
    series: &mut SeriesFinder<'_>,
) -> Option<(Result<u32, UnknownKey>, usize)> {
    // Known tags of the same length as the previous tags are complete, and need no parsing.
    let guessed = series.tags_length();
    let tags = scan.rest().get(..guessed).filter(|tags| tags.ends_with(b"}"));
    let guess = tags.map(|tags| series.find(measurement, tags));
    if let Some(Ok(known)) = guess {
        return Some((Ok(known), guessed));
    }
    let length = scan.first_brace_length()?;
    let found = guess.filter(|_| length == guessed);
    let tags = scan.rest().get(..length)?;
    Some((found.unwrap_or_else(|| series.find(measurement, tags)), length))
}

/// Returns keys and values of the object in `text`, if all values are strings and the syntax is
/// right. The same key may appear twice.
///
/// The text must not contain a line feed: if each record is a line, the line would end there.
fn plain_tags(text: &str) -> Option<TagPairs<'_>> {
    if text.contains('\n') {
        return None;
    }
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

/// Returns a field value of this type, which is not a number.
#[inline]
fn simple_value<'a>(scan: &mut Scanner<'a>, field_type: FieldType) -> Option<CellValue<'a>> {
    let value = match scan.peek() {
        b'"' => scan.string().ok().map(CellValue::Text),
        b't' => scan.literal(b"true").ok().map(|()| CellValue::Bool(true)),
        b'f' => scan.literal(b"false").ok().map(|()| CellValue::Bool(false)),
        _ => None,
    };
    value.filter(|value| value.field_type() == field_type)
}
