//! Contents of a plane, from its names, the indexes of its segments and the heads of its log.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::Reader;
use crate::codec::BlockReader;
use crate::model::batch::{FieldType, Table};
use crate::model::catalog::{Catalog, EntityIndex, MeasurementIndex};
use crate::model::error::{Error, Result};
use crate::model::limits::DESCRIBED_MAX;
use crate::model::names::{ENTITY_ID, SeriesId};
use crate::plane::follower::{ALWAYS_NS, PlaneSnapshot};
use crate::storage::segment::SegmentPart;

/// Contents of one measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasurementContents {
    /// Rows that are stored, including rows that a later compaction removes.
    pub rows: u64,
    /// First and last time of these rows.
    pub times_ns: Option<(i64, i64)>,
    /// Number of tag sets that were ever written.
    pub series: u64,
    /// Ids of the entities.
    pub entities: DistinctTexts,
    /// Values of each tag, by its key.
    pub tags: BTreeMap<String, DistinctTexts>,
    /// Type of each field that was ever written, by its name.
    pub fields: BTreeMap<String, FieldType>,
}

/// Distinct texts: their number, and the first texts in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistinctTexts {
    /// Number of distinct texts.
    pub count: u64,
    /// The first [`DESCRIBED_MAX`] texts in the order of their bytes.
    pub first: Vec<String>,
}

impl DistinctTexts {
    fn of(texts: &BTreeSet<&str>) -> Self {
        let first = texts.iter().take(DESCRIBED_MAX).map(|text| (*text).to_owned()).collect();
        Self { count: texts.len() as u64, first }
    }
}

/// Series that are described, and the rows found so far of each measurement.
struct SeriesRows<'r> {
    reader: &'r Reader,
    /// Measurements that are wanted. An entity restricts a measurement to rows of that entity.
    wanted: HashMap<MeasurementIndex, Option<EntityIndex>>,
    found: HashMap<MeasurementIndex, RowSummary>,
}

/// Number of rows, and their first and last time.
type RowSummary = (u64, Option<(i64, i64)>);

impl Reader {
    pub(in crate::plane) fn fields(
        &self,
        measurement: Option<&str>,
    ) -> Result<Vec<(String, FieldType)>> {
        self.follower.follow()?;
        let catalog = &self.registry.names().catalog;
        let is_wanted =
            |of| measurement.is_none_or(|wanted| wanted == catalog.measurement_name(of));
        let fields = catalog.all_fields().filter(|(_, field)| is_wanted(field.measurement));
        Ok(fields.map(|(_, field)| (field.name.to_string(), field.field_type)).collect())
    }

    pub(in crate::plane) fn describe(
        &self,
        measurement: Option<&str>,
        entity: Option<&str>,
    ) -> Result<BTreeMap<String, MeasurementContents>> {
        self.follower.follow()?;
        self.retrying(|| {
            let wanted = wanted(&self.registry.names().catalog, measurement, entity);
            let snapshot = self.follower.snapshot(&ALWAYS_NS);
            let mut rows = SeriesRows { reader: self, wanted, found: HashMap::new() };
            rows.count(&snapshot)?;
            let SeriesRows { wanted, found, .. } = rows;
            let names = self.registry.names();
            Ok(contents(&wanted, &found, &names.catalog))
        })
    }
}

/// Returns the measurements with the wanted names.
fn wanted(
    catalog: &Catalog,
    measurement: Option<&str>,
    entity: Option<&str>,
) -> HashMap<MeasurementIndex, Option<EntityIndex>> {
    let measurements = catalog.measurements_by_name().into_iter();
    let named = measurements.filter(|index| {
        measurement.is_none_or(|wanted| wanted == catalog.measurement_name(*index))
    });
    let with_entity = named.filter_map(|index| match entity {
        None => Some((index, None)),
        Some(id) => Some((index, Some(catalog.find_entity(index, id)?))),
    });
    with_entity.collect()
}

