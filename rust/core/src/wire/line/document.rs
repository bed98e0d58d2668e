//! The whole body: lines.

use super::parser::LineParser;
use crate::model::batch::ParseResult;
use crate::model::fault::{Fault, FaultCode, LocationStep};
use crate::model::limits::WriteLimits;
use crate::model::raw_keys::RawKeyCache;
use crate::wire::ParseContext;
use crate::wire::mapping::Adapter;
use crate::wire::precision::Precision;
use crate::wire::tokens::json::Scanner;
use crate::wire::tokens::line::{Backslashes, line_ends, line_length};
use crate::wire::tokens::utf8::{BYTE_ORDER_MARK, utf8, without_mark};

/// Reads lines whose times are in units of `precision` into a batch.
///
/// # Errors
/// Returns [`crate::model::fault::BatchRefusal`] for too many records, faults, the content of tags
/// or the number of fields, in this order. Faults are located by the index of their record. Lines
/// without a record do not count.
///
/// # Panics
/// Panics if `context.limits.batch_records_max` exceeds [`crate::model::limits::BLOCK_ROWS_MAX`].
pub fn parse_lines(body: &[u8], precision: Precision, context: ParseContext<'_>) -> ParseResult {
    let (text, is_text) = text(body);
    let mut parser = LineParser::new(text, precision, context);
    parser.lines();
    if !is_text {
        parser.faults.push(text.len(), FaultCode::LineInvalid, parser.received, &[]);
        parser.faults.end_record();
        parser.received += 1;
    }
    let is_ended = body.is_empty() || body.ends_with(b"\n");
    let line_count = parser.line_count + usize::from(!is_ended);
    parser.faults.check(parser.received, context.limits.batch_records_max)?;
    let mut batch = parser.batch.finish()?;
    batch.line_count = line_count;
    Ok(batch)
}

/// Reads lines as [`parse_lines`] does, from a client whose names are mapped. A fault rejects only
/// its record, and is noted in [`Batch::dropped`](crate::model::batch::Batch::dropped).
///
/// # Errors
/// Returns [`crate::model::fault::BatchRefusal::TooManyRecords`].
///
/// # Panics
/// Panics as [`parse_lines`] does.
pub fn parse_adapted_lines(
    body: &[u8],
    (precision, backslashes): (Precision, Backslashes),
    adapter: Adapter<'_>,
    context: ParseContext<'_>,
) -> ParseResult {
    let (first, mut is_text) = text(body);
    let parser = LineParser::new(first, precision, context.of_shared_names(body));
    let mut parser = parser.adapted(adapter, backslashes);
    let mut rest = body.get(mark_length(body) + first.len()..).unwrap_or_default();
    loop {
        parser.lines();
        if is_text {
            break;
        }
        parser.reject(Fault { code: FaultCode::LineInvalid, loc: vec![LocationStep::Index(0)] });
        parser.received += 1;
        let length = line_length(rest);
        parser.line_count += usize::from(length < rest.len());
        rest = rest.get(length + 1..).unwrap_or_default();
        (parser.text, is_text) = text(rest);
        rest = rest.get(mark_length(rest) + parser.text.len()..).unwrap_or_default();
    }
    parser.faults.check(parser.received, context.limits.batch_records_max)?;
    let line_count = parser.line_count;
    let mut batch = parser.batch.finish()?;
    batch.line_count = line_count;
    Ok(batch)
}

/// Returns the length of the byte order mark at the start of `body`, 0 without a mark.
fn mark_length(body: &[u8]) -> usize {
    utf8(body.get(..3).unwrap_or_default()).map_or(0, without_mark)
}

/// Returns the offsets of the records of `body` as [`parse_lines`] counts them: start, end, and the
/// number of the line, from 0. Also returns the start of the first record with a text that does not
/// end, if there is such a record. A line that is not UTF-8 counts as a record.
#[must_use]
pub fn line_records(body: &[u8]) -> (Vec<(usize, usize, usize)>, Option<usize>) {
    let limits = WriteLimits { batch_records_max: 0, ..WriteLimits::default() };
    let (mut records, mut open_at, mut line) = (Vec::new(), None, 0);
    let mut start = 0;
    while let Some(rest) = body.get(start..).filter(|rest| !rest.is_empty()) {
        let (text, is_text) = text(rest);
        let mark = mark_length(rest);
        let names = RawKeyCache::default();
        let mut parser = LineParser::new(
            text,
            Precision::Nanoseconds,
            ParseContext::new(&names, &limits, "", 0),
        );
        parser.lines_with(|(from, to), at| {
            records.push((start + mark + from, start + mark + to, line + at));
        });
        open_at = open_at.or(parser.open_at.map(|at| start + mark + at));
        line += parser.line_count;
        start += mark + text.len();
        if !is_text {
            let length = line_length(body.get(start..).unwrap_or_default());
            records.push((start, start + length, line));
            line += 1;
            start += length + 1;
        }
    }
    (records, open_at)
}

/// Returns the body and true if all of it is UTF-8. Otherwise returns the lines before the first
/// line that is not, and false.
fn text(body: &[u8]) -> (&str, bool) {
    let (text, is_text) = match utf8(body) {
        Ok(text) => (text, true),
        Err(error) => {
            let valid = body.get(..error.valid_up_to()).unwrap_or_default();
            let end = valid.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            (valid.get(..end).and_then(|lines| utf8(lines).ok()).unwrap_or_default(), false)
        }
    };
    (text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text), is_text)
}

impl LineParser<'_, '_> {
    /// Reads all lines.
    fn lines(&mut self) {
        self.lines_with(|_, _| ());
    }

    /// Reads all lines. Calls `tell` for each record with its start, its end and the number of its
    /// line.
    #[inline]
    fn lines_with(&mut self, mut tell: impl FnMut((usize, usize), usize)) {
        let mut scan = Scanner::new(self.text, 0);
        while to_record(&mut scan, &mut self.line_count) {
            let start = scan.at;
            let by_template = if self.is_sound() {
                let Self { templates, batch, precision, backslashes, adapter, .. } = self;
                templates.accept(scan, batch, (*precision, *backslashes), adapter.is_some())
            } else {
                None
            };
            scan.at = by_template.unwrap_or_else(|| self.record(scan));
            tell((start, scan.at), self.line_count);
            if self.has_texts {
                let record = self.text.as_bytes().get(start..scan.at).unwrap_or_default();
                self.line_count += line_ends(record);
            }
            self.received += 1;
        }
    }
}

/// Goes to the next record and counts the ends of lines before it. Returns false if there is no
/// more record.
#[inline]
fn to_record(scan: &mut Scanner<'_>, line_count: &mut usize) -> bool {
    loop {
        match scan.peek() {
            b'\n' => {
                *line_count += 1;
                scan.at += 1;
            }
            b' ' | b'\t' => scan.at += 1,
            b'\r' if matches!(scan.rest(), [_] | [_, b'\n', ..]) => scan.at += 1,
            b'#' => scan.at += line_length(scan.rest()),
            _ => return scan.at < scan.text.len(),
        }
    }
}
