//! Sorts the log of a snapshot into the days of a stream.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Reader;
use super::day::Day;
use crate::codec::decode_block;
use crate::model::batch::Table;
use crate::model::error::Result;
use crate::model::limits::SCAN_ROUND_VALUES_MAX;
use crate::plane::follower::PlaneSnapshot;
use crate::plane::sealed::SealedStore;
use crate::query::scan::ScanSelection;
use crate::storage::manifest::SegmentEntry;
use crate::storage::segment::{
    Representatives, RowSpan, SegmentWriter, filtered, partitioned, sorted_by_rank,
};
use crate::storage::store::SegmentId;
use crate::storage::tombstone::{Origin, into_visible};

/// Segments that a stream made for itself. Dropping this value removes them.
pub(super) struct OwnSegments {
    sealed: Arc<SealedStore>,
    ids: Vec<SegmentId>,
}

impl Drop for OwnSegments {
    fn drop(&mut self) {
        for id in &self.ids {
            // If this fails, the next compaction removes the segment.
            drop(self.sealed.store.remove_segment(id));
        }
    }
}

/// The log of a snapshot on its way into the days of a stream.
pub(super) struct LogRows<'r> {
    reader: &'r Reader,
    representatives: &'r Representatives,
    pub(super) days: BTreeMap<i64, Day>,
    pub(super) own: OwnSegments,
}

impl<'r> LogRows<'r> {
    pub(super) fn new(
        reader: &'r Reader,
        representatives: &'r Representatives,
        days: BTreeMap<i64, Day>,
    ) -> Self {
        let own = OwnSegments { sealed: Arc::clone(&reader.sealed), ids: Vec::new() };
        Self { reader, representatives, days, own }
    }

    /// Takes the rows of the log of `snapshot`.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Stale`] if compaction took blocks away,
    /// [`crate::model::error::Error::DiskFull`], or the errors of the store.
    pub(super) fn take(
        &mut self,
        snapshot: &PlaneSnapshot,
        selection: &ScanSelection,
    ) -> Result<()> {
        let mut round: Vec<Table> = Vec::new();
        let mut weight = 0;
        let reader = self.reader;
        let is_wanted = |table: &Table| {
            let names = reader.registry.names();
            let series = table.series.first().and_then(|series| names.catalog.series(*series));
            series.is_some_and(|series| selection.wants_measurement(series.measurement))
        };
        let mut add = |table: Cow<'_, Table>| {
            let table = if selection.chooses_series() {
                filtered(&table, |row| selection.wants_series(table.series[row])).into_owned()
            } else {
                table.into_owned()
            };
            if table.row_count() == 0 {
                return Ok(());
            }
            if weight >= SCAN_ROUND_VALUES_MAX {
                weight = 0;
                self.write(&std::mem::take(&mut round))?;
            }
            weight += table.row_count() + table.weight();
            round.push(table);
            Ok(())
        };
        reader.sealed.visit_log(&snapshot.stored, |sequence, plain| {
            let hiding = snapshot.manifest.hiding(&Origin::Log(sequence));
            for table in decode_block(plain)?.tables.into_iter().filter(is_wanted) {
                let table = into_visible(table, &hiding, &reader.registry.names().catalog);
                add(Cow::Owned(table))?;
            }
            Ok(())
        })?;
        for table in snapshot.recent_tables() {
            if is_wanted(table) {
                add(Cow::Borrowed(table))?;
            }
        }
        for (day, tables) in partitioned(&round, self.representatives)? {
            self.days.entry(day).or_default().tables =
                sorted_by_rank(tables, self.representatives)?;
        }
        Ok(())
    }

    /// Writes a round to a segment of each day.
    fn write(&mut self, round: &[Table]) -> Result<()> {
        let (store, sealer) = (&*self.reader.sealed.store, self.reader.sealed.sealer());
        for (day, tables) in partitioned(round, self.representatives)? {
            let mut writer = SegmentWriter::begin_scratch(store, &sealer, self.representatives)?;
            for tables in tables.into_values() {
                let spans: Vec<_> = tables.iter().map(|table| RowSpan::whole(table)).collect();
                writer.write_measurement(&spans, |_| Ok(()))?;
            }
            let entry = SegmentEntry::new(&writer.finish()?, 0);
            self.own.ids.push(entry.id);
            self.days.entry(day).or_default().segments.push(entry);
        }
        Ok(())
    }
}
