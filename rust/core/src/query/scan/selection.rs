//! Rows and fields that a scan wants, by name and by stored id.

use std::collections::{BTreeSet, HashSet};
use std::ops::{Range, RangeInclusive};

use crate::model::catalog::{Catalog, Field, MeasurementIndex};
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
}

impl ScanRequest {
    /// Returns the wanted times, without the times before `kept_from_ns`. The range is empty if the
    /// start is not before the end.
    #[must_use]
    pub fn times_ns(&self, kept_from_ns: i64) -> Range<i64> {
        self.start_ns.max(kept_from_ns)..self.end_ns
    }
}

/// A request in stored ids. Names that were never written select no rows.
pub struct ScanSelection {
    times_ns: Range<i64>,
    measurements: Option<HashSet<MeasurementIndex>>,
    entities: Option<Entities>,
    fields: Option<HashSet<String>>,
}

struct Entities {
    series: HashSet<SeriesId>,
    representatives: BTreeSet<SeriesId>,
}

impl ScanSelection {
    /// Looks up the names of `request` in `catalog`. Rows before `kept_from_ns` are not wanted.
    #[must_use]
    pub fn new(request: ScanRequest, kept_from_ns: i64, catalog: &Catalog) -> Self {
        let times_ns = request.times_ns(kept_from_ns);
        let ScanRequest { measurements, entities, fields, .. } = request;
        let measurements = measurements.map(|names| {
            names.iter().filter_map(|name| catalog.measurement(name)).collect::<HashSet<_>>()
        });
        let entities = entities.map(|ids| {
            let known = catalog.measurements_by_name();
            let all = || measurements.clone().unwrap_or_else(|| known.into_iter().collect());
            let mut wanted = Entities { series: HashSet::new(), representatives: BTreeSet::new() };
            for measurement in all() {
                for entity in ids.iter().filter_map(|id| catalog.find_entity(measurement, id)) {
                    wanted.series.extend(catalog.series_of(entity));
                    wanted.representatives.insert(catalog.entity(entity).representative);
                }
            }
            wanted
        });
        let fields = fields.map(|names| names.into_iter().collect());
        Self { times_ns, measurements, entities, fields }
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
        let Some(wanted) = &self.entities else { return true };
        wanted.representatives.range(representatives).next().is_some()
    }

    /// Returns true if a field is wanted.
    #[must_use]
    pub fn wants_field(&self, field: &Field) -> bool {
        let is_named = |names: &HashSet<String>| names.contains(&*field.name);
        self.wants_measurement(field.measurement) && self.fields.as_ref().is_none_or(is_named)
    }

    /// Returns true if rows without any of the wanted fields are left out.
    #[must_use]
    pub const fn names_fields(&self) -> bool {
        self.fields.is_some()
    }

    /// Returns the rows of a table whose series and time are wanted, as ranges that do not touch.
    /// The measurement of the table must be wanted.
    #[must_use]
    pub fn rows(&self, series: &[SeriesId], times_ns: &[i64]) -> Vec<Range<usize>> {
        let mut rows: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for of_series in series.chunk_by(|a, b| a == b) {
            let end = start + of_series.len();
            if self.entities.as_ref().is_none_or(|wanted| wanted.series.contains(&of_series[0])) {
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
