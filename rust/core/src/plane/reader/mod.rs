//! What all reads share, and newest samples, which are in memory.

mod history;
mod processors;
mod series;

use std::ops::Range;
use std::sync::Arc;

use super::caches::Caches;
use super::{MISSING, Plane, SECOND_NS, Snapshot, State, VIEWS_MAX};
use crate::model::error::{Error, Result};
use crate::model::json::{self, Chunks};
use crate::query::latest::{Latest, LatestView};
use crate::storage::seal::Kind;

/// Blocks read in one go: bounds memory and the time a read transaction stays open.
const BLOCKS_PER_READ: usize = 256;

/// How far an ingest instant may lie ahead of the clock for reads to follow it: a clock that is set
/// right steps back by no more, and one that was wrong must not decide for long what is now.
const LEAD_FOLLOWED_NS: i64 = 5 * SECOND_NS;

impl Plane {
    /// The instant a read is made at: `clock_ns`, or after every commit that it sees where the last
    /// of them were made by a clock that was ahead by up to 5 seconds (D15).
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn read_instant(&self, clock_ns: i64) -> Result<i64> {
        self.follow()?;
        Ok(self.state().read_instant(clock_ns))
    }

    /// How far the last ingest instant lies ahead of `clock_ns`, as far as the log was followed: 0
    /// where reads take it in.
    #[must_use]
    pub fn ingest_lead_ns(&self, clock_ns: i64) -> i64 {
        let last_ns = self.state().last_ingest_ns.unwrap_or(i64::MIN);
        Some(last_ns.saturating_sub(clock_ns)).filter(|lead| *lead > LEAD_FOLLOWED_NS).unwrap_or(0)
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
        now_ns: i64,
        lend: impl FnOnce(LatestView<'_>) -> R,
    ) -> Result<R> {
        let mut lend = Some(lend);
        self.retrying(|| {
            self.follow()?;
            let start_ns = as_of_ns.saturating_sub(freshness_ns).max(self.kept_from_ns(now_ns));
            self.lend_latest(start_ns..as_of_ns, measurement, &mut lend)
        })
    }

    fn lend_latest<R>(
        &self,
        range_ns: Range<i64>,
        measurement: Option<&str>,
        lend: &mut Option<impl FnOnce(LatestView<'_>) -> R>,
    ) -> Result<R> {
        let mut lend = |view: LatestView<'_>| {
            let lend = lend.take().expect("a read that was answered is not repeated");
            Ok(lend(view))
        };
        let names = self.names();
        let state = self.state();
        let catalog = &names.catalog;
        let measurement = match measurement.map(|name| catalog.measurement(name)) {
            // A measurement nobody wrote has no newest sample.
            Some(None) => {
                let latest = &Latest::default();
                return lend(LatestView { latest, catalog, range_ns });
            }
            Some(known) => known,
            None => None,
        };
        if state.latest.newest_ns(measurement).is_none_or(|newest_ns| newest_ns < range_ns.end) {
            return lend(LatestView { latest: &state.latest, catalog, range_ns });
        }
        // Something newer hides the past: look the window up as it was.
        let snapshot = state.snapshot(&range_ns, &self.caches);
        drop(state);
        let latest = self.latest_within(&snapshot, measurement, &range_ns, catalog)?;
        lend(LatestView { latest: &latest, catalog, range_ns })
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
        now_ns: i64,
    ) -> Result<Vec<Vec<u8>>> {
        self.with_latest(as_of_ns, freshness_ns, measurement, now_ns, |frame| {
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

    /// Does again what compaction overtook.
    pub(super) fn retrying<R>(&self, mut read: impl FnMut() -> Result<R>) -> Result<R> {
        for _ in 0..VIEWS_MAX {
            let generation = self.cursor().generation;
            match read() {
                Err(Error::Stale) => self.follow()?,
                outcome => {
                    self.caches.settle();
                    return outcome;
                }
            }
            if self.cursor().generation == generation {
                return Err(MISSING);
            }
        }
        Err(Error::Stale)
    }

    pub(super) fn visit_log(
        &self,
        sequences: &[u64],
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        for chunk in sequences.chunks(BLOCKS_PER_READ) {
            for entry in self.store.log_get(chunk)? {
                self.store.check_open()?;
                visit(&self.sealer.open(Kind::LogBlock, &entry.sealed)?)?;
            }
        }
        Ok(())
    }
}

impl State {
    fn read_instant(&self, clock_ns: i64) -> i64 {
        let followed_until_ns = clock_ns.saturating_add(LEAD_FOLLOWED_NS);
        let is_followed = |ingest_ns: &i64| *ingest_ns <= followed_until_ns;
        let last_ns = match self.last_ingest_ns {
            // A clock was wrong: what was written by a better one is among the last blocks.
            Some(last_ns) if !is_followed(&last_ns) => {
                self.log.iter().map(|block| block.ingest_ns).filter(is_followed).max()
            }
            last_ns => last_ns,
        };
        last_ns.map_or(clock_ns, |last_ns| clock_ns.max(last_ns.saturating_add(1)))
    }

    /// The segments, and the blocks of the log with a row in `range_ns`, perhaps some without.
    pub(super) fn snapshot(&self, range_ns: &Range<i64>, caches: &Caches) -> Snapshot {
        let overlaps = |block: &&super::LogBlock| {
            block.max_time_ns >= range_ns.start && block.min_time_ns < range_ns.end
        };
        let mut stored: Vec<u64> =
            self.log.iter().filter(overlaps).map(|block| block.sequence).collect();
        let recent = caches.recent().newest_of(&stored);
        stored.truncate(stored.len() - recent.len());
        Snapshot { manifest: Arc::clone(&self.manifest), stored, recent }
    }
}
