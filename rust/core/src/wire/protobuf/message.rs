//! The whole message: a list of records.

use super::parser::ProtobufParser;
use crate::model::batch::ParseResult;
use crate::model::fault::BatchRefusal;
use crate::model::limits::WriteLimits;
use crate::model::raw_keys::RawKeyCache;
use crate::wire::ParseContext;
use crate::wire::tokens::protobuf::{MessageReader, ProtobufResult, delimited};

/// `WriteRequest.records`
const RECORDS: u32 = delimited(1);

/// Reads a serialized `WriteRequest` into a batch.
///
/// # Errors
/// Returns the first that applies: [`BatchRefusal::InvalidInput`] for `payload` if the bytes are
/// not a message, [`BatchRefusal::TooManyRecords`], or [`BatchRefusal::InvalidInput`] for the
/// content of the first faulty record. The order of its fields is `entity_id`, `tags`, `fields`,
/// `measurement`, `time`.
///
/// # Panics
/// Panics if `context.limits.batch_records_max` exceeds [`crate::model::limits::BLOCK_ROWS_MAX`].
pub fn parse_protobuf(body: &[u8], context: ParseContext<'_>) -> ParseResult {
    let mut parser = ProtobufParser::new(context);
    parser.whole(body)?;
    parser.batch.finish()
}

/// Returns true if a tenant without any series or field could write `body`, under bounds on its
/// tags and fields. Records that are rejected one by one do not make it false.
#[must_use]
pub fn is_acceptable(body: &[u8], limits: &WriteLimits) -> bool {
    let raw_keys = RawKeyCache::default();
    let mut parser = ProtobufParser::new(ParseContext::new(&raw_keys, limits, "", i64::MAX));
    parser.keeps = false;
    parser.whole(body).is_ok()
}

impl<'a> ProtobufParser<'a, '_> {
    /// Reads the whole `body`, or returns its refusal.
    fn whole(&mut self, body: &'a [u8]) -> Result<(), BatchRefusal> {
        if self.message(body).is_err() {
            return Err(BatchRefusal::InvalidInput { field: "payload" });
        }
        let (received, max) = (self.received, self.batch.limits.batch_records_max);
        if received > max {
            return Err(BatchRefusal::TooManyRecords { received, max });
        }
        self.fault.map_or(Ok(()), |field| Err(BatchRefusal::InvalidInput { field }))
    }

    fn message(&mut self, body: &'a [u8]) -> ProtobufResult<()> {
        let mut reader = MessageReader::new(body);
        while !reader.is_empty() {
            match reader.tag()? {
                RECORDS => {
                    let length = reader.length()?;
                    let start = reader.rest;
                    let record = reader.take(length)?;
                    let by_template =
                        self.is_sound() && self.templates.accept(start, length, &mut self.batch);
                    if !by_template {
                        self.record(record)?;
                    }
                    self.received += 1;
                }
                other => reader.skip(other)?,
            }
        }
        Ok(())
    }
}
