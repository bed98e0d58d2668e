//! Frames: the bytes that one write appends to a log (`docs/format.md`).
//!
//! A frame has the blocks of a group. Its head names the log, the position and the frame before. So
//! a torn or left-over frame, or a frame from elsewhere, does not pass for a frame of the log.

use super::file::LogFile;
use super::tail::Tail;
use crate::model::error::Result;
use crate::storage::store::cursor::Cursor;
use crate::storage::store::entries::{NewBlock, StoreCounts};

pub(super) const HEAD_BYTES: usize = 96;
/// Frames begin at multiples of so many bytes.
pub(super) const ALIGNMENT: usize = 8;
const MAGIC: [u8; 4] = *b"flfr";
const CHECKSUM_AT: usize = HEAD_BYTES - 4;
/// Bytes that are read to find a head and, most often, its table.
const WINDOW_BYTES: usize = 4 << 10;

/// A frame that was found, without its blocks.
#[derive(Clone, Debug)]
pub(super) struct LogFrame {
    /// Position of the frame.
    pub(super) start: u64,
    /// State of the log behind the frame.
    pub(super) tail: Tail,
    /// The log was durable up to this position before the frame was written.
    pub(super) synced: u64,
    /// Lengths of the blocks.
    pub(super) lengths: Vec<u32>,
    pub(super) cursors: Vec<Cursor>,
    /// Position of the first block.
    pub(super) blocks_at: u64,
}

/// Head of a frame.
#[derive(Clone, Copy)]
pub(super) struct FrameHead {
    pub(super) start: u64,
    pub(super) synced: u64,
    pub(super) tail: Tail,
    block_count: u32,
    cursor_bytes: u32,
    body_bytes: u64,
    chain: u32,
    body_checksum: u32,
}

/// Encodes the frame of `groups`, which follows `tail`. Also returns the state behind the frame.
pub(super) fn encode(
    log: u64,
    tail: &Tail,
    synced: u64,
    groups: &[Vec<NewBlock>],
) -> (Vec<u8>, Tail) {
    let blocks = || groups.iter().flatten();
    let mut bytes = vec![0; HEAD_BYTES];
    let mut counts = tail.counts;
    let mut block_count = 0_u32;
    for block in blocks() {
        let log_bytes = block.sealed.len() as u64;
        counts.add(&StoreCounts { log_bytes, ..block.counts });
        if !block.sealed.is_empty() {
            let length = u32::try_from(log_bytes).expect("a block has less than 4 GiB");
            bytes.extend(length.to_le_bytes());
            block_count += 1;
        }
    }
    let cursor_bytes = put_cursors(&mut bytes, blocks().filter_map(|block| block.cursor.as_ref()));
    let sealed_bytes: usize = blocks().map(|block| block.sealed.len()).sum();
    // Also covers the space that is reserved behind a large frame.
    bytes.reserve_exact(sealed_bytes + ALIGNMENT + WINDOW_BYTES);
    blocks().for_each(|block| bytes.extend_from_slice(&block.sealed));
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);

    let body_checksum = crc32fast::hash(&bytes[HEAD_BYTES..]);
    let numbers = [
        tail.end,
        (bytes.len() - HEAD_BYTES) as u64,
        tail.sequence + u64::from(block_count),
        counts.rows,
        counts.values,
        counts.rejected,
        counts.batches,
        counts.log_bytes,
        synced,
    ];
    let mut head = MAGIC.to_vec();
    head.extend(block_count.to_le_bytes());
    head.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    for number in [cursor_bytes, tail.chain, body_checksum] {
        head.extend(number.to_le_bytes());
    }
    let chain = head_checksum(log, &head);
    head.extend(chain.to_le_bytes());
    bytes[..HEAD_BYTES].copy_from_slice(&head);
    let end = tail.end + bytes.len() as u64;
    (bytes, Tail { end, sequence: tail.sequence + u64::from(block_count), counts, chain })
}

/// Appends the cursors. Returns the number of bytes that they take.
fn put_cursors<'c>(bytes: &mut Vec<u8>, cursors: impl Iterator<Item = &'c Cursor>) -> u32 {
    let before = bytes.len();
    for Cursor { key, position } in cursors {
        bytes.extend(key);
        bytes.push(u8::try_from(position.len()).expect("the writer bounds a position"));
        bytes.extend(position);
    }
    u32::try_from(bytes.len() - before).expect("a group has few cursors")
}

fn head_checksum(log: u64, head: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&log.to_le_bytes());
    hasher.update(head);
    hasher.finalize()
}

