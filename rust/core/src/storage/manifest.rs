//! The list of segments (`docs/format.md`, "Manifest").

mod entry;
mod kept_hours;

use std::collections::HashSet;

pub use self::entry::{SegmentEntry, seconds_of};
use self::entry::{decode_entries, decode_entry, encode_entries, encode_entry};
pub use self::kept_hours::KeptHours;

use crate::codec::bytes::{ByteReader, put_len, put_varint};
use crate::model::error::Result;
use crate::storage::store::SegmentId;
use crate::storage::tombstone::{Origin, Tombstone};

/// Version of the layout of a manifest without kept hours, and of a manifest with kept hours.
const VERSION: u8 = 5;
const VERSION_OF_HOURS: u8 = 6;
/// Smallest number of bytes of a tombstone. Bounds the count that is read before memory is taken.
const TOMBSTONE_LEN_MIN: usize = 6;

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
        encode_entries(&self.segments, last_ingest_s, &mut out);
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
        let segments = decode_entries(last_ingest_s, &mut input)?;
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

#[cfg(test)]
mod tests;
