//! Reads of rows, newest samples, series, names and counters.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::batch::FieldType;
use crate::model::chunks::AnswerBody;
use crate::model::clock::CallTime;
use crate::model::error::Error;
use crate::plane::Plane;
use crate::plane::failure::ReadError;
use crate::plane::reader::describe::MeasurementContents;
use crate::plane::reader::labelled::LabelReadError;
use crate::plane::reader::scan::RowStream;
use crate::plane::reader::stats::{KeptHoursStats, Stats};
use crate::query::labelled::{LabelBounds, LabelQuery, LabelledSeries};
use crate::query::latest::LatestView;
use crate::query::scan::ScanRequest;
use crate::query::{
    AnswerBounds, FieldHours, SeriesAnswer, SeriesLimits, SeriesQuery, SeriesRequest,
};
use crate::storage::store::Planes;

/// Reads. Every read follows the log first, unless it says otherwise.
impl Plane {
    /// Returns the instant at which a read is made. This is `clock_ns`, or the instant after the
    /// last commit if its clock was ahead by up to 5 seconds (D15). Example: a commit at 12:00:03
    /// and a clock at 12:00:01 give 12:00:03.000000001.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn read_instant(&self, clock_ns: i64) -> Result<i64, Error> {
        self.reader.read_instant(clock_ns)
    }

    /// Returns how far the last ingest instant is ahead of `clock_ns`, without following the log.
    /// Returns 0 if reads follow the instant. Example: 0 for a commit 3 seconds ahead, and
    /// 60,000,000,000 for a commit a minute ahead.
    #[must_use]
    pub fn ingest_lead_ns(&self, clock_ns: i64) -> i64 {
        self.follower.ingest_lead_ns(clock_ns)
    }

    /// Returns the newest ingest instant that vouches for a clock, without following the log.
    /// Writes more than a day after all writes before them do not count (O2). Example: after writes
    /// on 1, 2 and 9 September it returns the instant of 2 September.
    #[must_use]
    pub fn newest_ingest_ns(&self) -> Option<i64> {
        self.follower.newest_ingest_ns()
    }

    /// Lends the newest sample of every entity in `[as_of_ns - freshness_ns, as_of_ns)` to `lend`.
    /// Example: with a freshness of 60 s at 12:00:00, an entity last seen at 11:58:00 is left out.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn with_latest<R>(
        &self,
        as_of_ns: i64,
        freshness_ns: i64,
        measurement: Option<&str>,
        now: impl Into<CallTime>,
        lend: impl FnOnce(LatestView<'_>) -> R,
    ) -> Result<R, Error> {
        self.reader.with_latest(as_of_ns, freshness_ns, measurement, now.into(), lend)
    }

    /// Answers `GET /topology` as a client asks for it: as of now if `as_of_ns` is `None`, and of
    /// all measurements if `measurement` is `None`. Example: `measurement` = `Some("link")` answers
    /// only links.
    ///
    /// # Errors
    /// Returns [`ReadError::Refused`] for a measurement that the contract does not name, or the
    /// errors of [`Self::follow`].
    pub fn answer_latest(
        &self,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        now: impl Into<CallTime>,
    ) -> Result<Vec<u8>, ReadError> {
        self.reader.answer_latest(as_of_ns, freshness_ns, measurement, now.into())
    }

    /// Answers as [`Self::answer_latest`] does, but makes an answer of more than a mebibyte piece
    /// by piece. Example: a fleet whose answer takes 40 MiB is sent without 40 MiB in memory.
    ///
    /// # Errors
    /// Returns the errors of [`Self::answer_latest`].
    pub fn begin_latest(
        &self,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        now: impl Into<CallTime>,
    ) -> Result<AnswerBody, ReadError> {
        self.reader.begin_latest(as_of_ns, freshness_ns, measurement, now.into())
    }

    /// Answers `GET /topology/series` as a client asks for it. Example: a request whose end is not
    /// after its start is refused with [`crate::query::QueryRefusal::InvalidRange`].
    ///
    /// # Errors
    /// Returns [`ReadError::Refused`] with the first check that fails, or the errors of
    /// [`Self::follow`].
    ///
    /// # Panics
    /// Panics as [`Self::series`] does.
    pub fn answer_series(
        &self,
        request: SeriesRequest,
        limits: &SeriesLimits,
        now: impl Into<CallTime>,
    ) -> Result<SeriesAnswer, ReadError> {
        self.reader.answer_series(request, limits, now.into())
    }

    /// Reads a series and cuts it so that it keeps `bounds` (H23, N4). The clock `now` decides
    /// which rows retention hides. All entities are read from one snapshot. Example: with 100 rows
    /// of an entity in range and `points_max` = 10, the answer ends before the instant of row 11.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    ///
    /// # Panics
    /// Panics if `points_max` is 0.
    pub fn series(
        &self,
        query: SeriesQuery,
        bounds: AnswerBounds,
        now: impl Into<CallTime>,
    ) -> Result<SeriesAnswer, Error> {
        self.reader.series(query, bounds, now.into())
    }

    /// Reads all statistics of the hours of the entities of `query`, whose windows must be hours,
    /// from one snapshot. Example: an hour with the samples 3, 1 and 5 has the count 3 and the sum 9.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn hours(
        &self,
        query: &SeriesQuery,
        now: impl Into<CallTime>,
    ) -> Result<Vec<FieldHours>, Error> {
        self.reader.hours(query, now.into())
    }

    /// Returns the entities of a measurement that were ever written, in byte order. Example: those
    /// of `link` may be `gs1` and `gs2`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn entity_ids(&self, measurement: &str) -> Result<Vec<String>, Error> {
        self.reader.entity_ids(measurement)
    }

    /// Returns the instant before which only hours are kept, as of the last read, if some of these
    /// hours end after `start_ns`. Example: the instant 30 days ago if rows are kept for 30
    /// days and hours for years.
    #[must_use]
    pub fn rows_from_ns(&self, start_ns: i64, now: impl Into<CallTime>) -> Option<i64> {
        self.reader.rows_from_ns(start_ns, now.into())
    }

    /// Reads the samples of every series that meets the conditions of `query`, each tag set apart,
    /// sorted by labels. The clock `now` decides which rows retention hides. Example: the condition
    /// `__name__="snr_db"` answers a series for each tag set with a value of `snr_db`.
    ///
    /// # Errors
    /// Returns [`Failure::Refused`](crate::plane::Failure) with the bound that the read passed, or
    /// the errors of [`Self::follow`].
    pub fn labelled(
        &self,
        query: &LabelQuery,
        bounds: LabelBounds,
        now: impl Into<CallTime>,
    ) -> Result<Vec<LabelledSeries>, LabelReadError> {
        self.reader.labelled(query, bounds, now.into())
    }

    /// Returns all names of labels, or all values of one label, of all series that were ever
    /// written. Example: the label `__name__` answers the names of all metrics.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn label_texts(&self, label: Option<&str>) -> Result<BTreeSet<String>, Error> {
        self.reader.label_texts(label)
    }

    /// Streams all rows that `request` asks for. The clock `now` decides which rows retention
    /// hides. Example: `ScanRequest { end_ns: i64::MAX, ..ScanRequest::default() }` streams every
    /// row since 1970.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`] or [`Error::Invalid`] if the stream would have too
    /// many columns. Returns [`Error::DiskFull`] if there is no room to sort a long log.
    pub fn scan(
        &self,
        request: &ScanRequest,
        now: impl Into<CallTime>,
    ) -> Result<RowStream, Error> {
        self.reader.scan(request, now.into())
    }

    /// Returns a hash over everything that [`Self::scan`] answers if retention hides no row
    /// (`docs/format.md`, "Hash of answers"). If there are more fields than a stream may have, it
    /// takes several streams. The hash then holds only if no row is written in the meantime.
    /// Example: moving the log into segments does not change the hash, and a restored copy has the
    /// same hash.
    ///
    /// # Errors
    /// Returns the errors of [`Self::scan`].
    pub fn answers_hash(&self) -> Result<u64, Error> {
        self.reader.answers_hash()
    }

    /// Returns true if any process ever wrote a row of one of `measurements`. Names are never
    /// removed, so rows that retention hides count too. Example: `plane.knows_any(&["link"])` is
    /// true after the first row of a link.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn knows_any<T: AsRef<str>>(&self, measurements: &[T]) -> Result<bool, Error> {
        self.reader.knows_any(measurements)
    }

    /// Returns name and type of every field that was ever written, of one measurement or of all.
    /// Looks at names only. Example: `plane.fields(Some("link"))?` holds `("snr_db", Float)`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn fields(&self, measurement: Option<&str>) -> Result<Vec<(String, FieldType)>, Error> {
        self.reader.fields(measurement)
    }

    /// Describes the contents by measurement, from names, the indexes of segments and the heads of
    /// the log. `None` asks for all measurements, or for the rows of all entities. Names are never
    /// removed, so names of rows that are gone are included. Rows count until a compaction removes
    /// them. Example: `plane.describe(Some("link"), None)?["link"].rows` is the number of rows of
    /// links.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn describe(
        &self,
        measurement: Option<&str>,
        entity: Option<&str>,
    ) -> Result<BTreeMap<String, MeasurementContents>, Error> {
        self.reader.describe(measurement, entity)
    }

    /// Returns counters of everything written so far, by any process. Example: after a batch of 3
    /// records with 2 fields each, `counts` has grown by 3 rows and 6 values.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn stats(&self) -> Result<Stats, Error> {
        self.reader.stats()
    }

    /// Returns counters of the hours that outlive their rows. Example: after a day of one entity has
    /// expired, `hours` is 24.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn kept_hours(&self) -> Result<KeptHoursStats, Error> {
        self.reader.kept_hours()
    }

    /// Returns counters of `plane` of `planes` as of the last commit of any process. This needs
    /// neither the key nor the rows of the plane: `stored_rows` is the number of rows ever written.
    /// It takes microseconds and waits for no other call, and any process may have the plane open.
    /// Example: a monitor that watches a thousand planes.
    ///
    /// # Errors
    /// Returns the errors of [`Planes::counts`].
    pub fn peek(planes: &dyn Planes, plane: &str) -> Result<Stats, Error> {
        Stats::peek(planes, plane)
    }
}
