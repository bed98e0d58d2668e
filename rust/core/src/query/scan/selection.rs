//! Rows and fields that a scan wants, by name and by stored id.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::{Range, RangeInclusive};

use foldhash::fast::RandomState;

use crate::codec::TimeBounds;
use crate::model::catalog::{Catalog, Field, MeasurementIndex, Series};
use crate::model::names::SeriesId;

/// The rows and fields of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanRequest {
    /// Inclusive start, in nanoseconds since 1970.
    pub start_ns: i64,
    /// Exclusive end, in nanoseconds since 1970.
    pub end_ns: i64,
    /// Names of measurements, or `None` for all.
    pub measurements: Option<Vec<String>>,
    /// Ids of entities, or `None` for all rows, including rows without an entity.
    pub entities: Option<Vec<String>>,
    /// Names of fields, or `None` for all. Rows without a value in any of the fields are left out.
    pub fields: Option<Vec<String>>,
    /// True if rows without a value in any of the fields are not left out.
    pub keeps_empty_rows: bool,
    /// Keys of tags, each with its values. A row must have one of the values of each key.
    pub tags: BTreeMap<String, Vec<String>>,
}

impl ScanRequest {
    /// Returns the wanted times, without the times before `kept_from_ns`. The range is empty if the
    /// start is not before the end.
    #[must_use]
    pub fn times_ns(&self, kept_from_ns: i64) -> Range<i64> {
        self.start_ns.max(kept_from_ns)..self.end_ns
    }
}

impl WantedSeries {
    /// Keeps the series that have a wanted value of each key in `tags`.
    fn new(ids: Vec<SeriesId>, tags: &BTreeMap<String, Vec<String>>, catalog: &Catalog) -> Self {
        let mut wanted = Self::default();
        for id in ids {
            let Some(series) = catalog.series(id) else { continue };
            let has = |(key, values): (&String, &Vec<String>)| {
                series
                    .name()
                    .tags()
                    .any(|(name, value)| name == key && values.iter().any(|v| v == value))
            };
            if tags.iter().all(has) {
                wanted.representatives.insert(series.representative(id));
                wanted.ids.insert(id);
            }
        }
        wanted
    }
}

/// Returns the series of some entities in the measurements, or in all.
fn series_of(
    entities: &[String],
    measurements: Option<&HashSet<MeasurementIndex>>,
    catalog: &Catalog,
) -> Vec<SeriesId> {
    let all = || catalog.measurements_by_name();
    let measurements = measurements.map_or_else(all, |chosen| chosen.iter().copied().collect());
    let found = measurements.iter().flat_map(|measurement| {
        entities.iter().filter_map(|id| catalog.find_entity(*measurement, id))
    });
    found.flat_map(|entity| catalog.series_of(entity)).collect()
}

/// A request in stored ids. Names that were never written select no rows.
pub struct ScanSelection {
    times_ns: Range<i64>,
    measurements: Option<HashSet<MeasurementIndex>>,
    series: Option<WantedSeries>,
    fields: Option<HashSet<String>>,
    keeps_empty_rows: bool,
}

#[derive(Default)]
struct WantedSeries {
    /// Looked up for each row of the log.
    ids: hashbrown::HashSet<SeriesId, RandomState>,
    representatives: BTreeSet<SeriesId>,
}

impl ScanSelection {
    /// Looks up the names of `request` in `catalog`. Rows before `kept_from_ns` are not wanted.
    #[must_use]
    pub fn new(request: ScanRequest, kept_from_ns: i64, catalog: &Catalog) -> Self {
        let times_ns = request.times_ns(kept_from_ns);
        let ScanRequest { measurements, entities, fields, tags, keeps_empty_rows, .. } = request;
        let measurements = measurements.map(|names| {
            names.iter().filter_map(|name| catalog.measurement(name)).collect::<HashSet<_>>()
        });
        let is_named = |series: Series<'_>| {
            measurements.as_ref().is_none_or(|wanted| wanted.contains(&series.measurement))
        };
        let is_chosen = entities.is_some() || !tags.is_empty();
        let series = is_chosen.then(|| {
            let ids: Vec<SeriesId> = match &entities {
                Some(entities) => series_of(entities, measurements.as_ref(), catalog),
                None => catalog
                    .all_series()
                    .filter(|each| is_named(each.1))
                    .map(|each| each.0)
                    .collect(),
            };
            WantedSeries::new(ids, &tags, catalog)
        });
        let fields = fields.map(|names| names.into_iter().collect());
        Self { times_ns, measurements, series, fields, keeps_empty_rows }
    }

    /// Returns the wanted times. The range is empty if the start is not before the end.
    #[must_use]
    pub const fn times_ns(&self) -> &Range<i64> {
        &self.times_ns
    }

    /// Returns true if rows of a measurement are wanted.
    #[must_use]
    pub fn wants_measurement(&self, measurement: MeasurementIndex) -> bool {
        self.measurements.as_ref().is_none_or(|wanted| wanted.contains(&measurement))
    }

    /// Returns true if rows of an entity with a representative series in this range are wanted.
    #[must_use]
    pub fn wants_representative_in(&self, representatives: RangeInclusive<SeriesId>) -> bool {
        let Some(wanted) = &self.series else { return true };
        wanted.representatives.range(representatives).next().is_some()
    }

    /// Returns true if not every series of the measurements is wanted.
    #[must_use]
    pub const fn chooses_series(&self) -> bool {
        self.series.is_some()
    }

    /// Returns true if rows of a series are wanted. Its measurement must be wanted.
    #[must_use]
    pub fn wants_series(&self, series: SeriesId) -> bool {
        self.series.as_ref().is_none_or(|wanted| wanted.ids.contains(&series))
    }

    /// Returns true if a field is wanted.
    #[must_use]
    pub fn wants_field(&self, field: &Field) -> bool {
        let is_named = |names: &HashSet<String>| names.contains(&*field.name);
        self.wants_measurement(field.measurement) && self.fields.as_ref().is_none_or(is_named)
    }

    /// Returns true if rows without any of the wanted fields are left out.
    #[must_use]
    pub const fn leaves_out_empty_rows(&self) -> bool {
        self.fields.is_some() && !self.keeps_empty_rows
    }

    /// Returns the rows of a table whose series and time are wanted, as ranges that do not touch.
    /// The measurement of the table must be wanted.
    #[must_use]
    pub fn rows(&self, series: &[SeriesId], times_ns: &[i64]) -> Vec<Range<usize>> {
        let is_within = |times: TimeBounds| {
            self.times_ns.contains(&times.min_ns) && self.times_ns.contains(&times.max_ns)
        };
        if self.series.is_none() && TimeBounds::of(times_ns).is_some_and(is_within) {
            return std::iter::once(0..times_ns.len()).collect();
        }
        let mut rows: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for of_series in series.chunk_by(|a, b| a == b) {
            let end = start + of_series.len();
            if self.wants_series(of_series[0]) {
                self.add_times(&times_ns[start..end], start, &mut rows);
            }
            start = end;
        }
        rows
    }

    fn add_times(&self, times_ns: &[i64], first: usize, rows: &mut Vec<Range<usize>>) {
        let mut start = first;
        let is_wanted = |time_ns: &i64| self.times_ns.contains(time_ns);
        for stretch in times_ns.chunk_by(|a, b| is_wanted(a) == is_wanted(b)) {
            let end = start + stretch.len();
            if is_wanted(&stretch[0]) {
                match rows.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => rows.push(start..end),
                }
            }
            start = end;
        }
    }
}