fn contents(
    wanted: &HashMap<MeasurementIndex, Option<EntityIndex>>,
    found: &HashMap<MeasurementIndex, RowSummary>,
    catalog: &Catalog,
) -> BTreeMap<String, MeasurementContents> {
    let mut all: HashMap<MeasurementIndex, MeasurementContents> = HashMap::new();
    let mut entities: HashMap<MeasurementIndex, BTreeSet<&str>> = HashMap::new();
    let mut tags: HashMap<MeasurementIndex, BTreeMap<&str, BTreeSet<&str>>> = HashMap::new();
    for (measurement, entity) in wanted {
        let (rows, times_ns) = found.get(measurement).copied().unwrap_or_default();
        let contents = MeasurementContents { rows, times_ns, ..MeasurementContents::default() };
        all.insert(*measurement, contents);
        if let Some(entity) = entity {
            entities.entry(*measurement).or_default().insert(catalog.entity_id(*entity));
        }
    }
    for (_, series) in catalog.all_series() {
        let Some(entity) = wanted.get(&series.measurement) else { continue };
        if entity.is_some() && *entity != series.entity {
            continue;
        }
        if let Some(contents) = all.get_mut(&series.measurement) {
            contents.series += 1;
        }
        if let Some(entity) = series.entity {
            entities.entry(series.measurement).or_default().insert(catalog.entity_id(entity));
        }
        let of_measurement = tags.entry(series.measurement).or_default();
        for (key, value) in series.name().tags().filter(|(key, _)| *key != ENTITY_ID) {
            of_measurement.entry(key).or_default().insert(value);
        }
    }
    for (_, field) in catalog.all_fields() {
        if let Some(contents) = all.get_mut(&field.measurement) {
            contents.fields.insert(field.name.to_string(), field.field_type);
        }
    }
    let named = all.into_iter().map(|(measurement, mut contents)| {
        contents.entities = entities.get(&measurement).map(DistinctTexts::of).unwrap_or_default();
        let of_measurement = tags.remove(&measurement).unwrap_or_default().into_iter();
        contents.tags = of_measurement
            .map(|(key, values)| (key.to_owned(), DistinctTexts::of(&values)))
            .collect();
        (catalog.measurement_name(measurement).to_owned(), contents)
    });
    named.collect()
}

impl SeriesRows<'_> {
    /// Counts the rows of `snapshot`. The index counts a block of one measurement. The block is
    /// read only if it has rows of several entities and a single entity is wanted.
    fn count(&mut self, snapshot: &PlaneSnapshot) -> Result<()> {
        let sealed = &self.reader.sealed;
        for entry in &snapshot.manifest.segments {
            let open = self.reader.open_segment(entry)?;
            for (index, block) in open.blocks(None, &ALWAYS_NS) {
                let measurement = open.measurements[index];
                let Some(entity) = self.wanted.get(&measurement) else { continue };
                let representative = entity.map(|entity| self.representative(entity));
                match representative {
                    Some(representative)
                        if !(block.first.0..=block.last.0).contains(&representative) => {}
                    Some(_) if block.first.0 != block.last.0 => {
                        let plain = open.segment.read(&*sealed.store, SegmentPart::Block(index))?;
                        self.count_block(&plain)?;
                    }
                    _ => self.add(measurement, block.rows, (block.min_ns, block.max_ns)),
                }
            }
        }
        sealed.visit_log(&snapshot.stored, |_, plain| self.count_block(plain))?;
        for table in snapshot.recent_tables() {
            self.count_table(table)?;
        }
        Ok(())
    }

    fn representative(&self, entity: EntityIndex) -> SeriesId {
        self.reader.registry.names().catalog.entity(entity).representative
    }

    fn count_block(&mut self, plain: &[u8]) -> Result<()> {
        let block = BlockReader::open(plain)?;
        for index in 0..block.tables().len() {
            let table = block.table(index)?;
            let (series, times_ns) = (table.series(), table.times_ns()?);
            self.count_table(&Table { series, times_ns, columns: Vec::new() })?;
        }
        Ok(())
    }

    fn count_table(&mut self, table: &Table) -> Result<()> {
        let Some(first) = table.series.first() else { return Ok(()) };
        let names = self.reader.registry.names();
        let series_of = |id: SeriesId| {
            names.catalog.series(id).ok_or(Error::Corrupt { what: "a series without a name" })
        };
        let measurement = series_of(*first)?.measurement;
        let Some(&entity) = self.wanted.get(&measurement) else { return Ok(()) };
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for run in table.series.chunk_by(|a, b| a == b) {
            if entity.is_none() || series_of(run[0])?.entity == entity {
                found.push(start..start + run.len());
            }
            start += run.len();
        }
        drop(names);
        for rows in found {
            let times_ns = &table.times_ns[rows];
            if let (Some(min), Some(max)) = (times_ns.iter().min(), times_ns.iter().max()) {
                self.add(measurement, times_ns.len(), (*min, *max));
            }
        }
        Ok(())
    }

    fn add(&mut self, measurement: MeasurementIndex, rows: usize, times_ns: (i64, i64)) {
        let (count, ends) = self.found.entry(measurement).or_default();
        *count += rows as u64;
        let (min, max) = ends.unwrap_or(times_ns);
        *ends = Some((min.min(times_ns.0), max.max(times_ns.1)));
    }
}
