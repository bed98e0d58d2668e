//! Counters of a plane.

use super::Reader;
use crate::model::error::Result;
use crate::storage::manifest::SegmentEntry;
use crate::storage::store::{PeekedCounts, Planes, Space, StoreCounts};

/// Counters of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Records, values and batches written since the plane was made.
    pub counts: StoreCounts,
    /// Number of times that the manifest was replaced.
    pub generation: u64,
    /// Distinct pairs of measurement and tag set.
    pub series: u64,
    /// Rows that are stored now. Compaction removes expired and deleted rows from this count.
    pub stored_rows: u64,
    /// Values that are stored now.
    pub stored_values: u64,
    /// Number of segments.
    pub segments: u64,
    /// Bytes on disk, including the bytes that the store needs for itself.
    pub space: Space,
}

impl Stats {
    pub(in crate::plane) fn peek(planes: &dyn Planes, plane: &str) -> Result<Self> {
        let PeekedCounts { counts, generation, series, segments, space } = planes.counts(plane)?;
        let (stored_rows, stored_values) = (counts.rows, counts.values);
        Ok(Self { counts, generation, series, stored_rows, stored_values, segments, space })
    }
}

/// Hours that outlive their rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptHoursStats {
    /// Seconds that hours are kept, 0 if they do not outlive their rows.
    pub seconds: u64,
    /// Number of hours. An hour of an entity counts once.
    pub hours: u64,
    /// Number of their segments.
    pub segments: u64,
    /// Bytes of their segments.
    pub bytes: u64,
    /// Start of the first hour, and of the last hour.
    pub times_ns: Option<(i64, i64)>,
}

impl Reader {
    pub(in crate::plane) fn kept_hours(&self) -> Result<KeptHoursStats> {
        self.follower.follow_heads()?;
        let manifest = self.follower.manifest();
        let entries = || manifest.hours.segments.iter();
        let first = entries().map(|entry| entry.min_ns).min();
        Ok(KeptHoursStats {
            seconds: manifest.hours.seconds,
            hours: entries().map(|entry| entry.rows).sum(),
            segments: manifest.hours.segments.len() as u64,
            bytes: entries().map(|entry| entry.bytes).sum(),
            times_ns: first.zip(entries().map(|entry| entry.max_ns).max()),
        })
    }

    pub(in crate::plane) fn stats(&self) -> Result<Stats> {
        self.follower.follow()?;
        let counts = self.sealed.store.counts()?;
        let manifest = self.follower.manifest();
        let in_segments = |of: fn(&SegmentEntry) -> u64| manifest.segments.iter().map(of).sum();
        let held = |ever: u64, left: u64, now: u64| ever.saturating_sub(left) + now;
        Ok(Stats {
            counts,
            generation: manifest.generation,
            series: self.registry.names().catalog.series_count() as u64,
            stored_rows: held(counts.rows, manifest.rows, in_segments(|entry| entry.rows)),
            stored_values: held(counts.values, manifest.values, in_segments(|entry| entry.values)),
            segments: manifest.segments.len() as u64,
            space: self.sealed.store.space()?,
        })
    }
}
