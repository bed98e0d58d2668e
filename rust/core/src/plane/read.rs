//! The read paths: newest samples from memory, series from the blocks that overlap.

use std::ops::Range;
use std::sync::Arc;

use super::{Plane, State};
use crate::batch::Table;
use crate::catalog::{Catalog, MeasurementIndex};
use crate::column::{BlockReader, decode_block};
use crate::error::Result;
use crate::json::{self, Chunks};
use crate::query::answer::SeriesAnswer;
use crate::query::latest::Latest;
use crate::query::request::SeriesQuery;
use crate::query::select::{Collector, Selection};
use crate::query::{RawRows, WindowRows};
use crate::seal::Kind;

/// Blocks read in one go: bounds memory and the time a read transaction stays open.
const BLOCKS_PER_READ: usize = 256;

/// What [`Plane::with_latest`] lends.
pub struct LatestView<'a> {
    /// Newest samples; those within `range_ns` answer the read.
    pub latest: &'a Latest,
    /// The names behind them.
    pub catalog: &'a Catalog,
    /// The window of the read.
    pub range_ns: Range<i64>,
}

impl Plane {
    /// The instant a read is made at: after every commit it sees (D12), else `clock_ns`.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn read_instant(&self, clock_ns: i64) -> Result<i64> {
        self.follow()?;
        let last_ingest_ns = self.state().last_ingest_ns;
        Ok(last_ingest_ns.map_or(clock_ns, |last| clock_ns.max(last.saturating_add(1))))
    }

    /// Lends the newest sample of every entity in `[as_of_ns - freshness_ns, as_of_ns)` to `lend`.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn with_latest<R>(
        &self,
        as_of_ns: i64,
        freshness_ns: i64,
        measurement: Option<&str>,
        lend: impl FnOnce(LatestView<'_>) -> R,
    ) -> Result<R> {
        self.follow()?;
        let range_ns = as_of_ns.saturating_sub(freshness_ns)..as_of_ns;
        let names = self.names();
        let state = self.state();
        let catalog = &names.catalog;
        let measurement = match measurement.map(|name| catalog.measurement(name)) {
            // A measurement nobody wrote has no newest sample.
            Some(None) => {
                let latest = &Latest::default();
                return Ok(lend(LatestView { latest, catalog, range_ns }));
            }
            Some(known) => known,
            None => None,
        };
        if state.latest.newest_ns(measurement).is_none_or(|newest_ns| newest_ns < as_of_ns) {
            return Ok(lend(LatestView { latest: &state.latest, catalog, range_ns }));
        }
        // Something newer hides the past: look the window up as it was.
        let overlap = state.overlapping(&range_ns);
        drop(state);
        let latest = self.latest_within(&overlap, &range_ns, catalog)?;
        Ok(lend(LatestView { latest: &latest, catalog, range_ns }))
    }

    fn latest_within(
        &self,
        overlap: &Overlap,
        range_ns: &Range<i64>,
        catalog: &Catalog,
    ) -> Result<Latest> {
        let mut latest = Latest::default();
        self.visit_blocks(&overlap.stored, |plain| {
            for table in decode_block(plain)?.tables {
                latest.apply(&table, range_ns, catalog);
            }
            Ok(())
        })?;
        for table in overlap.recent.iter().flat_map(|tables| tables.iter()) {
            latest.apply(table, range_ns, catalog);
        }
        latest.sort(catalog);
        Ok(latest)
    }

    /// The body of `GET /topology`, in pieces.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn latest_json(
        &self,
        as_of_ns: i64,
        freshness_ns: i64,
        measurement: Option<&str>,
    ) -> Result<Vec<Vec<u8>>> {
        self.with_latest(as_of_ns, freshness_ns, measurement, |frame| {
            let mut chunks = Chunks::default();
            let out = chunks.open();
            out.extend_from_slice(b"{\"as_of_utc\":");
            json::write_time(out, as_of_ns);
            out.extend_from_slice(b",\"tenant_key\":");
            json::write_string(out, &self.tenant_key);
            out.extend_from_slice(b",\"entities\":[");
            for index in frame.measurements(measurement) {
                if let Some(table) = frame.latest.table(index) {
                    table.write_entities(&mut chunks, frame.range_ns.clone(), frame.catalog);
                }
            }
            chunks.open().extend_from_slice(b"]}");
            chunks.finish()
        })
    }

    /// Reads a series, the point budget not yet applied. All entities are read from one snapshot
    /// (H34).
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn series(&self, query: SeriesQuery) -> Result<SeriesAnswer> {
        self.follow()?;
        let selection = Selection::new(&query, &self.names().catalog);
        let (entities, channels) = (query.entity_ids.len(), selection.channel_count());
        let entities = match query.windows {
            None => {
                let mut rows = RawRows::new(entities, channels);
                self.collect(&query, &selection, &mut rows)?;
                rows.finish()
            }
            Some((interval, aggregation)) => {
                let mut rows = WindowRows::new(entities, channels, interval, aggregation);
                self.collect(&query, &selection, &mut rows)?;
                rows.finish()
            }
        };
        let channel_names = selection.channel_names().map(str::to_owned).collect();
        Ok(SeriesAnswer { query, channel_names, entities, next_start_ns: None })
    }

    fn collect(
        &self,
        query: &SeriesQuery,
        selection: &Selection,
        collector: &mut impl Collector,
    ) -> Result<()> {
        if selection.is_empty() {
            return Ok(());
        }
        let overlap = self.state().overlapping(&(query.start_ns..query.end_ns));
        self.visit_blocks(&overlap.stored, |plain| {
            selection.collect(&BlockReader::open(plain)?, collector)
        })?;
        for table in overlap.recent.iter().flat_map(|tables| tables.iter()) {
            selection.collect_decoded(table, collector);
        }
        Ok(())
    }

    fn visit_blocks(
        &self,
        sequences: &[u64],
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        for chunk in sequences.chunks(BLOCKS_PER_READ) {
            for entry in self.store.log_get(chunk)? {
                visit(&self.sealer.open(Kind::LogBlock, &entry.sealed)?)?;
            }
        }
        Ok(())
    }
}

impl LatestView<'_> {
    /// The measurements to answer with, in byte order (G4): the one asked for, or all.
    #[must_use]
    pub fn measurements(&self, measurement: Option<&str>) -> Vec<MeasurementIndex> {
        match measurement {
            Some(name) => self.catalog.measurement(name).into_iter().collect(),
            None => self.catalog.measurements_by_name(),
        }
    }
}

/// The blocks that a read must look at, in write order: first the stored, then the recent ones.
struct Overlap {
    /// Positions of blocks that are no longer in memory.
    stored: Vec<u64>,
    recent: Vec<Arc<[Table]>>,
}

impl State {
    /// The blocks with a row in `range_ns`, perhaps some without.
    fn overlapping(&self, range_ns: &Range<i64>) -> Overlap {
        let overlaps = |block: &&super::LogBlock| {
            block.max_time_ns >= range_ns.start && block.min_time_ns < range_ns.end
        };
        let mut stored: Vec<u64> =
            self.log.iter().filter(overlaps).map(|block| block.sequence).collect();
        let recent = self.recent.newest_of(&stored);
        stored.truncate(stored.len() - recent.len());
        Overlap { stored, recent }
    }
}
