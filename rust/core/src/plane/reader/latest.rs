//! Newest samples: from memory, or from the store if newer rows hide the past.

use std::ops::Range;

use super::Reader;
use super::long_latest::{LATEST_END, LongLatest};
use crate::model::catalog::Catalog;
use crate::model::chunks::{AnswerBody, PIECE_BYTES};
use crate::model::clock::CallTime;
use crate::model::error::Result;
use crate::model::json;
use crate::plane::failure::ReadError;
use crate::plane::history::History;
use crate::query::latest::{Latest, LatestRest, LatestView};
use crate::query::{MEASUREMENTS, QueryRefusal};

impl Reader {
    pub(in crate::plane) fn with_latest<R>(
        &self,
        as_of_ns: i64,
        freshness_ns: i64,
        measurement: Option<&str>,
        now: CallTime,
        lend: impl FnOnce(LatestView<'_>) -> R,
    ) -> Result<R> {
        self.follower.follow()?;
        self.with_followed_latest(as_of_ns, freshness_ns, measurement, now, lend)
    }

    fn with_followed_latest<R>(
        &self,
        as_of_ns: i64,
        freshness_ns: i64,
        measurement: Option<&str>,
        now: CallTime,
        lend: impl FnOnce(LatestView<'_>) -> R,
    ) -> Result<R> {
        let mut lend = Some(lend);
        self.retrying(|| {
            let kept_from_ns = self.follower.kept_from_ns(now);
            let start_ns = as_of_ns.saturating_sub(freshness_ns).max(kept_from_ns);
            self.lend_latest(start_ns..as_of_ns, measurement, &mut lend)
        })
    }

    fn lend_latest<R>(
        &self,
        range_ns: Range<i64>,
        measurement: Option<&str>,
        lend: &mut Option<impl FnOnce(LatestView<'_>) -> R>,
    ) -> Result<R> {
        let mut lend = |latest: &Latest, catalog: &Catalog, range_ns| {
            let lend = lend.take().expect("a read that was answered is not repeated");
            Ok(lend(LatestView { latest, catalog, range_ns }))
        };
        let newest = self.follower.newest()?;
        let catalog = newest.catalog();
        let measurement = match measurement.map(|name| catalog.measurement(name)) {
            // A measurement without rows has no newest sample.
            Some(None) => return lend(&Latest::default(), catalog, range_ns),
            Some(known) => known,
            None => None,
        };
        let newest_ns = newest.latest().newest_ns(measurement);
        if newest_ns.is_none_or(|newest_ns| newest_ns < range_ns.end) {
            return lend(newest.latest(), catalog, range_ns);
        }
        // A newer row hides the past: read the window from the store.
        let (names, snapshot) = newest.into_snapshot(&range_ns);
        let (snapshot, range_ns) = (&snapshot, &range_ns);
        let history = History { sealed: &self.sealed, snapshot, range_ns, catalog: &names.catalog };
        let latest = history.latest(measurement)?;
        lend(&latest, &names.catalog, range_ns.clone())
    }

    pub(in crate::plane) fn answer_latest(
        &self,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        now: CallTime,
    ) -> Result<Vec<u8>, ReadError> {
        let (mut whole, _) = self.begin(as_of_ns, freshness_ns, measurement, now, usize::MAX)?;
        whole.extend_from_slice(LATEST_END);
        Ok(whole)
    }

    /// Answers as [`Self::answer_latest`] does, and makes at most a piece at a time.
    pub(in crate::plane) fn begin_latest(
        &self,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        now: CallTime,
    ) -> Result<AnswerBody, ReadError> {
        let (mut first, rest) =
            self.begin(as_of_ns, freshness_ns, measurement, now, PIECE_BYTES)?;
        if rest.is_empty() {
            first.extend_from_slice(LATEST_END);
            if first.len() <= PIECE_BYTES {
                return Ok(AnswerBody::Whole(vec![first]));
            }
        }
        Ok(AnswerBody::Long(Box::new(LongLatest::new(&self.registry, first, rest))))
    }

    /// Returns the first `bytes_max` bytes of an answer, about, and the entities that remain.
    fn begin(
        &self,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        now: CallTime,
        bytes_max: usize,
    ) -> Result<(Vec<u8>, LatestRest), ReadError> {
        if measurement.is_some_and(|name| !MEASUREMENTS.contains(&name)) {
            return Err(QueryRefusal::InvalidInput { field: "measurement" }.into());
        }
        let newest_ns = self.read_instant(now.ns)?;
        let as_of_ns = as_of_ns.unwrap_or(newest_ns);
        let begun = self.with_followed_latest(as_of_ns, freshness_ns, measurement, now, |view| {
            view.begin_entities(&self.latest_head(as_of_ns), measurement, bytes_max)
        });
        Ok(begun?)
    }

    fn latest_head(&self, as_of_ns: i64) -> Vec<u8> {
        let mut head = b"{\"as_of_utc\":".to_vec();
        json::write_time(&mut head, as_of_ns);
        head.extend_from_slice(b",\"tenant_key\":");
        json::write_string(&mut head, &self.sealed.tenant_key);
        head.extend_from_slice(b",\"entities\":[");
        head
    }
}
