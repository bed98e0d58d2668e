//! The write path: parse, name, group by entity, encode, seal, commit.

mod arrange;
pub(super) mod buffer;

use std::time::{Duration, Instant};

use super::Plane;
use super::registry::Ids;
use crate::codec::encode_block;
use crate::model::batch::{Batch, Block, NEW_SERIES_BASE};
use crate::model::error::Error;
use crate::model::fault::Refusal;
use crate::model::limits::WriteLimits;
use crate::storage::seal::Kind;
use crate::storage::store::{Counts, NewBlock};
use crate::wire::Format;

/// What became of a batch that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Records stored.
    pub accepted_count: u32,
    /// Indices of the records rejected one by one, ascending.
    pub rejected_indices: Vec<u32>,
    /// Stored records whose time lay in the future and became the ingest instant.
    pub clamped_count: u32,
    /// How long the store took to make it durable, waiting for others' commits included.
    pub commit: Duration,
}

/// When a write returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledge {
    /// Once the batch is durable.
    Durable,
    /// Once the batch waits in memory for the next [`Plane::flush`]; until then the process may
    /// lose it.
    Buffered {
        /// Sealed bytes that may wait. A single batch of more passes when nothing else waits.
        bytes_max: usize,
    },
}

/// Why nothing of a batch was stored.
#[derive(Debug)]
pub enum WriteError {
    /// The contract refuses it.
    Refused(Refusal),
    /// The machine failed.
    Failed(Error),
}

impl From<Refusal> for WriteError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

pub(super) type WriteResult<T> = Result<T, WriteError>;

impl Plane {
    /// Writes one batch as of the instant `ingest_ns`.
    ///
    /// # Errors
    /// [`WriteError::Refused`] and nothing is stored; [`WriteError::Failed`] with the promises of
    /// [`crate::storage::store::Store::append`].
    pub fn write(
        &self,
        format: Format,
        body: &[u8],
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> WriteResult<Written> {
        let parsed = {
            // Fields that exist can be written again, also where the bound was lowered below them.
            let field_count = self.names().catalog.field_count();
            let tenant_fields_max = limits.tenant_fields_max.max(field_count);
            let limits = WriteLimits { tenant_fields_max, ..*limits };
            let raw_keys = self.caches.raw_keys();
            format.parse(body, &raw_keys, &limits, &self.tenant_key, ingest_ns)
        };
        let mut batch = parsed?;
        let ids = self.resolve(&mut batch, limits)?;
        self.caches.settle();
        let block = self.seal_block(&mut batch, &ids)?;
        let started = Instant::now();
        match acknowledge {
            _ if block.counts == Counts::default() => {}
            Acknowledge::Durable => {
                // What was acknowledged before this batch is stored before it.
                self.flush()?;
                self.store.append(vec![block])?;
            }
            Acknowledge::Buffered { bytes_max } => {
                if !self.buffer.push(block, bytes_max) {
                    return Err(Refusal::BufferFull.into());
                }
            }
        }
        Ok(Written {
            accepted_count: batch.accepted_count,
            rejected_indices: batch.rejected_indices,
            clamped_count: batch.clamped_count,
            commit: started.elapsed(),
        })
    }

    fn seal_block(&self, batch: &mut Batch, ids: &Ids) -> WriteResult<NewBlock> {
        let mut counts = Counts {
            rows: u64::from(batch.accepted_count),
            rejected: batch.rejected_indices.len() as u64,
            ..Counts::default()
        };
        let mut sealed = Vec::new();
        if batch.accepted_count > 0 {
            counts.batches = 1;
            let block = self.block(batch, ids);
            let columns = block.tables.iter().flat_map(|table| &table.columns);
            counts.values = columns.map(|column| column.values.len() as u64).sum();
            sealed = self.sealer.seal(Kind::LogBlock, &encode_block(&block)?)?;
        }
        Ok(NewBlock { sealed, counts })
    }

    /// The rows of `batch` under stored ids, the rows of each entity side by side.
    fn block(&self, batch: &mut Batch, ids: &Ids) -> Block {
        let mut tables = std::mem::take(&mut batch.tables);
        let names = self.names();
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
}
