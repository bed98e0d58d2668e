//! The whole document: an array of records.

use super::parser::{DocumentLayout, JsonParser};
use crate::model::batch::ParseResult;
use crate::model::fault::{BatchRefusal, Fault, FaultCode, LocationStep};
use crate::wire::ParseContext;
use crate::wire::tokens::json::{JsonResult, Scanner, Syntax};
use crate::wire::tokens::utf8::{BYTE_ORDER_MARK, utf8};

/// Reads the JSON document `body` into a batch.
///
/// # Errors
/// Returns [`BatchRefusal::Faults`], [`BatchRefusal::TooManyRecords`] or
/// [`BatchRefusal::InvalidInput`], in the order of the pipeline: syntax of the whole document,
/// array, count, schema, content of tags, number of fields. A type conflict inside the batch is not
/// an error here but [`crate::model::batch::Batch::conflict`]. Too many fields for the tenant are
/// not an error here either.
///
/// # Panics
/// Panics if `context.limits.batch_records_max` exceeds [`crate::model::limits::BLOCK_ROWS_MAX`].
pub fn parse_json(body: &[u8], context: ParseContext<'_>) -> ParseResult {
    let text = utf8(body).map_err(|error| not_json(error.valid_up_to()))?;
    let start = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
    let mut parser = JsonParser::new((text, DocumentLayout::Array), context);
    let count = parser.document(start).map_err(|Syntax(at)| not_json(at))?;
    let Some(received) = count else {
        return Err(BatchRefusal::Faults(vec![Fault {
            code: FaultCode::ListType,
            loc: Vec::new(),
        }]));
    };
    parser.finish(received)
}

impl<'a> JsonParser<'a, '_> {
    /// Returns the batch of all `received` records, or its refusal.
    pub(super) fn finish(self, received: usize) -> ParseResult {
        self.faults.check(received, self.batch.limits.batch_records_max)?;
        self.batch.finish()
    }

    /// Reads the document that begins at `start`. Returns the number of elements, or `None` if it
    /// is not an array.
    fn document(&mut self, start: usize) -> JsonResult<Option<usize>> {
        let mut scan = Scanner::new(self.text, start);
        scan.skip_space();
        let mut count = None;
        if scan.peek() == b'[' {
            let elements;
            (elements, scan.at) = self.array(scan)?;
            count = Some(elements);
        } else {
            scan.at = scan.value_end(0)?;
        }
        scan.skip_space();
        if scan.at < scan.text.len() { scan.error() } else { Ok(count) }
    }

    /// Reads the array that begins here. Returns the number of elements, and the offset after the
    /// array.
    fn array(&mut self, mut scan: Scanner<'a>) -> JsonResult<(usize, usize)> {
        let records_max = self.batch.limits.batch_records_max;
        let mut count = 0;
        scan.expect(b'[')?;
        let mut more = scan.first(b']');
        while more {
            if count >= records_max {
                // The batch is refused: only its syntax and its size still matter.
                scan.at = scan.value_end(1)?;
            } else if let Some(end) = self.record_by_template(scan) {
                scan.at = end;
            } else if scan.peek() == b'{' {
                scan.at = self.record(scan, count)?;
            } else {
                let at = scan.at;
                scan.at = scan.value_end(1)?;
                self.faults.push(at, FaultCode::RecordType, count, &[]);
                self.faults.end_record();
            }
            count += 1;
            more = scan.next(b']')?;
        }
        Ok((count, scan.at))
    }

    /// Accepts the record that begins here if it matches a template. Returns the offset after the
    /// record.
    #[inline]
    fn record_by_template(&mut self, scan: Scanner<'a>) -> Option<usize> {
        if !self.is_sound() {
            return None;
        }
        self.templates.accept(scan, &mut self.batch, &mut self.times, |_, _| true)
    }
}

#[cold]
fn not_json(at: usize) -> BatchRefusal {
    BatchRefusal::Faults(vec![Fault {
        code: FaultCode::JsonInvalid,
        loc: vec![LocationStep::Index(at)],
    }])
}
