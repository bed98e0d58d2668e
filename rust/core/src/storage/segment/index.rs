//! Encoding of the index of a segment.

use super::layout::{CORRUPT, HEAD_LEN};
use crate::codec::Effort;
use crate::codec::bytes::{ByteReader, put_len};
use crate::codec::integer;
use crate::model::batch::NEW_SERIES_BASE;
use crate::model::error::Result;
use crate::model::limits::BLOCK_ROWS_MAX;
use crate::model::names::SeriesId;

/// Version of the index that this build writes, and the only version that it reads.
const VERSION: u8 = 3;

/// Number of integers that the index keeps of a block.
const SEQUENCES: usize = 9;

/// Entry of a block in the index of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    pub(super) offset: u64,
    pub(super) sealed_len: usize,
    pub(super) statistics_len: usize,
    /// Number of rows.
    pub rows: usize,
    /// Representative series and time of the first row.
    pub first: (SeriesId, i64),
    /// Representative series and time of the last row.
    pub last: (SeriesId, i64),
    /// Smallest time.
    pub min_ns: i64,
    /// Greatest time.
    pub max_ns: i64,
}

impl BlockEntry {
    /// Returns true if the block has statistics.
    #[must_use]
    pub const fn has_statistics(&self) -> bool {
        self.statistics_len > 0
    }

    /// Returns true if the block may have a row at these times.
    #[must_use]
    pub const fn overlaps(&self, times_ns: &std::ops::Range<i64>) -> bool {
        self.max_ns >= times_ns.start && self.min_ns < times_ns.end
    }
}

pub(super) fn encode(blocks: &[BlockEntry]) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_len(&mut out, blocks.len());
    for sequence in 0..SEQUENCES {
        let numbers: Vec<i64> = blocks.iter().map(|block| numbers_of(block)[sequence]).collect();
        integer::encode_run(&numbers, Effort::High, &mut out);
    }
    out
}

fn numbers_of(block: &BlockEntry) -> [i64; SEQUENCES] {
    let length = |length: usize| i64::try_from(length).expect("a block is far below 2^63");
    [
        length(block.sealed_len),
        length(block.statistics_len),
        length(block.rows),
        block.first.0.into(),
        block.first.1,
        block.last.0.into(),
        block.last.1,
        block.min_ns,
        block.max_ns,
    ]
}

/// Decodes the blocks of a segment whose index begins at byte `index_at` of its file.
pub(super) fn decode(bytes: &[u8], index_at: u64) -> Result<Vec<BlockEntry>> {
    let mut input = ByteReader::new(bytes, "the index of a segment");
    input.version(VERSION)?;
    // The seal of each block takes 16 bytes of the file at least, which bounds the number of
    // blocks.
    let blocks_max = usize::try_from(index_at / 16).map_err(|_| CORRUPT)?;
    let count = input.len(blocks_max)?;
    let mut numbers = vec![[0; SEQUENCES]; count];
    for sequence in 0..SEQUENCES {
        let decoded = integer::decode_long_run(&mut input, count)?;
        for (numbers, number) in numbers.iter_mut().zip(decoded) {
            numbers[sequence] = number;
        }
    }
    input.end()?;
    let mut offset = HEAD_LEN as u64;
    let mut blocks = Vec::with_capacity(count);
    for [sealed, statistics, rows, first, first_ns, last, last_ns, min_ns, max_ns] in numbers {
        let length = |number: i64, max: usize| {
            let length = usize::try_from(number).ok();
            length.filter(|length| *length <= max).ok_or(CORRUPT)
        };
        let representative = |number: i64| {
            let representative = u32::try_from(number).ok();
            representative.filter(|representative| *representative < NEW_SERIES_BASE).ok_or(CORRUPT)
        };
        let left = usize::try_from(index_at.checked_sub(offset).ok_or(CORRUPT)?);
        let left = left.map_err(|_| CORRUPT)?;
        let block = BlockEntry {
            offset,
            sealed_len: length(sealed, left)?,
            statistics_len: length(statistics, left)?,
            rows: length(rows, BLOCK_ROWS_MAX)?,
            first: (representative(first)?, first_ns),
            last: (representative(last)?, last_ns),
            min_ns,
            max_ns,
        };
        offset += (block.sealed_len + block.statistics_len) as u64;
        blocks.push(block);
    }
    if offset == index_at { Ok(blocks) } else { Err(CORRUPT) }
}
