//! Record templates of line protocol.
//!
//! A match has the result that the rules would have. The text around the values is the same. Each
//! value is followed by a byte that ends it, and the line ends after the last value.

use super::{Match, SlotContent, Template, Templates};
use crate::wire::builder::BatchBuilder;
use crate::wire::precision::Precision;
use crate::wire::rules::{TagPairs, is_stored, series_name};
use crate::wire::series::{SeriesFinder, UnknownKey};
use crate::wire::tokens::json::Scanner;
use crate::wire::tokens::line::{
    Backslashes, boolean, integer, is_end, string, tag, tags_length, unquoted,
};
use crate::wire::value::{CellValue, FieldCell, RecordValues};

/// Kind of a value that is not a double as JSON writes doubles.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineValueKind {
    /// An integer. The `i` or `u` after it is text of the template.
    Signed,
    Unsigned,
    /// `true` or `false`, as [`boolean`] reads them.
    Bool,
    Text,
}

impl<'a> Templates<'a, LineValueKind> {
    /// Accepts the record that begins here into `batch` if it matches a template. Returns the
    /// offset of the end of its line. If names are `mapped`, a new series is left to the rules.
    #[inline]
    pub(crate) fn accept(
        &mut self,
        scan: Scanner<'a>,
        batch: &mut BatchBuilder<'_>,
        (precision, backslashes): (Precision, Backslashes),
        mapped: bool,
    ) -> Option<usize> {
        let BatchBuilder { limits, tenant_key, columns, series, .. } = batch;
        let (template, values, found) = self.find(|template, values| {
            read(scan, template, series, (precision, backslashes), values)
        })?;
        let series = match found.series {
            Ok(series) => series,
            Err(_) if mapped => return None,
            Err(unknown) => {
                let tags = scan.text.get(found.tags)?;
                let measurement = columns.measurement(template.table)?;
                let name =
                    series_name(measurement, all_tags(tags, backslashes)?, tenant_key, limits)?;
                series.add(&name, unknown, measurement, tags.as_bytes())
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
        cells: &[FieldCell<'_>],
    ) {
        let record = text.as_bytes().get(start..end).unwrap_or_default();
        self.learn_from((record, start), measurement, batch, cells, |slot, cell| {
            let kind = match (&cell.value, record.get(slot.end - 1)?) {
                (CellValue::Bool(_), _) => LineValueKind::Bool,
                (CellValue::Text(_), _) => LineValueKind::Text,
                (CellValue::Float(_), b'i') => LineValueKind::Signed,
                (CellValue::Float(_), b'u') => LineValueKind::Unsigned,
                (CellValue::Float(_), _) => return Some((slot, SlotContent::Double)),
            };
            let is_integer = matches!(kind, LineValueKind::Signed | LineValueKind::Unsigned);
            let end = slot.end - usize::from(is_integer);
            Some((slot.start..end, SlotContent::Other(kind)))
        });
    }
}

/// Reads the record if it matches `template` and would be accepted.
fn read<'a>(
    mut scan: Scanner<'a>,
    template: &Template<LineValueKind>,
    series: &mut SeriesFinder<'_>,
    (precision, backslashes): (Precision, Backslashes),
    values: &mut RecordValues<'a>,
) -> Option<Match> {
    let mut found = Match::new();
    values.clear();
    for (text, part) in &template.parts {
        scan.at += text.length_in(scan.rest())?;
        match part {
            SlotContent::Double => {
                values.doubles.push(scan.double().ok().filter(|value| value.is_finite())?);
            }
            SlotContent::Other(kind) => values.others.push(other_value(&mut scan, *kind)?),
            SlotContent::Time => {
                let (time, length) = integer(scan.rest()).ok()?;
                found.sent_ns = precision.instant_ns(time);
                if !is_stored(found.sent_ns) {
                    return None;
                }
                scan.at += length;
            }
            SlotContent::Tags => {
                let length;
                (found.series, length) = match series.find_next(template.raw_key_start, scan.rest())
                {
                    Some((series, length)) => (Ok(series), length),
                    None => find_tags(scan, template, series, backslashes)?,
                };
                found.tags = scan.at..scan.at + length;
                scan.at += length;
            }
        }
    }
    found.end = scan.at + template.last.length_in(scan.rest())?;
    is_end(scan.bytes(), found.end).then_some(found)
}

/// Finds the series of the tags that begin here, unless the name of the measurement continues.
/// Returns it with the length of the tags.
fn find_tags(
    scan: Scanner<'_>,
    template: &Template<LineValueKind>,
    series: &mut SeriesFinder<'_>,
    backslashes: Backslashes,
) -> Option<(Result<u32, UnknownKey>, usize)> {
    let length = tags_length(scan.rest(), backslashes);
    let length = length.filter(|_| matches!(scan.peek(), b',' | b' '))?;
    Some((series.find(&template.measurement, scan.rest().get(..length)?), length))
}

/// Returns keys and values of `tags`, if the syntax is right. The same key may appear twice.
fn all_tags(tags: &str, backslashes: Backslashes) -> Option<TagPairs<'_>> {
    let mut scan = Scanner::new(tags, 0);
    let mut pairs = Vec::new();
    while scan.take(b',') {
        pairs.push(tag(&mut scan, backslashes)?);
    }
    Some(pairs)
}

#[inline]
fn other_value<'a>(scan: &mut Scanner<'a>, kind: LineValueKind) -> Option<CellValue<'a>> {
    match kind {
        LineValueKind::Unsigned if scan.peek() == b'-' => None,
        LineValueKind::Signed | LineValueKind::Unsigned => {
            let (value, length) = integer(scan.rest()).ok()?;
            scan.at += length;
            #[expect(
                clippy::cast_precision_loss,
                reason = "numbers are stored as the nearest double"
            )]
            Some(CellValue::Float(value as f64))
        }
        LineValueKind::Bool => boolean(unquoted(scan)).map(CellValue::Bool),
        LineValueKind::Text if scan.peek() == b'"' => string(scan).map(CellValue::Text),
        LineValueKind::Text => None,
    }
}
