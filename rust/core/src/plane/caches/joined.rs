//! Rows of several blocks of the log, those of an entity side by side.

use std::collections::BTreeMap;

use super::table_bytes::table_bytes;
use crate::model::batch::Table;
use crate::model::catalog::MeasurementIndex;
use crate::model::names::SeriesId;
use crate::query::SeriesIndex;
use crate::storage::segment::{filtered, grouped};

/// Rows of one measurement of several blocks: ordered by entity, those of one in write order.
pub(in crate::plane) struct JoinedTable {
    table: Table,
    index: SeriesIndex,
    /// Position of the first block.
    first: u64,
    /// By row: how far the position of its block is from the first.
    blocks: Vec<u32>,
}

/// A table that is to be joined with others.
#[derive(Clone, Copy)]
pub(super) enum Source<'t> {
    /// One of the block at a position.
    Block(u64, &'t Table),
    /// One that was joined before.
    Joined(&'t JoinedTable),
}

/// Tables that are to be joined, by measurement, each with what orders the entity of each row.
pub(in crate::plane) struct Joining<'t> {
    measurements: BTreeMap<MeasurementIndex, Vec<(Source<'t>, Vec<SeriesId>)>>,
    first: u64,
}

impl<'t> Joining<'t> {
    /// The tables of blocks from position `first` on. `key` gives the measurement of a series, and
    /// what its entity is ordered by.
    pub(super) fn new(
        first: u64,
        sources: impl Iterator<Item = Source<'t>>,
        key: impl Fn(SeriesId) -> (MeasurementIndex, SeriesId),
    ) -> Self {
        let mut measurements: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for source in sources {
            let series = &source.table().series;
            let Some((measurement, _)) = series.first().map(|series| key(*series)) else {
                continue;
            };
            let entities = series.iter().map(|series| key(*series).1).collect();
            measurements.entry(measurement).or_default().push((source, entities));
        }
        Self { measurements, first }
    }

    /// Joins the tables of each measurement.
    pub(in crate::plane) fn finish(self) -> Vec<JoinedTable> {
        let join = |sources: Vec<_>| {
            let (sources, entities): (Vec<Source<'_>>, Vec<_>) = sources.into_iter().unzip();
            join(&sources, &entities, self.first)
        };
        self.measurements.into_values().map(join).collect()
    }
}

impl<'t> Source<'t> {
    const fn table(self) -> &'t Table {
        match self {
            Self::Block(_, table) => table,
            Self::Joined(joined) => &joined.table,
        }
    }
}

/// The rows of tables of one measurement, whose `entities` order them, of blocks from `first` on.
fn join(sources: &[Source<'_>], entities: &[Vec<SeriesId>], first: u64) -> JoinedTable {
    let tables: Vec<&Table> = sources.iter().map(|source| source.table()).collect();
    let (table, origins) = grouped(&tables, entities);
    let mut blocks = Vec::with_capacity(table.row_count());
    for (source, rows) in origins {
        match sources[source] {
            Source::Block(position, _) => {
                blocks.resize(blocks.len() + rows.len(), offset(first, position));
            }
            Source::Joined(joined) => {
                let base = offset(first, joined.first);
                blocks.extend(joined.blocks[rows].iter().map(|block| base + block));
            }
        }
    }
    JoinedTable::new(table, first, blocks)
}

impl JoinedTable {
    fn new(table: Table, first: u64, blocks: Vec<u32>) -> Self {
        Self { index: SeriesIndex::new(&table), table, first, blocks }
    }

    pub(in crate::plane) const fn table(&self) -> &Table {
        &self.table
    }

    pub(in crate::plane) const fn index(&self) -> &SeriesIndex {
        &self.index
    }

    pub(super) fn bytes(&self) -> usize {
        table_bytes(&self.table) + self.index.bytes() + size_of_val(self.blocks.as_slice())
    }

    /// The rows of blocks after a position, which is not before the first; `None` where there are
    /// none.
    pub(super) fn after(&self, position: u64) -> Option<Self> {
        let first = position + 1;
        let block_of = |row: usize| self.first + u64::from(self.blocks[row]);
        let table = filtered(&self.table, |row| block_of(row) >= first).into_owned();
        let left = (0..self.blocks.len()).map(block_of).filter(|block| *block >= first);
        let blocks = left.map(|block| offset(first, block)).collect();
        (table.row_count() > 0).then(|| Self::new(table, first, blocks))
    }
}

fn offset(first: u64, position: u64) -> u32 {
    u32::try_from(position - first).expect("blocks that are joined follow each other")
}
