//! Rows of several blocks of the log, joined so that the rows of an entity are neighbours.

use std::collections::BTreeMap;

use super::table_bytes::table_bytes;
use crate::model::batch::Table;
use crate::model::catalog::MeasurementIndex;
use crate::model::names::SeriesId;
use crate::query::SeriesIndex;
use crate::storage::segment::{filtered, grouped};

/// Rows of one measurement from several blocks: ordered by entity, then in write order.
pub(in crate::plane) struct JoinedTable {
    table: Table,
    index: SeriesIndex,
    /// Position of the first block.
    first: u64,
    /// By row: position of its block minus `first`.
    blocks: Vec<u32>,
}

/// A table that is to be joined with other tables.
#[derive(Clone, Copy)]
pub(super) enum JoinSource<'t> {
    /// A table of the block at a position.
    Block(u64, &'t Table),
    /// A table that was joined before.
    Joined(&'t JoinedTable),
}

/// Tables to be joined, by measurement. Each has the series that orders the entity of each row.
pub(in crate::plane) struct PendingJoin<'t> {
    measurements: BTreeMap<MeasurementIndex, Vec<(JoinSource<'t>, Vec<SeriesId>)>>,
    first: u64,
}

impl<'t> PendingJoin<'t> {
    /// Takes the tables of blocks from position `first` on. `key` returns the measurement of a
    /// series, and the series that orders its entity.
    pub(super) fn new(
        first: u64,
        sources: impl Iterator<Item = JoinSource<'t>>,
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
            let (sources, entities): (Vec<JoinSource<'_>>, Vec<_>) = sources.into_iter().unzip();
            join(&sources, &entities, self.first)
        };
        self.measurements.into_values().map(join).collect()
    }
}

impl<'t> JoinSource<'t> {
    const fn table(self) -> &'t Table {
        match self {
            Self::Block(_, table) => table,
            Self::Joined(joined) => &joined.table,
        }
    }
}

/// Joins tables of one measurement, of blocks from `first` on. `entities` order their rows.
fn join(sources: &[JoinSource<'_>], entities: &[Vec<SeriesId>], first: u64) -> JoinedTable {
    let tables: Vec<&Table> = sources.iter().map(|source| source.table()).collect();
    let (table, origins) = grouped(&tables, entities);
    let mut blocks = Vec::with_capacity(table.row_count());
    for (source, rows) in origins {
        match sources[source] {
            JoinSource::Block(position, _) => {
                blocks.resize(blocks.len() + rows.len(), offset(first, position));
            }
            JoinSource::Joined(joined) => {
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

    /// Returns the rows of blocks after `position`, which is not before the first block. Returns
    /// `None` if there are no such rows.
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
