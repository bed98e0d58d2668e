//! Hours that outlive their rows, as the manifest lists them.

use std::ops::Range;

use super::entry::{SegmentEntry, decode_entries, encode_entries};
use crate::codec::bytes::{ByteReader, put_varint};
use crate::model::error::Result;

/// Segments of hours. A row of such a segment is an hour of an entity, and its columns are the
/// statistics of the hour's fields, as in the statistics of a block.
///
/// An hour replaces the same hour of earlier segments. So an hour whose late rows expire is written
/// again with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptHours {
    /// Seconds that hours are kept. 0 keeps none.
    pub seconds: u64,
    /// Segments in the order in which their rows expired.
    pub segments: Vec<SegmentEntry>,
}

impl KeptHours {
    /// Returns the segments that may have an hour that begins in `times_ns`.
    pub fn segments_in(&self, times_ns: &Range<i64>) -> impl Iterator<Item = &SegmentEntry> {
        self.segments.iter().filter(|entry| entry.overlaps(times_ns))
    }

    pub(super) fn encode(&self, last_ingest_s: i64, out: &mut Vec<u8>) {
        put_varint(out, self.seconds);
        encode_entries(&self.segments, last_ingest_s, out);
    }

    pub(super) fn decode(last_ingest_s: i64, input: &mut ByteReader<'_>) -> Result<Self> {
        let seconds = input.varint()?;
        input.check(seconds > 0)?;
        Ok(Self { seconds, segments: decode_entries(last_ingest_s, input)? })
    }
}
