//! The list of segments (`docs/format.md`, "Manifest").

mod kept_hours;

use std::collections::HashSet;
use std::ops::Range;

pub use self::kept_hours::KeptHours;

use crate::codec::Effort;
use crate::codec::bytes::{ByteReader, put_len, put_varint, put_zigzag};
use crate::model::error::Result;
use crate::model::time::SECOND_NS;
use crate::storage::segment::{SegmentSummary, day_of};
use crate::storage::store::SegmentId;
use crate::storage::tombstone::{Origin, Tombstone};

/// Version of the layout of a manifest without kept hours, and of a manifest with kept hours.
const VERSION: u8 = 5;
const VERSION_OF_HOURS: u8 = 6;
/// Flag of an entry whose segment is provisional.
const PROVISIONAL: u8 = 1;
/// Smallest number of bytes of an entry, and of a tombstone. Bounds the counts that are read before
/// memory is taken.
const ENTRY_LEN_MIN: usize = 16 + 8;
const TOMBSTONE_LEN_MIN: usize = 6;

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

/// The segments of a store, and the position in the log that the segments reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Number of times that the manifest was replaced.
    pub generation: u64,
    /// Blocks of the log up to this position are in the segments.
    pub compacted: u64,
    /// Number of rows that ever left the log.
    pub rows: u64,
    /// Number of values that ever left the log.
    pub values: u64,
    /// Greatest ingest instant up to `compacted`.
    pub last_ingest_ns: i64,
    /// The newest rows of each entity as of `compacted`. The id is empty if there is no checkpoint.
    pub checkpoint: SegmentEntry,
    /// Segments by day, then in write order.
    pub segments: Vec<SegmentEntry>,
    /// Generation that brought the last tombstone. 0 for none.
    pub deleted: u64,
    /// Rows that are stored but deleted, in the order of their deletes.
    pub tombstones: Vec<Tombstone>,
    /// Hours that outlive their rows.
    pub hours: KeptHours,
}

