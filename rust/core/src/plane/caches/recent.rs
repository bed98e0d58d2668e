//! The newest blocks of the log, decoded. Most reads ask for the last hour, and unsealing and
//! decoding its blocks for every read is nearly all that such a read costs.
//!
//! Blocks that several reads of series needed are joined, up to 64 at a time. In a joined table the
//! rows of an entity are neighbours. A read then finds the rows of an entity in a few places
//! instead of in each block.

use std::collections::VecDeque;
use std::sync::Arc;

use super::joined::{JoinSource, JoinedTable, PendingJoin};
use super::table_bytes::table_bytes;
use crate::model::batch::{Block, Table};
use crate::model::catalog::MeasurementIndex;
use crate::model::limits::RECENT_BYTES_MAX;
use crate::model::names::SeriesId;
use crate::query::SeriesIndex;

/// Least and greatest number of parts that are joined at a time.
const JOINED_PARTS: usize = 8;
const JOINED_PARTS_MAX: usize = 64;

/// Number of times that a part is joined.
const LEVELS: u8 = 2;

/// Bytes of parts beyond which they are not joined: bounds the time that a read spends for later
/// reads.
const JOINED_BYTES_MAX: usize = 4 << 20;

/// Reads after which parts are joined, so that a read that comes only once does not pay for others.
const READS_MIN: u32 = 2;

/// The newest blocks in write order, at most [`RECENT_BYTES_MAX`] bytes.
#[derive(Default)]
pub(in crate::plane) struct RecentBlocks {
    parts: VecDeque<RecentPart>,
    bytes: usize,
}

/// A block, or several neighbouring blocks that were joined.
#[derive(Clone)]
struct RecentPart {
    /// Positions of its first and last block.
    first: u64,
    last: u64,
    /// Number of times that the part was joined.
    level: u8,
    /// Reads since the part was added or joined.
    reads: u32,
    bytes: usize,
    tables: RecentTables,
    ingest_ns: i64,
}

/// Tables of a part, which may be in use in several places.
#[derive(Clone)]
pub(in crate::plane) enum RecentTables {
    /// Tables of one block.
    Block(Arc<[Table]>),
    /// Tables of several blocks, one table for each measurement.
    Joined(Arc<[JoinedTable]>),
}

/// Parts that are to be joined.
pub(in crate::plane) struct JoinCandidates {
    parts: Vec<RecentPart>,
}

/// A block of the log that may be in use in several places.
#[derive(Clone)]
pub(in crate::plane) struct DecodedBlock {
    pub(in crate::plane) ingest_ns: i64,
    pub(in crate::plane) tables: Arc<[Table]>,
}

impl From<Block> for DecodedBlock {
    fn from(block: Block) -> Self {
        Self { ingest_ns: block.ingest_ns, tables: block.tables.into() }
    }
}

impl RecentTables {
    pub(in crate::plane) fn iter(&self) -> impl Iterator<Item = &Table> {
        self.indexed().map(|(table, _)| table)
    }

    /// Returns the tables. Joined tables come with their index.
    pub(in crate::plane) fn indexed(&self) -> impl Iterator<Item = (&Table, Option<&SeriesIndex>)> {
        self.with_joined().map(|(table, joined)| (table, joined.map(JoinedTable::index)))
    }

    /// Returns the tables. Joined tables come with their joined form.
    pub(super) fn with_joined(&self) -> impl Iterator<Item = (&Table, Option<&JoinedTable>)> {
        let (tables, joined) = match self {
            Self::Block(tables) => (&**tables, Default::default()),
            Self::Joined(joined) => (Default::default(), &**joined),
        };
        let tables = tables.iter().map(|table| (table, None));
        tables.chain(joined.iter().map(|joined| (joined.table(), Some(joined))))
    }
}

impl RecentPart {
    fn has(&self, sequence: u64) -> bool {
        (self.first..=self.last).contains(&sequence)
    }
}

