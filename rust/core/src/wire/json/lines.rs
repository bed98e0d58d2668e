//! Records as lines of a text.

use std::borrow::Cow;

use super::parser::{DocumentLayout, JsonParser};
use crate::model::batch::ParseResult;
use crate::model::fault::FaultCode;
use crate::wire::ParseContext;
use crate::wire::tokens::json::{JsonResult, Scanner};
use crate::wire::tokens::line::line_length;
use crate::wire::tokens::utf8::{replaced, without_mark};

/// Reads lines that are a JSON object each, as [`crate::wire::parse_json`] reads the elements of an
/// array. Lines with only white space are skipped and do not count.
///
/// # Errors
/// Returns the errors of such an array. A line that is not JSON or not UTF-8 is
/// [`FaultCode::JsonInvalid`] at the index of its record. The first fault of each record is
/// returned, of at most [`crate::model::limits::IMPORT_FAULTS_MAX`] records.
///
/// # Panics
/// Panics as [`crate::wire::parse_json`] does.
pub fn parse_json_lines(body: &[u8], context: ParseContext<'_>) -> ParseResult {
    let (text, wrong) = replaced(body);
    let mut parser = JsonParser::new((&text, DocumentLayout::Lines), context);
    let (received, line_count) = parser.lines(&wrong);
    let mut batch = parser.finish(received)?;
    batch.line_count = line_count;
    Ok(batch)
}

/// Returns the offsets of the records of `body` as [`parse_json_lines`] counts them: start, end,
/// and the number of the line, from 0. Example: the record of `"\n{}\n"` is (1, 3, 1).
#[must_use]
pub fn json_records(body: &[u8]) -> Vec<(usize, usize, usize)> {
    let mut records = Vec::new();
    let (text, _): (Cow<'_, str>, _) = replaced(body);
    let mut scan = Scanner::new(&text, without_mark(&text));
    let mut line = 0;
    while to_record(&mut scan, &mut line) {
        let start = scan.at;
        scan.at += line_length(scan.rest());
        let record = text.get(start..scan.at).unwrap_or_default();
        records.push((start, start + record.trim_ascii_end().len(), line));
    }
    records
}

impl<'a> JsonParser<'a, '_> {
    /// Reads all lines. Lines that contain an offset in `wrong` are not UTF-8. Returns the number
    /// of records and of lines.
    fn lines(&mut self, wrong: &[usize]) -> (usize, usize) {
        let records_max = self.batch.limits.batch_records_max;
        let mut scan = Scanner::new(self.text, without_mark(self.text));
        let (mut count, mut line) = (0, 0);
        let mut wrong = wrong.iter().copied().peekable();
        while to_record(&mut scan, &mut line) {
            let template_end = match wrong.peek() {
                None if count < records_max => self.line_by_template(scan),
                _ => None,
            };
            scan.at = if let Some(end) = template_end {
                end
            } else {
                let end = scan.at + line_length(scan.rest());
                let is_text = wrong.next_if(|at| *at < end).is_none();
                while wrong.next_if(|at| *at < end).is_some() {}
                // Too many records refuse the batch, so the other lines need no reading.
                if count < records_max {
                    self.line((scan.at, end), count, is_text);
                }
                end
            };
            count += 1;
        }
        let is_ended = self.text.is_empty() || self.text.ends_with('\n');
        (count, line + usize::from(!is_ended))
    }

    /// Accepts the line that begins here if it matches a template. Returns an offset between its
    /// record and the end of the line.
    #[inline]
    fn line_by_template(&mut self, scan: Scanner<'a>) -> Option<usize> {
        if !self.is_sound() {
            return None;
        }
        let is_one_line = |end| {
            let record = scan.bytes().get(scan.at..end);
            record.is_some_and(|record| !record.contains(&b'\n'))
        };
        let may_end =
            |end, is_loose: bool| ends_line(scan.bytes(), end) && (!is_loose || is_one_line(end));
        self.templates.accept(scan, &mut self.batch, &mut self.times, may_end)
    }

    /// Reads a line by the rules.
    fn line(&mut self, (start, end): (usize, usize), index: usize, is_text: bool) {
        let scan = Scanner::new(self.text.get(..end).unwrap_or_default(), start);
        let is_object = scan.peek() == b'{';
        let fault = if is_text && is_object {
            self.record(scan, index).is_err().then_some(FaultCode::JsonInvalid)
        } else if is_text && is_value(scan).is_ok() {
            Some(FaultCode::RecordType)
        } else {
            Some(FaultCode::JsonInvalid)
        };
        if let Some(code) = fault {
            self.faults.forget_record();
            self.faults.push(start, code, index, &[]);
            self.faults.end_record();
        }
    }
}

/// Checks that a line is exactly one value.
fn is_value(mut scan: Scanner<'_>) -> JsonResult<()> {
    scan.at = scan.value_end(1)?;
    if ends_line(scan.bytes(), scan.at) { Ok(()) } else { scan.error() }
}

/// Goes to the next record and counts the ends of lines before it. Returns false if there is no
/// more record.
#[inline]
fn to_record(scan: &mut Scanner<'_>, line: &mut usize) -> bool {
    loop {
        match scan.peek() {
            b'\n' => *line += 1,
            b' ' | b'\t' | b'\r' => {}
            _ => return scan.at < scan.text.len(),
        }
        scan.at += 1;
    }
}

/// Returns true if only white space comes before the end of the line.
#[inline]
pub(super) fn ends_line(bytes: &[u8], mut at: usize) -> bool {
    loop {
        match bytes.get(at) {
            None | Some(b'\n') => return true,
            Some(b' ' | b'\t' | b'\r') => at += 1,
            Some(_) => return false,
        }
    }
}
