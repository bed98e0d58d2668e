//! Writes: parse, name, group by entity, encode, seal, commit.

mod arrange;
mod buffer;
mod pending;
mod unseen;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::buffer::{WaitingBatch, WriteQueue};
pub use self::pending::{PendingBatch, WriteReport};
use self::unseen::UnseenCounts;
use super::failure::WriteError;
use super::registry::{NamesRegistry, StoredIds};
use super::sealed::{SealedStore, seal_cursor};
use crate::codec::{Effort, encode_block};
use crate::model::batch::{Batch, Block, NEW_SERIES_BASE, ParseResult};
use crate::model::error::Result;
use crate::model::fault::BatchRefusal;
use crate::model::limits::WriteLimits;
use crate::storage::seal::{BlobKind, Sealer};
use crate::storage::store::{Cursor, NewBlock, StoreCounts};
use crate::wire::columnar::{InputRows, parse_rows};
use crate::wire::{Adapter, CsvColumns, Format, NameRules, ParseContext, Protocol, parse_csv};

/// Records in one of the input formats.
pub(super) enum WriteInput<'a> {
    Body(Format, &'a [u8]),
    Csv(&'a mut CsvColumns, &'a [u8]),
    Rows(&'a InputRows<'a>),
    Adapted(AdaptedBody<'a>),
}

/// A body of another protocol. Its faulty records are left out.
#[derive(Clone, Copy, Debug)]
pub struct AdaptedBody<'a> {
    /// Protocol of the body.
    pub protocol: Protocol,
    /// Maps names to stored names.
    pub mapping: &'a NameRules,
    /// If true, sound records are written although others are faulty.
    pub is_partial: bool,
    /// The whole body.
    pub bytes: &'a [u8],
}

/// Times that a body is read again because another process has just written its fields with other
/// types.
const READ_AGAIN_MAX: usize = 3;

/// When a write returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// Returns when the batch is durable.
    Durable,
    /// Returns when the batch is durable. The position of its import is stored with the batch, or
    /// neither is.
    At(Cursor),
    /// Acts as `At` with a position that counts lines, as 8 bytes, lowest byte first. The lines of
    /// this text are added to `before`. Example: `before` = 1,000 and a text of 500 lines give
    /// position 1,500.
    AfterLines {
        /// Key of the import.
        key: [u8; 16],
        /// Position before the text, in lines.
        before: u64,
    },
    /// Returns when the batch waits in memory for the next [`super::Plane::flush`]. Until then the
    /// process may lose the batch.
    Buffered {
        /// Sealed bytes that may wait. A larger batch passes if no other batch waits.
        bytes_max: usize,
    },
}

impl Acknowledgement {
    /// Turns `AfterLines` into `At`, after a text of `line_count` lines.
    fn of_lines(self, line_count: usize) -> Self {
        let Self::AfterLines { key, before } = self else { return self };
        let position = before.saturating_add(line_count as u64);
        Self::At(Cursor { key, position: position.to_le_bytes().to_vec() })
    }
}

/// Writes of one tenant, and the batches that were acknowledged before they are durable.
///
/// Invariant: the names of a block are stored before the block, and batches acknowledged before a
/// durable batch are stored before it. While a batch is parsed or encoded, the only locks held are
/// the locks under which names and raw keys are looked up.
pub(super) struct Writer {
    sealed: Arc<SealedStore>,
    registry: Arc<NamesRegistry>,
    buffer: WriteQueue,
}

impl Writer {
    pub(super) fn new(sealed: Arc<SealedStore>, registry: Arc<NamesRegistry>) -> Self {
        Self { sealed, registry, buffer: WriteQueue::default() }
    }

    /// Appends a batch. The batch may be acknowledged when [`PendingBatch::wait`] has returned.
    pub(super) fn append(
        &self,
        input: WriteInput<'_>,
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledgement,
    ) -> Result<PendingBatch, WriteError> {
        let (mut batch, ids) = match input {
            WriteInput::Adapted(body) => self.adapted(&body, limits, ingest_ns)?,
            input => {
                let mut batch = self.parse(input, limits, ingest_ns)?;
                let ids = self.registry.resolve(&mut batch, limits)?;
                (batch, ids)
            }
        };
        self.sealed.caches.settle();
        let (waiting, unseen) = self.encoded(&mut batch, &ids)?;
        let started = Instant::now();
        let written = WriteReport {
            accepted_count: batch.accepted_count,
            rejected_indices: batch.rejected_indices,
            dropped: batch.dropped,
            line_count: batch.line_count,
            clamped_count: batch.clamped_count,
            no_entity_count: unseen.no_entity,
            other_measurement_count: unseen.other_measurement,
            unseen_measurements: unseen.first,
            commit: Duration::ZERO,
        };
        let cursor = match acknowledge.of_lines(batch.line_count) {
            Acknowledgement::At(cursor) => Some(cursor),
            _ if waiting.counts == StoreCounts::default() => {
                return Ok(PendingBatch::none(written, started));
            }
            Acknowledgement::Durable | Acknowledgement::AfterLines { .. } => None,
            Acknowledgement::Buffered { bytes_max } => {
                if !self.buffer.push(waiting, bytes_max) {
                    return Err(BatchRefusal::BufferFull.into());
                }
                return Ok(PendingBatch::none(written, started));
            }
        };
        // Store batches that were acknowledged earlier before this batch.
        self.flush()?;
        let sealer = self.sealed.sealing();
        let cursor = cursor.map(|cursor| seal_cursor(&sealer, cursor)).transpose()?;
        let block = NewBlock { cursor, ..sealed(&sealer, &waiting)? };
        let end = self.sealed.store.append_unsynced(vec![block])?;
        Ok(PendingBatch::new(written, started, Arc::clone(&self.sealed), end))
    }