impl JoinCandidates {
    /// Returns the tables to be joined, with everything that joining needs of the names. `key`
    /// returns the measurement of a series, and the series that orders its entity.
    pub(in crate::plane) fn joining(
        &self,
        key: impl Fn(SeriesId) -> (MeasurementIndex, SeriesId),
    ) -> PendingJoin<'_> {
        let sources = self.parts.iter().flat_map(|part| {
            part.tables.with_joined().map(|(table, joined)| match joined {
                None => JoinSource::Block(part.first, table),
                Some(joined) => JoinSource::Joined(joined),
            })
        });
        PendingJoin::new(self.first(), sources, key)
    }

    /// Position of the first block.
    fn first(&self) -> u64 {
        self.parts[0].first
    }

    /// Bytes of the tables.
    pub(in crate::plane) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

impl RecentBlocks {
    /// Adds the block at `sequence`, which is greater than all before. Drops the oldest blocks if
    /// there are too many bytes.
    pub(in crate::plane) fn push(&mut self, sequence: u64, block: Block) {
        let bytes = block.tables.iter().map(table_bytes).sum();
        self.bytes += bytes;
        self.parts.push_back(RecentPart {
            first: sequence,
            last: sequence,
            level: 0,
            reads: 0,
            bytes,
            tables: RecentTables::Block(block.tables.into()),
            ingest_ns: block.ingest_ns,
        });
        self.drop_oldest();
    }