impl FrameHead {
    /// Decodes the head at the beginning of `bytes`. Returns `None` if it is not a head of this log
    /// at this position.
    pub(super) fn decode(log: u64, start: u64, bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..HEAD_BYTES)?;
        let number = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
        if head[..4] != MAGIC || long(8)? != start {
            return None;
        }
        let checksum = number(CHECKSUM_AT)?;
        let expected = head_checksum(log, &head[..CHECKSUM_AT]);
        if checksum != expected {
            return None;
        }
        let body_bytes = long(16)?;
        let counts = StoreCounts {
            rows: long(32)?,
            values: long(40)?,
            rejected: long(48)?,
            batches: long(56)?,
            log_bytes: long(64)?,
        };
        let end = start.checked_add(HEAD_BYTES as u64)?.checked_add(body_bytes)?;
        Some(Self {
            start,
            synced: long(72)?,
            tail: Tail { end, sequence: long(24)?, counts, chain: checksum },
            block_count: number(4)?,
            cursor_bytes: number(80)?,
            body_bytes,
            chain: number(84)?,
            body_checksum: number(88)?,
        })
    }

    /// Reads the head at `start`.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Io`] if the file cannot be read.
    pub(super) fn read(file: &LogFile, start: u64) -> Result<Option<Self>> {
        let bytes = file.read_up_to(start, HEAD_BYTES)?;
        Ok(Self::decode(file.log, start, &bytes))
    }
}

/// Reads the frame that follows `tail`. Returns `None` if no frame follows. If `is_checked`, also
/// returns `None` if the blocks are not as they were written.
///
/// # Errors
/// Returns [`crate::model::error::Error::Io`] if the file cannot be read.
pub(super) fn read(file: &LogFile, tail: &Tail, is_checked: bool) -> Result<Option<LogFrame>> {
    let mut bytes = file.read_up_to(tail.end, WINDOW_BYTES)?;
    let Some(head) =
        FrameHead::decode(file.log, tail.end, &bytes).filter(|head| head.follows(tail))
    else {
        return Ok(None);
    };
    // The lengths are not checked yet, so the length of the file bounds them.
    let left = file.bytes()?.saturating_sub(file.offset(tail.end) + HEAD_BYTES as u64);
    let table_bytes = 4 * u64::from(head.block_count) + u64::from(head.cursor_bytes);
    if head.body_bytes > left || table_bytes > head.body_bytes {
        return Ok(None);
    }
    let wanted = HEAD_BYTES as u64 + if is_checked { head.body_bytes } else { table_bytes };
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    if bytes.len() < wanted {
        bytes = file.read_up_to(tail.end, wanted)?;
    }
    let Some(body) = bytes.get(HEAD_BYTES..wanted) else { return Ok(None) };
    if is_checked && crc32fast::hash(body) != head.body_checksum {
        return Ok(None);
    }
    Ok(head.frame(body, table_bytes, tail))
}

impl FrameHead {
    fn follows(&self, tail: &Tail) -> bool {
        self.chain == tail.chain
            && self.body_bytes.is_multiple_of(ALIGNMENT as u64)
            && tail.sequence.checked_add(self.block_count.into()) == Some(self.tail.sequence)
    }

    fn frame(&self, body: &[u8], table_bytes: u64, before: &Tail) -> Option<LogFrame> {
        let lengths_end = 4 * usize::try_from(self.block_count).ok()?;
        let (lengths, rest) = body.split_at_checked(lengths_end)?;
        let lengths = lengths.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let lengths: Vec<_> = lengths.collect();
        let mut rest = rest.get(..usize::try_from(self.cursor_bytes).ok()?)?;
        let mut cursors = Vec::new();
        while !rest.is_empty() {
            let (cursor, after) = Cursor::first(rest)?;
            cursors.push(cursor);
            rest = after;
        }
        let sealed_bytes: u64 = lengths.iter().copied().map(u64::from).sum();
        let used = table_bytes.checked_add(sealed_bytes)?;
        let is_sound = before.counts.log_bytes.checked_add(sealed_bytes)
            == Some(self.tail.counts.log_bytes)
            && used.checked_next_multiple_of(ALIGNMENT as u64) == Some(self.body_bytes)
            && !lengths.contains(&0);
        let blocks_at = self.start + HEAD_BYTES as u64 + table_bytes;
        let Self { start, tail, synced, .. } = *self;
        is_sound.then_some(LogFrame { start, tail, synced, lengths, cursors, blocks_at })
    }
}