    /// Reads a body of another protocol. A field whose type differs from the stored field rejects
    /// its record. If another process stores such a field in the meantime, the body is read again.
    fn adapted(
        &self,
        body: &AdaptedBody<'_>,
        limits: &WriteLimits,
        ingest_ns: i64,
    ) -> Result<(Batch, StoredIds), WriteError> {
        let mut left = READ_AGAIN_MAX;
        loop {
            let mut batch = self.parse(WriteInput::Adapted(*body), limits, ingest_ns)?;
            if !body.is_partial && !batch.dropped.is_empty() {
                return Err(BatchRefusal::Dropped(batch.dropped).into());
            }
            match self.registry.resolve(&mut batch, limits) {
                Err(WriteError::Refused(BatchRefusal::TypeConflict { .. })) if left > 0 => {
                    left -= 1;
                }
                resolved => return Ok((batch, resolved?)),
            }
        }
    }

    fn parse(&self, input: WriteInput<'_>, limits: &WriteLimits, ingest_ns: i64) -> ParseResult {
        // Fields that exist can be written again, even if the bound was lowered below their number.
        let field_count = self.registry.names().catalog.field_count();
        let tenant_fields_max = limits.tenant_fields_max.max(field_count);
        let limits = WriteLimits { tenant_fields_max, ..*limits };
        // Lock names before raw keys, in the same order as when they are noted.
        let names = matches!(input, WriteInput::Adapted(_)).then(|| self.registry.names());
        let raw_keys = self.sealed.caches.raw_keys();
        let context = ParseContext::new(&raw_keys, &limits, &self.sealed.tenant_key, ingest_ns);
        match input {
            WriteInput::Body(format, body) => format.parse(body, context),
            WriteInput::Csv(header, body) => parse_csv(body, header, context),
            WriteInput::Adapted(body) => {
                let catalog = &names.as_ref().expect("held for this input").catalog;
                let adapter = Adapter { mapping: body.mapping, catalog };
                body.protocol.parse(body.bytes, adapter, context)
            }
            WriteInput::Rows(rows) => parse_rows(rows, context),
        }
    }

    fn encoded(&self, batch: &mut Batch, ids: &StoredIds) -> Result<(WaitingBatch, UnseenCounts)> {
        let mut counts = StoreCounts {
            rows: u64::from(batch.accepted_count),
            rejected: batch.rejected_indices.len() as u64,
            ..StoreCounts::default()
        };
        let mut encoded = Vec::new();
        let mut unseen = UnseenCounts::default();
        if batch.accepted_count > 0 {
            counts.batches = 1;
            let block = self.block(batch, ids);
            unseen = UnseenCounts::of(&block, &self.registry.names().catalog);
            let columns = block.tables.iter().flat_map(|table| &table.columns);
            counts.values = columns.map(|column| column.values.len() as u64).sum();
            encoded = encode_block(&block, Effort::Low)?;
        }
        Ok((WaitingBatch { block: encoded, counts }, unseen))
    }

    /// Returns the rows of `batch` under stored ids, grouped by entity.
    fn block(&self, batch: &mut Batch, ids: &StoredIds) -> Block {
        let mut tables = std::mem::take(&mut batch.tables);
        let names = self.registry.names();
        for table in &mut tables {
            for series in &mut table.series {
                if *series >= NEW_SERIES_BASE {
                    *series = ids.series[(*series - NEW_SERIES_BASE) as usize];
                }
            }
            for column in &mut table.columns {
                column.field = ids.fields[column.field as usize];
            }
            arrange::by_entity(table, &names.catalog);
        }
        Block { ingest_ns: batch.ingest_ns, tables }
    }

    pub(super) fn flush(&self) -> Result<()> {
        self.buffer.flush(|batches| {
            let sealer = self.sealed.sealing();
            let blocks = batches.iter().map(|batch| sealed(&sealer, batch));
            self.sealed.store.append(blocks.collect::<Result<_>>()?)
        })
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        self.buffer.bytes()
    }

    /// Stores the waiting batches as far as possible, and accepts no more batches.
    pub(super) fn close(&self) {
        // A write in progress must not be acknowledged after the last flush.
        self.buffer.close();
        let _ = self.flush();
    }
}

/// Seals a batch for the log.
fn sealed(sealer: &Sealer, batch: &WaitingBatch) -> Result<NewBlock> {
    let sealed = match &*batch.block {
        [] => Vec::new(),
        block => sealer.seal(BlobKind::LogBlock, block)?,
    };
    Ok(NewBlock { sealed, counts: batch.counts, cursor: None })
}

impl Drop for Writer {
    /// Makes a last attempt to store waiting batches. A caller that must learn of a failure flushes
    /// before.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}
