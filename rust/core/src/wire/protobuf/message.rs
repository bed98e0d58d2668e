//! The whole message: a list of records.

use super::field::{FieldsState, Layouts};
use super::scan::{Reader, Scan, delimited};
use super::series::FreshSeries;
use crate::batch::ParseResult;
use crate::fault::Refusal;
use crate::limits::{BLOCK_ROWS_MAX, WriteLimits};
use crate::spelling::SpellingCache;
use crate::wire::columns::{Cell, Columns};
use crate::wire::keys::KeySet;

/// `WriteRequest.records`
const RECORDS: u32 = delimited(1);

/// State of one parse; `'a` is the message, `'c` the caller's knowledge.
pub(super) struct Parser<'a, 'c> {
    pub(super) names: &'c SpellingCache,
    pub(super) limits: &'c WriteLimits,
    pub(super) tenant_key: &'c str,
    pub(super) columns: Columns,
    /// How senders lay out the fields of each column.
    pub(super) layouts: Layouts<'a>,
    /// Fields of the current record by column, as long as all are doubles where they are expected.
    pub(super) doubles: Vec<(u32, f64)>,
    /// Fields of the current record after the first other one, all of them; and the table that their columns refer to.
    pub(super) cells: Vec<Cell<'a>>,
    pub(super) cells_table: Option<u32>,
    pub(super) fields: FieldsState,
    /// Keys of `cells`, once a key may have come before.
    pub(super) keys: KeySet<'a>,
    pub(super) fresh: FreshSeries<'a>,
    /// Measurement of the record before: the next one is most likely the same.
    pub(super) measurement: &'a str,
    /// Records so far.
    pub(super) received: usize,
    /// Content that refuses the call, of the first faulty record (L10).
    pub(super) fault: Option<&'static str>,
}

/// Reads a serialized `WriteRequest` into a batch. Arguments are those of
/// [`crate::wire::parse_json`].
///
/// # Errors
/// In this order (L3): [`Refusal::InvalidInput`] for `payload` where the bytes are not the message
/// (L7), [`Refusal::TooManyRecords`], and [`Refusal::InvalidInput`] for the content of the first
/// faulty record: `entity_id`, `tags`, `fields`, `measurement`, `time` (L8 to L13).
///
/// # Panics
/// When `limits.batch_records_max` exceeds [`BLOCK_ROWS_MAX`].
pub fn parse_protobuf(
    body: &[u8],
    names: &SpellingCache,
    limits: &WriteLimits,
    tenant_key: &str,
    ingest_ns: i64,
) -> ParseResult {
    assert!(limits.batch_records_max <= BLOCK_ROWS_MAX, "a batch must fit one block");
    let mut parser = Parser {
        names,
        limits,
        tenant_key,
        columns: Columns::new(ingest_ns),
        layouts: Layouts::default(),
        doubles: Vec::new(),
        cells: Vec::new(),
        cells_table: None,
        fields: FieldsState::default(),
        keys: KeySet::default(),
        fresh: FreshSeries::default(),
        measurement: "",
        received: 0,
        fault: None,
    };
    if parser.message(body).is_err() {
        return Err(Refusal::InvalidInput { field: "payload" });
    }
    if parser.received > limits.batch_records_max {
        let (received, max) = (parser.received, limits.batch_records_max);
        return Err(Refusal::TooManyRecords { received, max });
    }
    match parser.fault {
        Some(field) => Err(Refusal::InvalidInput { field }),
        None => Ok(parser.columns.finish()),
    }
}

impl<'a> Parser<'a, '_> {
    fn message(&mut self, body: &'a [u8]) -> Scan<()> {
        let mut reader = Reader::new(body);
        while !reader.is_empty() {
            match reader.tag()? {
                RECORDS => {
                    self.record(reader.delimited()?)?;
                    self.received += 1;
                }
                other => reader.skip(other)?,
            }
        }
        Ok(())
    }

    /// Whether nothing refuses the call so far, so that records must be kept.
    pub(super) const fn is_sound(&self) -> bool {
        self.fault.is_none() && self.received < self.limits.batch_records_max
    }
}