    fn drop_oldest(&mut self) {
        while self.bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.parts.pop_front() else { break };
            self.bytes -= oldest.bytes;
        }
    }

    /// Bytes of the blocks.
    pub(in crate::plane) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Drops all blocks.
    pub(in crate::plane) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Drops the blocks up to `sequence`.
    pub(in crate::plane) fn forget_until(&mut self, sequence: u64) {
        while let Some(oldest) = self.parts.pop_front_if(|part| part.first <= sequence) {
            self.bytes -= oldest.bytes;
            let RecentTables::Joined(joined) = &oldest.tables else { continue };
            if oldest.last <= sequence {
                continue;
            }
            let rest: Arc<[JoinedTable]> =
                joined.iter().filter_map(|joined| joined.after(sequence)).collect();
            let bytes = rest.iter().map(JoinedTable::bytes).sum();
            self.bytes += bytes;
            let tables = RecentTables::Joined(rest);
            self.parts.push_front(RecentPart { first: sequence + 1, bytes, tables, ..oldest });
        }
    }

    /// Returns the block at `sequence` if it is here and was not joined.
    pub(in crate::plane) fn get(&self, sequence: u64) -> Option<DecodedBlock> {
        let at = self.parts.partition_point(|part| part.last < sequence);
        let part = self.parts.get(at).filter(|part| part.has(sequence))?;
        match &part.tables {
            RecentTables::Block(tables) => {
                Some(DecodedBlock { ingest_ns: part.ingest_ns, tables: Arc::clone(tables) })
            }
            RecentTables::Joined(_) => None,
        }
    }

    /// Returns the tables of the wanted blocks that are here, perhaps with other blocks, and the
    /// number of wanted blocks that are here. `sequences` ascend, and the blocks that are here are
    /// the last of them. Example: of blocks 5 to 9, if the oldest here is 7, it returns the tables
    /// of 7 to 9 and 3.
    pub(in crate::plane) fn newest_of(&mut self, sequences: &[u64]) -> (Vec<RecentTables>, usize) {
        let Some(first) = self.parts.front() else { return (Vec::new(), 0) };
        let start = sequences.partition_point(|sequence| *sequence < first.first);
        let mut wanted = sequences[start..].iter().copied().peekable();
        let mut tables = Vec::new();
        for part in &mut self.parts {
            let mut is_wanted = false;
            while wanted.next_if(|sequence| *sequence <= part.last).is_some() {
                is_wanted = true;
            }
            if is_wanted {
                part.reads = part.reads.saturating_add(1);
                tables.push(part.tables.clone());
            }
        }
        (tables, sequences.len() - start)
    }

    /// Returns the oldest parts that are to be joined, if there are any.
    pub(in crate::plane) fn joinable(&self) -> Option<JoinCandidates> {
        let ends = (self.parts.len() + 1).saturating_sub(JOINED_PARTS);
        let (start, count) = (0..ends).find_map(|start| Some((start, self.due_from(start)?)))?;
        Some(JoinCandidates { parts: self.parts.range(start..start + count).cloned().collect() })
    }

    /// Returns the number of parts from `start` on that are to be joined.
    fn due_from(&self, start: usize) -> Option<usize> {
        let level = self.parts[start].level;
        let mut bytes = 0;
        let is_due = |part: &&RecentPart| {
            bytes += part.bytes;
            part.level == level && part.reads >= READS_MIN && bytes <= JOINED_BYTES_MAX
        };
        let parts = self.parts.range(start..).take(JOINED_PARTS_MAX);
        let count = if level < LEVELS { parts.take_while(is_due).count() } else { 0 };
        (count >= JOINED_PARTS).then_some(count)
    }

    /// Puts `tables` in the place of the parts that they were joined from, unless these are gone.
    pub(in crate::plane) fn replace(&mut self, parts: &JoinCandidates, tables: Vec<JoinedTable>) {
        let ends = |part: &RecentPart| (part.first, part.last);
        let start = self.parts.partition_point(|part| part.first < parts.first());
        let range = start..start + parts.parts.len();
        if range.end > self.parts.len()
            || !self.parts.range(range.clone()).map(ends).eq(parts.parts.iter().map(ends))
        {
            return;
        }
        let bytes = tables.iter().map(JoinedTable::bytes).sum();
        self.bytes = self.bytes - parts.bytes() + bytes;
        let last = self.parts[range.end - 1].last;
        let first = &mut self.parts[start];
        let is_large = bytes > JOINED_BYTES_MAX / 2 || parts.parts.len() == JOINED_PARTS_MAX;
        let level = if is_large { LEVELS } else { first.level + 1 };
        (first.last, first.level, first.reads, first.bytes) = (last, level, 0, bytes);
        first.tables = RecentTables::Joined(tables.into());
        self.parts.drain(start + 1..range.end);
        self.drop_oldest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::batch::{Column, RowSet, Values};

    /// Returns a block with a row for each of `rows` entities, and values from `sequence` on.
    fn block(rows: u32, sequence: u64) -> Block {
        let value = f64::from(u32::try_from(sequence).unwrap());
        let values = Values::Float((0..rows).map(|row| value + f64::from(row) / 1e6).collect());
        let columns = vec![Column { field: 1, rows: RowSet::All, values }];
        let series = (0..rows).collect();
        let table = Table { series, times_ns: vec![0; rows as usize], columns };
        Block { ingest_ns: 0, tables: vec![table] }
    }

    fn join(recent: &mut RecentBlocks) -> bool {
        let Some(parts) = recent.joinable() else { return false };
        let joined = parts.joining(|series| (0, series)).finish();
        recent.replace(&parts, joined);
        true
    }

    /// Returns the values of a series, in the order in which a read finds them.
    fn values(tables: &[RecentTables], series: u32) -> Vec<f64> {
        let rows = |table: &Table| {
            let Values::Float(values) = &table.columns[0].values else { panic!("a double") };
            let rows = table.series.iter().zip(values.clone());
            rows.filter(|(of, _)| **of == series).map(|(_, value)| value).collect::<Vec<_>>()
        };
        tables.iter().flat_map(RecentTables::iter).flat_map(rows).collect()
    }

    #[test]
    fn the_newest_stay_within_the_bound() {
        let mut recent = RecentBlocks::default();
        let rows = u32::try_from(RECENT_BYTES_MAX / 20 / 4).unwrap();
        for sequence in [1, 2, 3, 5, 8] {
            recent.push(sequence, block(rows, sequence));
            assert!(recent.bytes <= RECENT_BYTES_MAX);
        }
        assert_eq!(recent.parts.iter().map(|part| part.first).collect::<Vec<_>>(), [3, 5, 8]);
        assert_eq!(recent.newest_of(&[1, 3, 8]).1, 2);
        assert_eq!(recent.newest_of(&[1, 2]).1, 0);
        let there = |sequence| recent.get(sequence).is_some();
        assert_eq!([2, 3, 4, 8, 9].map(there), [false, true, false, true, false]);
        let large = u32::try_from(RECENT_BYTES_MAX / 20 + 1).unwrap();
        recent.push(9, block(large, 9));
        assert_eq!((recent.parts.len(), recent.bytes), (0, 0));
    }

    #[test]
    fn blocks_that_are_read_are_joined_within_the_bound_and_cut_where_they_are_compacted() {
        let mut recent = RecentBlocks::default();
        let all: Vec<u64> = (1..=200).collect();
        for sequence in &all {
            recent.push(*sequence, block(300, *sequence));
        }
        assert!(!join(&mut recent), "nobody has read them");
        let bytes_before = recent.bytes;
        let value = |sequence: u64| f64::from(u32::try_from(sequence).unwrap()) + 7.0 / 1e6;
        let expected = |from: u64| (from..=200).map(value).collect::<Vec<_>>();
        while {
            for _ in 0..READS_MIN {
                let (tables, count) = recent.newest_of(&all);
                assert_eq!(count, 200);
                assert_eq!(values(&tables, 7), expected(1));
            }
            join(&mut recent)
        } {}
        assert_eq!(recent.parts.iter().filter(|part| part.level == LEVELS).count(), 3);
        assert_eq!(recent.parts.len(), 3 + 1, "the last eight were too few for a large part");
        assert!((bytes_before..bytes_before * 5 / 4).contains(&recent.bytes), "{}", recent.bytes);
        for sequence in [0, 1, 63, 64, 70, 192, 199, 200] {
            recent.forget_until(sequence);
            let (tables, count) = recent.newest_of(&all);
            assert_eq!(count as u64, 200 - sequence);
            assert_eq!(values(&tables, 7), expected(sequence + 1));
        }
        assert_eq!(recent.bytes, 0);
    }

    #[test]
    fn what_is_left_of_joined_blocks_is_joined_again() {
        let mut recent = RecentBlocks::default();
        let all: Vec<u64> = (1..=64).collect();
        let read = |recent: &mut RecentBlocks| {
            (1..READS_MIN).for_each(|_| drop(recent.newest_of(&all)));
            values(&recent.newest_of(&all).0, 7)
        };
        for sequences in all.chunks(JOINED_PARTS) {
            for sequence in sequences {
                recent.push(*sequence, block(10, *sequence));
            }
            read(&mut recent);
            assert!(join(&mut recent));
        }
        recent.forget_until(3);
        let expected = read(&mut recent);
        assert_eq!(expected.len(), 64 - 3);
        assert!(join(&mut recent));
        assert_eq!((recent.parts.len(), recent.parts[0].level), (1, LEVELS));
        assert_eq!(values(&recent.newest_of(&all).0, 7), expected);
        recent.forget_until(20);
        assert_eq!(values(&recent.newest_of(&all).0, 7), expected[20 - 3..]);
    }

    #[test]
    fn tables_joined_of_parts_that_went_meanwhile_are_dropped() {
        let mut recent = RecentBlocks::default();
        let all: Vec<u64> = (1..=8).collect();
        for sequence in &all {
            recent.push(*sequence, block(10, *sequence));
        }
        (0..READS_MIN).for_each(|_| drop(recent.newest_of(&all)));
        let parts = recent.joinable().unwrap();
        let joined = parts.joining(|series| (0, series)).finish();
        recent.forget_until(3);
        let bytes = recent.bytes;
        recent.replace(&parts, joined);
        assert_eq!((recent.parts.len(), recent.bytes), (5, bytes));
    }
}
