//! The whole document: an array of records.

use super::faults::Faults;
use super::scan::{Scan, Scanner, Syntax};
use std::str::Utf8Error;

use super::RAW_KEY_FORMAT;
use super::shape::Part;
use crate::model::batch::ParseResult;
use crate::model::fault::{Fault, FaultCode, Refusal, Step};
use crate::model::limits::{BLOCK_ROWS_MAX, WriteLimits};
use crate::model::raw_keys::RawKeyCache;
use crate::model::time::TimeReader;
use crate::wire::columns::{Cell, Columns};
use crate::wire::keys::KeySet;
use crate::wire::series::SeriesFinder;
use crate::wire::shape::{Shapes, Slot, Values};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// State of one parse; `'a` is the document, `'c` the caller's knowledge.
pub(super) struct Parser<'a, 'c> {
    pub(super) text: &'a str,
    pub(super) limits: &'c WriteLimits,
    pub(super) tenant_key: &'c str,
    pub(super) times: TimeReader,
    pub(super) columns: Columns,
    /// Fields of the current record, and the table that their columns refer to.
    pub(super) cells: Vec<Cell<'a>>,
    pub(super) cells_table: Option<u32>,
    /// Keys of the object `fields` or `tags` that is being read.
    pub(super) keys: KeySet<'a>,
    /// Whether `keys` holds those of `cells`.
    pub(super) keys_of_cells: bool,
    /// Unknown keys of the current record.
    pub(super) other_keys: KeySet<'a>,
    /// Values of the current record that vary from record to record.
    pub(super) slots: Vec<Slot>,
    pub(super) shapes: Shapes<Part>,
    /// Field values of the current record, while it is read by its shape.
    pub(super) values: Values<'a>,
    pub(super) series: SeriesFinder<'c>,
    pub(super) faults: Faults,
    /// Whether the content of some record's tags refuses the batch.
    pub(super) tags_refused: bool,
    /// Whether some record has too many fields.
    pub(super) fields_refused: bool,
}

/// Reads the JSON document `body` into a batch.
///
/// `raw_keys` holds the tenant's known series, under raw keys that earlier batches of this tenant
/// returned; tags that name the tenant are stamped with `tenant_key`. Times after
/// `ingest_ns` are clamped to it.
///
/// # Errors
/// [`Refusal::Faults`], [`Refusal::TooManyRecords`] or [`Refusal::InvalidInput`], in the order of
/// the pipeline: syntax of the whole document, array, count, schema, content of tags, number of
/// fields. A type conflict inside the batch is not an error here but
/// [`crate::model::batch::Batch::conflict`], and neither are more fields than a tenant may have.
///
/// # Panics
/// When `limits.batch_records_max` exceeds [`BLOCK_ROWS_MAX`].
pub fn parse_json(
    body: &[u8],
    raw_keys: &RawKeyCache,
    limits: &WriteLimits,
    tenant_key: &str,
    ingest_ns: i64,
) -> ParseResult {
    assert!(limits.batch_records_max <= BLOCK_ROWS_MAX, "a batch must fit one block");
    let text = text(body).map_err(|error| not_json(error.valid_up_to()))?;
    let start = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
    let mut parser = Parser {
        text,
        limits,
        tenant_key,
        times: TimeReader::default(),
        columns: Columns::new(ingest_ns, limits),
        cells: Vec::new(),
        cells_table: None,
        keys: KeySet::default(),
        keys_of_cells: false,
        other_keys: KeySet::default(),
        slots: Vec::new(),
        shapes: Shapes::default(),
        values: Values::default(),
        series: SeriesFinder::new(RAW_KEY_FORMAT, raw_keys),
        faults: Faults::default(),
        tags_refused: false,
        fields_refused: false,
    };
    let count = parser.document(start).map_err(|Syntax(at)| not_json(at))?;
    let Some(received) = count else {
        return Err(Refusal::Faults(vec![Fault { code: FaultCode::ListType, loc: Vec::new() }]));
    };
    if received > limits.batch_records_max {
        return Err(Refusal::TooManyRecords { received, max: limits.batch_records_max });
    }
    if !parser.faults.are_none() {
        return Err(Refusal::Faults(parser.faults.into_list()));
    }
    if parser.tags_refused {
        return Err(Refusal::InvalidInput { field: "tags" });
    }
    if parser.fields_refused {
        return Err(Refusal::InvalidInput { field: "fields" });
    }
    Ok(parser.columns.finish(parser.series.into_new()))
}

/// The body as UTF-8. Most bodies are ASCII, which is checked several times as fast.
#[expect(unsafe_code, reason = "the standard library has no stable safe way from ASCII to text")]
fn text(body: &[u8]) -> Result<&str, Utf8Error> {
    if body.is_ascii() {
        // SAFETY: `is_ascii` has just said that every byte is below 0x80, and any sequence of such
        // bytes is UTF-8, one character each.
        return Ok(unsafe { std::str::from_utf8_unchecked(body) });
    }
    std::str::from_utf8(body)
}

impl<'a> Parser<'a, '_> {
    /// Whether nothing refuses the batch so far, so that records must be kept.
    #[inline]
    pub(super) fn is_sound(&self) -> bool {
        self.faults.are_none() && !self.tags_refused && !self.fields_refused
    }

    /// Passes the document that begins at `start`; the number of elements, or `None` if it is
    /// not an array.
    fn document(&mut self, start: usize) -> Scan<Option<usize>> {
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

    fn array(&mut self, mut scan: Scanner<'a>) -> Scan<(usize, usize)> {
        let mut count = 0;
        scan.expect(b'[')?;
        let mut more = scan.first(b']');
        while more {
            if count >= self.limits.batch_records_max {
                // The batch is refused; only its syntax and its size still matter.
                scan.at = scan.value_end(1)?;
            } else if let Some(end) = self.shaped_record(scan) {
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
}

#[cold]
fn not_json(at: usize) -> Refusal {
    Refusal::Faults(vec![Fault { code: FaultCode::JsonInvalid, loc: vec![Step::Index(at)] }])
}