impl Manifest {
    /// Encodes the manifest.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let has_hours = self.hours.seconds > 0;
        let mut out = vec![if has_hours { VERSION_OF_HOURS } else { VERSION }];
        for number in [self.generation, self.compacted, self.rows, self.values] {
            put_varint(&mut out, number);
        }
        out.extend_from_slice(&self.last_ingest_ns.to_le_bytes());
        let last_ingest_s = seconds_of(self.last_ingest_ns);
        encode_entry(
            &SegmentEntry { ingest_s: last_ingest_s, ..self.checkpoint },
            last_ingest_s,
            &mut out,
        );
        put_len(&mut out, self.segments.len());
        for entry in &self.segments {
            encode_entry(entry, last_ingest_s, &mut out);
        }
        put_varint(&mut out, self.deleted);
        put_len(&mut out, self.tombstones.len());
        for tombstone in &self.tombstones {
            tombstone.encode(&mut out);
        }
        if has_hours {
            self.hours.encode(last_ingest_s, &mut out);
        }
        out
    }

    /// Decodes a manifest.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Corrupt`] if the bytes are not a manifest, and
    /// [`crate::model::error::Error::Foreign`] if a build before 0.3.0 wrote the manifest.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut input = ByteReader::new(bytes, "the manifest");
        let version = input.version_among(VERSION..=VERSION_OF_HOURS)?;
        let generation = input.varint()?;
        let compacted = input.varint()?;
        let rows = input.varint()?;
        let values = input.varint()?;
        let last_ingest_ns = i64::from_le_bytes(input.array()?);
        let last_ingest_s = seconds_of(last_ingest_ns);
        let checkpoint = decode_entry(last_ingest_s, &mut input)?;
        let checkpoint = SegmentEntry { ingest_s: 0, ..checkpoint };
        let count = input.len(input.remaining() / ENTRY_LEN_MIN)?;
        let entries = (0..count).map(|_| decode_entry(last_ingest_s, &mut input));
        let segments = entries.collect::<Result<Vec<_>>>()?;
        let deleted = input.varint()?;
        let count = input.len(input.remaining() / TOMBSTONE_LEN_MIN)?;
        let tombstones =
            (0..count).map(|_| Tombstone::decode(&mut input)).collect::<Result<_>>()?;
        let hours = match version {
            VERSION_OF_HOURS => KeptHours::decode(last_ingest_s, &mut input)?,
            _ => KeptHours::default(),
        };
        input.end()?;
        input.check(segments.is_sorted_by(is_followed_by))?;
        Ok(Self {
            generation,
            compacted,
            rows,
            values,
            last_ingest_ns,
            checkpoint,
            segments,
            deleted,
            tombstones,
            hours,
        })
    }

    /// Returns the segments of each day in write order. A segment that several days share comes
    /// alone.
    pub fn by_days(&self) -> impl Iterator<Item = &[SegmentEntry]> {
        self.segments.chunk_by(|a, b| a.day == b.day)
    }

    /// Returns true if segments may have rows of a day.
    #[must_use]
    pub fn has_day(&self, day: i64) -> bool {
        let until = self.segments.partition_point(|entry| entry.day <= day);
        self.segments[..until].last().is_some_and(|entry| entry.last_day() >= day)
    }

    /// Returns the entries of all files: checkpoint, segments and kept hours.
    pub fn files(&self) -> impl Iterator<Item = &SegmentEntry> {
        std::iter::once(&self.checkpoint).chain(&self.segments).chain(&self.hours.segments)
    }

    /// Returns the ids of all files.
    pub fn ids(&self) -> impl Iterator<Item = SegmentId> {
        self.files().map(|entry| entry.id)
    }

    /// Returns the tombstones that reach `origin`. Rows of `origin` that these tombstones name are
    /// hidden from every read.
    #[must_use]
    pub fn hiding(&self, origin: &Origin) -> Vec<&Tombstone> {
        self.tombstones.iter().filter(|tombstone| tombstone.reaches(origin)).collect()
    }

    /// Returns the position of the log up to which rows may be hidden.
    #[must_use]
    pub fn hidden_until(&self) -> u64 {
        self.tombstones.iter().map(|tombstone| tombstone.position).max().unwrap_or(0)
    }

    /// Removes the tombstones that no longer hide any rows.
    pub fn forget_tombstones(&mut self) {
        let named: HashSet<SegmentId> = self.ids().collect();
        for tombstone in &mut self.tombstones {
            tombstone.segments =
                tombstone.segments.iter().copied().filter(|id| named.contains(id)).collect();
        }
        self.tombstones.retain(|tombstone| {
            tombstone.position > self.compacted || !tombstone.segments.is_empty()
        });
    }

    /// Replaces `entries`, which are segments that follow each other or such segments of hours, by
    /// `merged`. Removes them if `merged` is `None`.
    pub fn replace(&mut self, entries: &[SegmentEntry], merged: Option<SegmentEntry>) {
        for segments in [&mut self.segments, &mut self.hours.segments] {
            let is_first =
                |entry: &SegmentEntry| entries.first().is_some_and(|first| entry == first);
            if let Some(at) = segments.iter().position(is_first) {
                segments.splice(at..at + entries.len(), merged);
            }
        }
    }

    /// Adds a segment after the other segments of its day.
    pub fn insert(&mut self, entry: SegmentEntry) {
        let at = self.segments.partition_point(|other| other.day <= entry.day);
        self.segments.insert(at, entry);
    }
}

/// Returns true if `next` may follow `entry`: both are of the same single day, or `entry` ends on
/// an earlier day.
fn is_followed_by(entry: &SegmentEntry, next: &SegmentEntry) -> bool {
    let is_of_same = entry.day == next.day && !entry.is_shared() && !next.is_shared();
    is_of_same || entry.last_day() < next.day
}

fn encode_entry(entry: &SegmentEntry, last_ingest_s: i64, out: &mut Vec<u8>) {
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

fn decode_entry(last_ingest_s: i64, input: &mut ByteReader<'_>) -> Result<SegmentEntry> {
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

#[cfg(test)]
mod tests;
