//! The whole message: a list of records.

use super::RAW_KEY_FORMAT;
use super::field::FieldsState;
use super::scan::{Reader, Scan, delimited};
use super::shape::Part;
use crate::model::batch::ParseResult;
use crate::model::fault::Refusal;
use crate::model::limits::{BLOCK_ROWS_MAX, WriteLimits};
use crate::model::raw_keys::RawKeyCache;
use crate::wire::columns::{Cell, Columns};
use crate::wire::keys::KeySet;
use crate::wire::series::SeriesFinder;
use crate::wire::shape::{Shapes, Slot, Values};

/// `WriteRequest.records`
const RECORDS: u32 = delimited(1);

/// State of one parse; `'a` is the message, `'c` the caller's knowledge.
pub(super) struct Parser<'a, 'c> {
    pub(super) limits: &'c WriteLimits,
    pub(super) tenant_key: &'c str,
    pub(super) columns: Columns,
    /// Fields of the current record, and the table that their columns refer to.
    pub(super) cells: Vec<Cell<'a>>,
    pub(super) cells_table: Option<u32>,
    pub(super) fields: FieldsState,
    /// Keys of `cells`, once a key may have come before.
    pub(super) keys: KeySet<'a>,
    /// Values of the current record that vary from record to record.
    pub(super) slots: Vec<Slot>,
    pub(super) shapes: Shapes<Part>,
    /// Field values of the current record, while it is read by its shape.
    pub(super) values: Values<'a>,
    pub(super) series: SeriesFinder<'c>,
    /// Records so far.
    pub(super) received: usize,
    /// Content that refuses the call, of the first faulty record.
    pub(super) fault: Option<&'static str>,
}

/// Reads a serialized `WriteRequest` into a batch. Arguments are those of
/// [`crate::wire::parse_json`].
///
/// # Errors
/// In this order (L3): [`Refusal::InvalidInput`] for `payload` where the bytes are no
/// message, [`Refusal::TooManyRecords`], and [`Refusal::InvalidInput`] for the content of the first
/// faulty record: `entity_id`, `tags`, `fields`, `measurement`, `time`.
///
/// # Panics
/// When `limits.batch_records_max` exceeds [`BLOCK_ROWS_MAX`].
pub fn parse_protobuf(
    body: &[u8],
    raw_keys: &RawKeyCache,
    limits: &WriteLimits,
    tenant_key: &str,
    ingest_ns: i64,
) -> ParseResult {
    assert!(limits.batch_records_max <= BLOCK_ROWS_MAX, "a batch must fit one block");
    let mut parser = Parser {
        limits,
        tenant_key,
        columns: Columns::new(ingest_ns, limits),
        cells: Vec::new(),
        cells_table: None,
        fields: FieldsState::default(),
        keys: KeySet::default(),
        slots: Vec::new(),
        shapes: Shapes::default(),
        values: Values::default(),
        series: SeriesFinder::new(RAW_KEY_FORMAT, raw_keys),
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
        None => Ok(parser.columns.finish(parser.series.into_new())),
    }
}

impl<'a> Parser<'a, '_> {
    fn message(&mut self, body: &'a [u8]) -> Scan<()> {
        let mut reader = Reader::new(body);
        while !reader.is_empty() {
            match reader.tag()? {
                RECORDS => {
                    let length = reader.length()?;
                    let start = reader.rest;
                    let record = reader.take(length)?;
                    if !self.shaped_record(start, length) {
                        self.record(record)?;
                    }
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
