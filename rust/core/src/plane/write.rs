//! The write path: parse, name, group by entity, encode, seal, commit.

use std::time::{Duration, Instant};

use super::Plane;
use crate::arrange;
use crate::batch::{Batch, Block, CellPosition, FieldId, NEW_SERIES_BASE, SeriesId};
use crate::column::encode_block;
use crate::error::Error;
use crate::fault::Refusal;
use crate::limits::WriteLimits;
use crate::names;
use crate::seal::{Kind, NameKind};
use crate::store::{Counts, NewBlock, Registration};
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
    /// lose it (F1).
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

type WriteResult<T> = Result<T, WriteError>;

/// Stored ids of what a batch names by its own numbers.
struct Ids {
    /// By index into [`Batch::new_series`].
    series: Vec<SeriesId>,
    /// By index into [`Batch::fields`].
    fields: Vec<FieldId>,
}

impl Plane {
    /// Writes one batch as of the instant `ingest_ns`.
    ///
    /// # Errors
    /// [`WriteError::Refused`] and nothing is stored; [`WriteError::Failed`] with the promises of
    /// [`crate::store::Store::append`].
    pub fn write(
        &self,
        format: Format,
        body: &[u8],
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> WriteResult<Written> {
        let parsed = {
            let names = self.names();
            format.parse(body, &names.spellings, limits, &self.tenant_key, ingest_ns)
        };
        let mut batch = parsed?;
        let ids = self.resolve(&mut batch)?;
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
            sealed = self.sealer.seal(Kind::LogBlock, &encode_block(&block))?;
        }
        Ok(NewBlock { sealed, counts })
    }

    /// Gives every series and field of `batch` its stored id, registering what is new. Type
    /// conflicts refuse the batch before any name is registered (E1 to E7).
    fn resolve(&self, batch: &mut Batch) -> WriteResult<Ids> {
        let mut conflict = batch.conflict.take().map(|conflict| (conflict.at, conflict.field));
        let mut fields: Vec<Option<FieldId>> = Vec::with_capacity(batch.fields.len());
        {
            let names = self.names();
            for field in &batch.fields {
                let measurement =
                    names.catalog.measurement(&batch.measurements[field.table as usize]);
                let known = measurement.and_then(|at| names.catalog.find_field(at, &field.name));
                if known.is_some_and(|(_, field_type)| field_type != field.field_type) {
                    note_conflict(&mut conflict, field.first, &field.name);
                }
                fields.push(known.map(|(id, _)| id));
            }
        }
        if let Some((_, field)) = conflict {
            return Err(Refusal::TypeConflict { field }.into());
        }
        let series = self.register(batch, &mut fields)?;
        let known = "registration gives every field an id";
        let fields = fields.into_iter().map(|id| id.expect(known)).collect();
        Ok(Ids { series, fields })
    }

    /// Registers new series and the fields without an id, and notes them here at once.
    fn register(
        &self,
        batch: &mut Batch,
        fields: &mut [Option<FieldId>],
    ) -> WriteResult<Vec<SeriesId>> {
        let missing: Vec<usize> = (0..fields.len()).filter(|at| fields[*at].is_none()).collect();
        if batch.new_series.is_empty() && missing.is_empty() {
            return Ok(Vec::new());
        }
        let mut registration = Registration::default();
        let mut page = Vec::new();
        for series in &batch.new_series {
            let name = names::encode_series(&series.name);
            registration.series.push(self.sealer.name_hash(NameKind::Series, &name));
            page.extend(name);
        }
        for at in &missing {
            let field = &batch.fields[*at];
            let name = names::encode_field(&batch.measurements[field.table as usize], &field.name);
            let hash = self.sealer.name_hash(NameKind::Field, &name);
            registration.fields.push((hash, field.field_type));
            page.extend(name);
        }
        registration.sealed_names = self.sealer.seal(Kind::Names, &page)?;
        let registered = self.store.register(&registration)?;

        let mut conflict = None;
        for (at, winner) in missing.iter().zip(&registered.fields) {
            let field = &batch.fields[*at];
            if winner.is_some_and(|(_, field_type)| field_type != field.field_type) {
                note_conflict(&mut conflict, field.first, &field.name);
            }
        }
        if let Some((_, field)) = conflict {
            return Err(Refusal::TypeConflict { field }.into());
        }
        let mut names = self.names_mut();
        for (at, winner) in missing.iter().zip(&registered.fields) {
            let field = &batch.fields[*at];
            let measurement = &batch.measurements[field.table as usize];
            if let Some((id, field_type)) = winner {
                names.catalog.insert_field(*id, measurement, &field.name, *field_type);
                fields[*at] = Some(*id);
            }
        }
        for (series, id) in
            std::mem::take(&mut batch.new_series).into_iter().zip(&registered.series)
        {
            names.catalog.insert_series(*id, series.name);
            names.spellings.insert(series.spelling, *id);
        }
        Ok(registered.series)
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

fn note_conflict(first: &mut Option<(CellPosition, String)>, at: CellPosition, field: &str) {
    if first.as_ref().is_none_or(|(earliest, _)| at < *earliest) {
        *first = Some((at, field.to_owned()));
    }
}
