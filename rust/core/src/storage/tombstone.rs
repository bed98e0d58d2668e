//! Deleted rows that are still stored: their names, their times and their places (`docs/format.md`,
//! "Manifest").

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::codec::bytes::{ByteReader, put_len, put_varint, put_zigzag};
use crate::model::batch::Table;
use crate::model::catalog::{Catalog, Series};
use crate::model::error::{Error, Result};
use crate::model::limits::TOMBSTONE_NAMES_BYTES_MAX;
use crate::storage::segment::filtered;
use crate::storage::store::SegmentId;

/// Rows, named by times, measurements and entities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Times of the rows.
    pub times_ns: Range<i64>,
    /// Measurements of the rows, ascending. Empty for all.
    pub measurements: Vec<String>,
    /// Entities of the rows, ascending. Empty for all, rows without an entity included.
    pub entities: Vec<String>,
}

/// A place that stores rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The block at this position of the log.
    Log(u64),
    /// The segment with this id.
    Segment(SegmentId),
}

/// Rows of an extent that were deleted, and the places that store the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The deleted rows. Rows of the extent in other places are not deleted.
    pub extent: Extent,
    /// The log up to this position has deleted rows. 0 for none.
    pub position: u64,
    /// Segments that have deleted rows, ascending.
    pub segments: Arc<[SegmentId]>,
}

/// A set of times: the union of some ranges.
#[derive(Clone, Debug, Default)]
pub struct HiddenTimes {
    /// Ranges, ascending and apart from each other.
    ranges: Vec<Range<i64>>,
}

impl HiddenTimes {
    /// Returns the times of some extents.
    pub fn of<'e>(extents: impl Iterator<Item = &'e Extent>) -> Self {
        let mut all: Vec<Range<i64>> = extents.map(|extent| extent.times_ns.clone()).collect();
        all.sort_unstable_by_key(|range| range.start);
        let mut ranges: Vec<Range<i64>> = Vec::with_capacity(all.len());
        for range in all {
            match ranges.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => ranges.push(range),
            }
        }
        Self { ranges }
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns true if the set has `time_ns`.
    #[must_use]
    pub fn contains(&self, time_ns: i64) -> bool {
        let at = self.ranges.partition_point(|range| range.end <= time_ns);
        self.ranges.get(at).is_some_and(|range| range.start <= time_ns)
    }
}

impl Extent {
    /// Makes an extent of these times and names. The names may come in any order; `None` is every
    /// name.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the range of times is empty, if a list has no name, or if the
    /// names have too many bytes in all.
    pub fn new(
        times_ns: Range<i64>,
        measurements: Option<Vec<String>>,
        entities: Option<Vec<String>>,
    ) -> Result<Self> {
        let invalid = |message: &str| Err(Error::Invalid { message: message.to_owned() });
        if times_ns.is_empty() {
            return invalid("the start must be before the end");
        }
        if [&measurements, &entities].into_iter().flatten().any(Vec::is_empty) {
            return invalid("a list of names to delete has one name at least");
        }
        let (mut measurements, mut entities) =
            (measurements.unwrap_or_default(), entities.unwrap_or_default());
        for names in [&mut measurements, &mut entities] {
            names.sort_unstable();
            names.dedup();
        }
        let bytes: usize = measurements.iter().chain(&entities).map(String::len).sum();
        if bytes > TOMBSTONE_NAMES_BYTES_MAX {
            return Err(Error::Invalid {
                message: format!(
                    "the names of one delete have {bytes} bytes, {TOMBSTONE_NAMES_BYTES_MAX} at \
                     most: delete in several steps"
                ),
            });
        }
        Ok(Self { times_ns, measurements, entities })
    }

    /// Returns true if the extent has times in `times_ns`.
    #[must_use]
    pub const fn overlaps(&self, times_ns: &Range<i64>) -> bool {
        self.times_ns.start < times_ns.end && times_ns.start < self.times_ns.end
    }

