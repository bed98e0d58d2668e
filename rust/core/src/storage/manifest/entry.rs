//! Entry of a segment in the manifest.

use std::ops::Range;

use crate::codec::Effort;
use crate::codec::bytes::{ByteReader, put_len, put_varint, put_zigzag};
use crate::model::error::Result;
use crate::model::time::SECOND_NS;
use crate::storage::segment::{SegmentSummary, day_of};
use crate::storage::store::SegmentId;

/// Flag of an entry whose segment is provisional.
const PROVISIONAL: u8 = 1;
/// Smallest number of bytes of an entry. Bounds the count that is read before memory is taken.
const LEN_MIN: usize = 16 + 8;

/// Entry of a segment in the manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentEntry {
    /// Id of the segment.
    pub id: SegmentId,
    /// Day of the first row, counted from 1970-01-01. 0 for the checkpoint.
    pub day: i64,
    /// Length of the file.
    pub bytes: u64,
    /// Number of rows.
    pub rows: u64,
    /// Number of values.
    pub values: u64,
    /// Smallest time.
    pub min_ns: i64,
    /// Greatest time.
    pub max_ns: i64,
    /// If true, more effort may make the segment shorter. The segment is written again when its day
    /// gets no more rows.
    pub is_provisional: bool,
    /// Instant at which the newest of its rows came, in seconds since 1970-01-01. 0 if not known.
    pub ingest_s: i64,
}

impl SegmentEntry {
    /// Returns the entry of a segment that was written. Its rows came until `ingest_s`.
    #[must_use]
    pub fn new(written: &SegmentSummary, ingest_s: i64) -> Self {
        let SegmentSummary { id, bytes, rows, values, times_ns, is_provisional } = *written;
        let (min_ns, max_ns) = times_ns.unwrap_or_default();
        let day = day_of(min_ns);
        Self { id, day, bytes, rows, values, min_ns, max_ns, is_provisional, ingest_s }
    }

    /// Returns the entry of a checkpoint that was written.
    #[must_use]
    pub fn of_checkpoint(written: &SegmentSummary) -> Self {
        Self { day: 0, ..Self::new(written, 0) }
    }

    /// Returns the day of the last row.
    #[must_use]
    pub const fn last_day(&self) -> i64 {
        let last_day = day_of(self.max_ns);
        if last_day > self.day { last_day } else { self.day }
    }

    /// Returns true if several days share the segment. No other segment then has rows of these
    /// days.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.last_day() > self.day
    }

    /// Returns the effort that the segment was written with.
    #[must_use]
    pub const fn effort(&self) -> Effort {
        if self.is_provisional { Effort::Low } else { Effort::High }
    }

    /// Returns true if the segment may have a row at `times_ns`.
    #[must_use]
    pub const fn overlaps(&self, times_ns: &Range<i64>) -> bool {
        self.max_ns >= times_ns.start && self.min_ns < times_ns.end
    }
}

/// Appends the number of entries, and the entries.
pub(super) fn encode_entries(entries: &[SegmentEntry], last_ingest_s: i64, out: &mut Vec<u8>) {
    put_len(out, entries.len());
    for entry in entries {
        encode_entry(entry, last_ingest_s, out);
    }
}

/// Reads what [`encode_entries`] wrote.
pub(super) fn decode_entries(
    last_ingest_s: i64,
    input: &mut ByteReader<'_>,
) -> Result<Vec<SegmentEntry>> {
    let count = input.len(input.remaining() / LEN_MIN)?;
    (0..count).map(|_| decode_entry(last_ingest_s, input)).collect()
}

pub(super) fn encode_entry(entry: &SegmentEntry, last_ingest_s: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&entry.id);
    put_zigzag(out, entry.day);
    for number in [entry.bytes, entry.rows, entry.values] {
        put_varint(out, number);
    }
    put_zigzag(out, entry.min_ns);
    put_zigzag(out, entry.max_ns);
    out.push(if entry.is_provisional { PROVISIONAL } else { 0 });
    put_zigzag(out, last_ingest_s.wrapping_sub(entry.ingest_s));
}

/// Returns an instant in whole seconds, rounded down. Example: -1 ns is second -1.
#[must_use]
pub const fn seconds_of(time_ns: i64) -> i64 {
    time_ns.div_euclid(SECOND_NS)
}

pub(super) fn decode_entry(last_ingest_s: i64, input: &mut ByteReader<'_>) -> Result<SegmentEntry> {
    Ok(SegmentEntry {
        id: input.array()?,
        day: input.zigzag()?,
        bytes: input.varint()?,
        rows: input.varint()?,
        values: input.varint()?,
        min_ns: input.zigzag()?,
        max_ns: input.zigzag()?,
        is_provisional: {
            let flags = input.byte()?;
            input.check(flags <= PROVISIONAL)?;
            flags == PROVISIONAL
        },
        ingest_s: last_ingest_s.wrapping_sub(input.zigzag()?),
    })
}
