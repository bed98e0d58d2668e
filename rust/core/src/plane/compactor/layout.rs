//! The segments that the rows of a round go into, together with stored segments that are written
//! again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::vec::IntoIter;

use super::rest::DayRest;
use super::sharing::{self, SHARED_VALUES_MAX};
use crate::model::batch::Table;
use crate::model::error::Result;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::{ByRank, split_by_day};

/// Days whose rows go into one segment.
pub(super) struct Days<'t> {
    first: i64,
    pub(super) last: i64,
    /// Instant at which the newest of the rows was ingested, in seconds since 1970-01-01.
    pub(super) ingest_s: i64,
    /// Rows of these days, in write order within each day.
    pub(super) measurements: ByRank<'t>,
    weight: usize,
}

/// Days of a round in their order. Of stored rows it holds only the rows of one segment's days at a
/// time, which are few.
pub(super) struct RoundLayout<'t> {
    days: BTreeMap<i64, ByRank<'t>>,
    ingest_s: i64,
    rest: DayRest,
    /// Segments that are written again, grouped by day or by days that share a segment.
    stored: Peekable<IntoIter<Vec<SegmentEntry>>>,
    /// First days of the other segments.
    fixed: BTreeSet<i64>,
}

impl<'t> RoundLayout<'t> {
    /// Returns the layout of `days`, whose newest row was ingested at `ingest_s`. Takes the
    /// segments that are written again out of `manifest`.
    pub(super) fn new(
        days: BTreeMap<i64, ByRank<'t>>,
        ingest_s: i64,
        rest: &DayRest,
        manifest: &mut Manifest,
    ) -> Self {
        let mut stored = Vec::new();
        let mut fixed: Vec<SegmentEntry> = Vec::new();
        for of_days in manifest.by_days() {
            let mut touched = days.range(of_days[0].day..=of_days[0].last_day());
            if touched.next().is_some() && sharing::is_written_again(of_days, rest) {
                stored.push(of_days.to_vec());
            } else {
                fixed.extend(of_days);
            }
        }
        let first_days = fixed.iter().map(|entry| entry.day).collect();
        manifest.segments = fixed;
        let stored = stored.into_iter().peekable();
        Self { days, ingest_s, rest: *rest, stored, fixed: first_days }
    }

    /// Returns the next rows, together with the rows that `read` finds in their stored segments.
    pub(super) fn next_days(
        &mut self,
        read: impl Fn(&[SegmentEntry]) -> Result<Vec<(u32, Table)>>,
    ) -> Result<Option<Days<'t>>> {
        let mut found: Option<Days<'t>> = None;
        loop {
            self.take_stored(&read)?;
            let Some(next) = self.days.first_entry() else { return Ok(found) };
            let day = *next.key();
            let weight = next.get().values().flatten().map(|table| table.weight()).sum();
            match &mut found {
                None => {
                    let measurements = next.remove();
                    let ingest_s = self.ingest_s;
                    found = Some(Days { first: day, last: day, ingest_s, measurements, weight });
                }
                Some(days) => {
                    let total = days.weight + weight;
                    if total as u64 > SHARED_VALUES_MAX
                        || !self.rest.is_past(day)
                        || self.fixed.range(days.first..=day).next().is_some()
                    {
                        return Ok(found);
                    }
                    for (rank, tables) in next.remove() {
                        days.measurements.entry(rank).or_default().extend(tables);
                    }
                    (days.last, days.weight) = (day, total);
                }
            }
        }
    }

    /// Puts the rows of the next stored segments before the rows of the round.
    fn take_stored(
        &mut self,
        read: impl Fn(&[SegmentEntry]) -> Result<Vec<(u32, Table)>>,
    ) -> Result<()> {
        while let Some((next, _)) = self.days.first_key_value() {
            let Some(entries) = self.stored.next_if(|of_days| of_days[0].day <= *next) else {
                break;
            };
            let newest_s = entries.iter().map(|entry| entry.ingest_s).max();
            self.ingest_s = self.ingest_s.max(newest_s.unwrap_or(i64::MIN));
            for (rank, table) in read(&entries)?.into_iter().rev() {
                for (day, rows) in split_by_day(&table) {
                    let tables = self.days.entry(day).or_default().entry(rank).or_default();
                    tables.insert(0, Cow::Owned(rows.into_owned()));
                }
            }
        }
        Ok(())
    }
}