    /// Returns true if the extent has rows of a measurement at some time.
    #[must_use]
    pub fn has_measurement(&self, name: &str) -> bool {
        is_among(&self.measurements, name)
    }

    /// Returns true if the extent has rows of an entity at some time.
    #[must_use]
    pub fn has_entity(&self, id: &str) -> bool {
        is_among(&self.entities, id)
    }

    /// Returns true if the extent has rows of a series at some time.
    #[must_use]
    pub fn has_series(&self, series: Series<'_>, catalog: &Catalog) -> bool {
        let has_entity = || match series.entity {
            Some(entity) => self.has_entity(catalog.entity_id(entity)),
            None => self.entities.is_empty(),
        };
        self.has_measurement(catalog.measurement_name(series.measurement)) && has_entity()
    }
}

fn is_among(names: &[String], name: &str) -> bool {
    names.is_empty() || names.binary_search_by(|other| other.as_str().cmp(name)).is_ok()
}

impl Tombstone {
    /// Returns true if the tombstone may hide rows of `origin`.
    #[must_use]
    pub fn reaches(&self, origin: &Origin) -> bool {
        match origin {
            Origin::Log(sequence) => *sequence <= self.position,
            Origin::Segment(id) => self.segments.binary_search(id).is_ok(),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.position);
        put_zigzag(out, self.extent.times_ns.start);
        put_zigzag(out, self.extent.times_ns.end);
        for names in [&self.extent.measurements, &self.extent.entities] {
            put_len(out, names.len());
            for name in names {
                put_len(out, name.len());
                out.extend_from_slice(name.as_bytes());
            }
        }
        put_len(out, self.segments.len());
        self.segments.iter().for_each(|id| out.extend_from_slice(id));
    }

    pub(super) fn decode(input: &mut ByteReader<'_>) -> Result<Self> {
        let position = input.varint()?;
        let times_ns = input.zigzag()?..input.zigzag()?;
        let extent =
            Extent { times_ns, measurements: decode_names(input)?, entities: decode_names(input)? };
        let count = input.len(input.remaining() / size_of::<SegmentId>())?;
        let segments = (0..count).map(|_| input.array()).collect::<Result<Arc<[SegmentId]>>>()?;
        input.check(!extent.times_ns.is_empty() && segments.is_sorted())?;
        Ok(Self { extent, position, segments })
    }
}

fn decode_names(input: &mut ByteReader<'_>) -> Result<Vec<String>> {
    let count = input.len(input.remaining())?;
    let mut names = Vec::new();
    for _ in 0..count {
        let length = input.len(input.remaining())?;
        let name = std::str::from_utf8(input.take(length)?).map_err(|_| input.corrupt())?;
        names.push(name.to_owned());
    }
    input.check(names.is_sorted_by(|a, b| a < b))?;
    Ok(names)
}

/// Returns the rows of `table` that no tombstone of `hiding` hides. `hiding` are the tombstones
/// that reach the place of the table.
#[must_use]
pub fn visible<'t>(table: &'t Table, hiding: &[&Tombstone], catalog: &Catalog) -> Cow<'t, Table> {
    if hiding.is_empty() {
        return Cow::Borrowed(table);
    }
    // Neighbouring rows are nearly always of the same series.
    let mut known = None;
    let mut times_ns = HiddenTimes::default();
    filtered(table, |row| {
        let id = table.series[row];
        if known.replace(id) != Some(id) {
            let series = catalog.series(id);
            let of_series =
                |extent: &&Extent| series.is_some_and(|series| extent.has_series(series, catalog));
            let extents = hiding.iter().map(|tombstone| &tombstone.extent).filter(of_series);
            times_ns = HiddenTimes::of(extents);
        }
        !times_ns.contains(table.times_ns[row])
    })
}

