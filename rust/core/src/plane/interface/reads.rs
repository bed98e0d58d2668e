//! Reads of rows, newest samples, series, names and counters.

use std::collections::BTreeMap;

use crate::model::chunks::Body;
use crate::model::clock::Now;
use crate::model::error::Error;
use crate::plane::Plane;
use crate::plane::failure::ReadError;
use crate::plane::reader::describe::MeasurementContents;
use crate::plane::reader::scan::RowStream;
use crate::plane::reader::stats::Stats;
use crate::query::latest::LatestView;
use crate::query::scan::ScanRequest;
use crate::query::{AnswerBounds, SeriesAnswer, SeriesLimits, SeriesQuery, SeriesRequest};
use crate::storage::store::Planes;

/// Reads. All follow the log first, unless they say otherwise.
impl Plane {
    /// The instant a read is made at: `clock_ns`, or after every commit that it sees where the last
    /// of them were made by a clock that was ahead by up to 5 seconds (D15).
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn read_instant(&self, clock_ns: i64) -> Result<i64, Error> {
        self.reader.read_instant(clock_ns)
    }

    /// Lead of the last ingest instant over `clock_ns`, as far as the log was followed: 0 where
    /// reads take it in.
    #[must_use]
    pub fn ingest_lead_ns(&self, clock_ns: i64) -> i64 {
        self.follower.ingest_lead_ns(clock_ns)
    }

    /// The newest ingest instant that vouches for a clock, as far as the log was followed: not of
    /// writes more than a day after all before them (O2).
    #[must_use]
    pub fn newest_ingest_ns(&self) -> Option<i64> {
        self.follower.newest_ingest_ns()
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
        now: impl Into<Now>,
        lend: impl FnOnce(LatestView<'_>) -> R,
    ) -> Result<R, Error> {
        self.reader.with_latest(as_of_ns, freshness_ns, measurement, now.into(), lend)
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
        now: impl Into<Now>,
    ) -> Result<Vec<Vec<u8>>, Error> {
        self.reader.latest_json(as_of_ns, freshness_ns, measurement, now.into())
    }

    /// The answer of `GET /topology` as it is asked for: as of now without `as_of_ns`, of all
    /// measurements without one.
    ///
    /// # Errors
    /// [`ReadError::Refused`] for a measurement that the contract does not name; those of
    /// [`Self::follow`].
    pub fn answer_latest(
        &self,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        now: impl Into<Now>,
    ) -> Result<Vec<Vec<u8>>, ReadError> {
        self.reader.answer_latest(as_of_ns, freshness_ns, measurement, now.into())
    }

    /// As [`Self::answer_latest`], but an answer beyond a mebibyte is made piece by piece.
    ///
    /// # Errors
    /// Those of [`Self::answer_latest`].
    pub fn begin_latest(
        &self,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        now: impl Into<Now>,
    ) -> Result<Body, ReadError> {
        self.reader.begin_latest(as_of_ns, freshness_ns, measurement, now.into())
    }

    /// The answer of `GET /topology/series` as it is asked for.
    ///
    /// # Errors
    /// [`ReadError::Refused`] with the first check that fails; those of [`Self::follow`].
    ///
    /// # Panics
    /// As [`Self::series`].
    pub fn answer_series(
        &self,
        request: SeriesRequest,
        limits: &SeriesLimits,
        now: impl Into<Now>,
    ) -> Result<SeriesAnswer, ReadError> {
        self.reader.answer_series(request, limits, now.into())
    }

    /// Reads a series as of the clock `now`, which decides what retention hides, and cuts it so
    /// that it keeps `bounds` (H23, N4). All entities are read from one snapshot.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    ///
    /// # Panics
    /// When `points_max` is 0.
    pub fn series(
        &self,
        query: SeriesQuery,
        bounds: AnswerBounds,
        now: impl Into<Now>,
    ) -> Result<SeriesAnswer, Error> {
        self.reader.series(query, bounds, now.into())
    }

    /// All rows that `request` wants, as of the clock `now`, which decides what retention hides.
    ///
    /// # Errors
    /// Those of [`Self::follow`]; [`Error::Invalid`] for more columns than a stream may have,
    /// [`Error::DiskFull`] where a long log finds no room to be sorted.
    pub fn scan(&self, request: &ScanRequest, now: impl Into<Now>) -> Result<RowStream, Error> {
        self.reader.scan(request, now.into())
    }

    /// A hash over everything that [`Self::scan`] answers, nothing of it hidden by retention
    /// (`docs/format.md`, "Hash of answers"). Where there are more fields than a stream may have it
    /// takes several streams, and holds good if nobody writes meanwhile.
    ///
    /// # Errors
    /// Those of [`Self::scan`].
    pub fn answers_hash(&self) -> Result<u64, Error> {
        self.reader.answers_hash()
    }

    /// Tells if a row of one of `measurements` was ever written, by any process. Names are never
    /// removed, so rows that retention hides count as well.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn knows_any<T: AsRef<str>>(&self, measurements: &[T]) -> Result<bool, Error> {
        self.reader.knows_any(measurements)
    }

    /// Contents by measurement, of one or of all, of one entity or of all rows: out of names, the
    /// indexes of segments and the heads of the log. Names are never removed, so those of rows that
    /// are gone are there as well, and rows count until a compaction removes them.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn describe(
        &self,
        measurement: Option<&str>,
        entity: Option<&str>,
    ) -> Result<BTreeMap<String, MeasurementContents>, Error> {
        self.reader.describe(measurement, entity)
    }

    /// Counters of everything written so far, by any process.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn stats(&self) -> Result<Stats, Error> {
        self.reader.stats()
    }

    /// Counters of `plane` of `planes` as of the last commit of any process, which needs
    /// neither its key nor a look at its rows: what is stored now counts as what was written. It
    /// takes microseconds, waits for nobody, and any process may have the plane open.
    ///
    /// # Errors
    /// Those of [`Planes::counts`].
    pub fn peek(planes: &dyn Planes, plane: &str) -> Result<Stats, Error> {
        Stats::peek(planes, plane)
    }
}