/// Filters as [`visible`] does, and takes the table.
#[must_use]
pub fn into_visible(table: Table, hiding: &[&Tombstone], catalog: &Catalog) -> Table {
    let left = match visible(&table, hiding, catalog) {
        Cow::Owned(left) => Some(left),
        Cow::Borrowed(_) => None,
    };
    left.unwrap_or(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::batch::{Column, RowSet, Values};
    use crate::model::names::SeriesName;

    fn extent(times_ns: Range<i64>, measurements: &[&str], entities: &[&str]) -> Extent {
        let owned = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            Some(names).filter(|names| !names.is_empty())
        };
        Extent::new(times_ns, owned(measurements), owned(entities)).unwrap()
    }

    #[test]
    fn rows_are_hidden_by_time_measurement_and_entity() {
        let mut catalog = Catalog::default();
        catalog.insert_series(0, SeriesName::new("link", &[("entity_id", "a")]).view());
        catalog.insert_series(1, SeriesName::new("link", &[("entity_id", "b")]).view());
        catalog.insert_series(2, SeriesName::new("link", &[("site", "x")]).view());
        let table = Table {
            series: vec![0, 0, 1, 2, 2, 0],
            times_ns: vec![1, 2, 2, 2, 3, 2],
            columns: vec![Column {
                field: 0,
                rows: RowSet::Some(vec![1, 2, 4]),
                values: Values::Float(vec![1.0, 2.0, 4.0]),
            }],
        };
        let left = |extents: &[Extent]| {
            let tombstone = |extent: &Extent| Tombstone {
                extent: extent.clone(),
                position: 1,
                segments: [].into(),
            };
            let tombstones: Vec<Tombstone> = extents.iter().map(tombstone).collect();
            let hiding: Vec<&Tombstone> = tombstones.iter().collect();
            visible(&table, &hiding, &catalog).into_owned()
        };
        assert_eq!(left(&[]), table);
        assert_eq!(left(&[extent(2..3, &["pool"], &[])]), table);
        assert_eq!(left(&[extent(3..4, &[], &["a", "b"])]), table, "a row without entity stays");
        let of_a = left(&[extent(2..3, &["link", "pool"], &["a"])]);
        assert_eq!((of_a.series, of_a.times_ns), (vec![0, 1, 2, 2], vec![1, 2, 2, 3]));
        assert_eq!(of_a.columns[0].rows, RowSet::Some(vec![1, 3]));
        assert_eq!(of_a.columns[0].values, Values::Float(vec![2.0, 4.0]));
        let none = left(&[extent(0..2, &[], &[]), extent(2..9, &["link"], &[])]);
        assert_eq!(none, Table::default());
    }

    #[test]
    fn times_are_hidden_by_any_of_the_ranges() {
        let extents = [5..7, 1..3, 2..4, 4..5, 9..10].map(|times_ns| extent(times_ns, &[], &[]));
        let times_ns = HiddenTimes::of(extents.iter());
        let hidden: Vec<i64> = (0..12).filter(|at| times_ns.contains(*at)).collect();
        assert_eq!(hidden, [1, 2, 3, 4, 5, 6, 9]);
        assert_eq!(times_ns.ranges, [1..7, 9..10]);
    }

    #[test]
    fn it_reaches_what_was_stored_before_it_alone() {
        let extent = extent(0..1, &[], &[]);
        let tombstone = Tombstone { extent, position: 7, segments: [[1; 16], [3; 16]].into() };
        let reaches = |origin| tombstone.reaches(&origin);
        assert_eq!([6, 7, 8].map(|at| reaches(Origin::Log(at))), [true, true, false]);
        assert_eq!([1, 2, 3].map(|id| reaches(Origin::Segment([id; 16]))), [true, false, true]);
    }

    #[test]
    fn an_extent_without_times_or_with_too_long_names_is_refused() {
        assert!(Extent::new(1..1, None, None).is_err());
        assert!(Extent::new(0..1, Some(Vec::new()), None).is_err());
        assert!(Extent::new(0..1, None, Some(Vec::new())).is_err());
        let long = |bytes| Extent::new(0..1, None, Some(vec!["x".repeat(bytes)]));
        assert!(long(TOMBSTONE_NAMES_BYTES_MAX).is_ok());
        assert!(long(TOMBSTONE_NAMES_BYTES_MAX + 1).is_err());
    }
}
