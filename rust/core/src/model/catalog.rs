//! The names of one tenant, as far as this process knows them. Looks up names by stored id and ids
//! by name.
//!
//! Ids may arrive in any order and with gaps, because each process registers names independently.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use super::arena::{Arena, ArenaRange};
use super::id_table::IdTable;
pub use super::measurement_names::MeasurementIndex;
use super::measurement_names::MeasurementNames;
use crate::model::batch::FieldType;
use crate::model::json;
use crate::model::names::{FieldId, NameParts, NameRef, SeriesId};

/// Dense number of an entity, i.e. of a (measurement, `entity_id`), within one process.
pub type EntityIndex = u32;

/// A series: a measurement and a tag set.
#[derive(Clone, Copy)]
pub struct Series<'c> {
    /// Measurement of the series.
    pub measurement: MeasurementIndex,
    /// Entity of the series. `None` if the series has no `entity_id`, so that no read addresses it.
    pub entity: Option<EntityIndex>,
    /// Catalog that has the name. The name is decoded only if a caller needs it.
    catalog: &'c Catalog,
    stored: &'c StoredSeries,
}

/// A [`Series`] as the catalog stores it.
#[derive(Clone, Copy)]
struct StoredSeries {
    name: ArenaRange,
    /// Measurement, or [`NONE`] if the series is not known.
    measurement: MeasurementIndex,
    /// Entity, or [`NONE`] if the series has no entity.
    entity: EntityIndex,
    /// True if the tags need no escapes in JSON, as is the case for nearly all series.
    has_plain_tags: bool,
}

/// Stands for no measurement or no entity.
const NONE: u32 = u32::MAX;
const UNKNOWN: StoredSeries = StoredSeries {
    name: ArenaRange::NOWHERE,
    measurement: NONE,
    entity: NONE,
    has_plain_tags: true,
};

/// An entity: a (measurement, `entity_id`).
#[derive(Clone, Debug)]
pub struct Entity {
    /// Measurement of the entity.
    pub measurement: MeasurementIndex,
    /// First series of the entity in order of registration, as this process saw it. Most entities
    /// have no other series.
    first: SeriesId,
    /// Offset and length of the entity id in the name of the first series. The id is never empty.
    id_span: (u32, u32),
    /// Smallest series id of the entity. Every process that knows all its series finds the same id.
    pub representative: SeriesId,
}

/// A field of a measurement.
#[derive(Clone, Debug)]
pub struct Field {
    /// Measurement of the field.
    pub measurement: MeasurementIndex,
    /// Name of the field, never empty.
    pub name: Box<str>,
    /// Type of all values of the field.
    pub field_type: FieldType,
}

/// All names that this process knows of a tenant. A name takes some hundred bytes, so each text is
/// stored only once.
#[derive(Default)]
pub struct Catalog {
    measurements: MeasurementNames,
    series: Vec<StoredSeries>,
    series_count: usize,
    names: Arena,
    entities: Vec<Entity>,
    /// Further series of the entities that have more than one.
    more_series: HashMap<EntityIndex, Vec<SeriesId>>,
    entity_by_id: IdTable,
    fields: Vec<Option<Field>>,
    field_by_name: HashMap<(MeasurementIndex, Box<str>), FieldId>,
    /// Series by name, without the first series of each entity. The entity leads to its first
    /// series.
    others_by_name: IdTable,
    hasher: RandomState,
}

impl Catalog {
    /// Returns the number of known series.
    #[must_use]
    pub const fn series_count(&self) -> usize {
        self.series_count
    }

    /// Returns the number after the greatest id of a known series.
    #[must_use]
    pub fn series_end(&self) -> SeriesId {
        index(self.series.len())
    }

    /// Returns the number of known fields.
    #[must_use]
    pub fn field_count(&self) -> usize {
        self.field_by_name.len()
    }

    /// Returns the measurement with this name, or `None` if it is not known.
    #[must_use]
    pub fn measurement(&self, name: &str) -> Option<MeasurementIndex> {
        self.measurements.find(name)
    }

    /// Returns the name of a measurement.
    ///
    /// # Panics
    /// Panics if the index is not from this catalog.
    #[must_use]
    pub fn measurement_name(&self, measurement: MeasurementIndex) -> &str {
        self.measurements.name(measurement)
    }

    /// Returns all measurements in byte order of their names.
    #[must_use]
    pub fn measurements_by_name(&self) -> Vec<MeasurementIndex> {
        self.measurements.by_name()
    }

    /// Returns the series with a stored id, or `None` if its name is not known.
    #[inline]
    #[must_use]
    pub fn series(&self, id: SeriesId) -> Option<Series<'_>> {
        let series = self.series.get(id as usize).filter(|series| series.measurement != NONE)?;
        let entity = Some(series.entity).filter(|entity| *entity != NONE);
        Some(Series { measurement: series.measurement, entity, catalog: self, stored: series })
    }

    fn name_at(&self, place: ArenaRange) -> NameRef<'_> {
        // SAFETY: only `insert_parts` puts bytes into the arena, and they are the bytes of a name.
        // The place of an unknown series is `NOWHERE`, for which `get` panics.
        #[expect(unsafe_code, reason = "a name is checked once")]
        unsafe {
            NameRef::of(self.names.get(place))
        }
    }

    /// Returns the hash of a series name.
    #[must_use]
    pub fn hash_of(&self, name: NameRef<'_>) -> u64 {
        self.hasher.hash_one(name.as_bytes())
    }

    /// Returns the id of the series with this name, or `None` if it is not known. `parts` are the
    /// parts of the name.
    #[must_use]
    pub fn find_series(&self, name: NameRef<'_>, parts: &NameParts) -> Option<SeriesId> {
        if let Some(span) = parts.entity_id {
            let measurement = self.measurement(name.measurement())?;
            let id = name.bytes_at(span);
            let entity = self.entity_of(self.entity_hash(measurement, id), measurement, id)?;
            let first = self.entity(entity).first;
            if self.name_at(self.series[first as usize].name) == name {
                return Some(first);
            }
        }
        let is_it = |id: SeriesId| self.name_at(self.series[id as usize].name) == name;
        self.others_by_name.find(self.hash_of(name), is_it)
    }

    /// Returns all known series in order of their ids.
    pub fn all_series(&self) -> impl Iterator<Item = (SeriesId, Series<'_>)> {
        (0..index(self.series.len())).filter_map(|id| Some((id, self.series(id)?)))
    }

    /// Returns all known entities.
    #[must_use]
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// Returns the field with a stored id, or `None` if its name is not known.
    #[must_use]
    pub fn field(&self, id: FieldId) -> Option<&Field> {
        self.fields.get(id as usize)?.as_ref()
    }

    /// Returns all known fields in order of their ids.
    pub fn all_fields(&self) -> impl Iterator<Item = (FieldId, &Field)> {
        let known = (0..).zip(&self.fields);
        known.filter_map(|(id, field)| Some((id, field.as_ref()?)))
    }

    /// Returns the id and type of a field, or `None` if it is not known.
    #[must_use]
    pub fn find_field(
        &self,
        measurement: MeasurementIndex,
        name: &str,
    ) -> Option<(FieldId, FieldType)> {
        // A borrowed pair cannot look up an owned pair. Field names are few and looked up once per
        // batch, so the copy is cheaper than a second kind of key.
        let id = *self.field_by_name.get(&(measurement, name.into()))?;
        Some((id, self.field(id)?.field_type))
    }

    /// Returns an entity.
    ///
    /// # Panics
    /// Panics if the index is not from this catalog.
    #[must_use]
    pub fn entity(&self, entity: EntityIndex) -> &Entity {
        &self.entities[entity as usize]
    }

    /// Returns the entity with this id in a measurement, or `None` if it is not known.
    #[must_use]
    pub fn find_entity(&self, measurement: MeasurementIndex, id: &str) -> Option<EntityIndex> {
        self.entity_of(self.entity_hash(measurement, id.as_bytes()), measurement, id.as_bytes())
    }

    fn entity_hash(&self, measurement: MeasurementIndex, id: &[u8]) -> u64 {
        self.hasher.hash_one((measurement, id))
    }

    fn entity_of(
        &self,
        hash: u64,
        measurement: MeasurementIndex,
        id: &[u8],
    ) -> Option<EntityIndex> {
        self.entity_by_id.find(hash, |entity| {
            let entity = self.entity(entity);
            entity.measurement == measurement
                && self.first_name(entity).bytes_at(entity.id_span) == id
        })
    }

    /// Returns the id of an entity, which is never empty.
    ///
    /// # Panics
    /// Panics if the index is not from this catalog.
    #[must_use]
    pub fn entity_id(&self, entity: EntityIndex) -> &str {
        let entity = self.entity(entity);
        self.first_name(entity).text_at(entity.id_span)
    }

    /// Returns the bytes of the id of an entity. Entities are ordered by these bytes, which need no
    /// UTF-8 check.
    ///
    /// # Panics
    /// Panics if the index is not from this catalog.
    #[must_use]
    pub fn entity_id_bytes(&self, entity: EntityIndex) -> &[u8] {
        let entity = self.entity(entity);
        self.first_name(entity).bytes_at(entity.id_span)
    }

    fn first_name(&self, entity: &Entity) -> NameRef<'_> {
        self.name_at(self.series[entity.first as usize].name)
    }

    /// Returns the series of an entity in order of registration, as this process saw it.
    ///
    /// # Panics
    /// Panics if the index is not from this catalog.
    pub fn series_of(&self, entity: EntityIndex) -> impl Iterator<Item = SeriesId> {
        let more = self.more_series.get(&entity).into_iter().flatten();
        std::iter::once(self.entity(entity).first).chain(more.copied())
    }

    /// Registers the name of a series. Does nothing if the id is already known.
    pub fn insert_series(&mut self, id: SeriesId, name: NameRef<'_>) {
        self.insert_parts(id, name, &name.parts());
    }

    /// Registers a series as [`Self::insert_series`] does. `parts` are the parts of the name.
    pub fn insert_parts(&mut self, id: SeriesId, name: NameRef<'_>, parts: &NameParts) {
        if self.series(id).is_some() {
            return;
        }
        let measurement = self.intern_measurement(name.measurement());
        self.series_count += 1;
        let series = StoredSeries {
            name: self.names.push(name.as_bytes()),
            measurement,
            entity: NONE,
            has_plain_tags: parts.has_plain_tags,
        };
        if self.series.len() <= id as usize {
            self.series.resize(id as usize + 1, UNKNOWN);
        }
        self.series[id as usize] = series;
        let mut is_first = false;
        if let Some(span) = parts.entity_id {
            let entity;
            (entity, is_first) = self.intern_entity(measurement, name, span, id);
            self.series[id as usize].entity = entity;
        }
        if !is_first {
            self.others_by_name.insert(self.hash_of(name), id);
        }
    }

    /// Registers the name of a field of a measurement of this catalog. Does nothing if the id is
    /// already known.
    pub fn insert_field(
        &mut self,
        id: FieldId,
        measurement: MeasurementIndex,
        name: &str,
        field_type: FieldType,
    ) {
        if self.field(id).is_some() {
            return;
        }
        self.field_by_name.insert((measurement, name.into()), id);
        if self.fields.len() <= id as usize {
            self.fields.resize(id as usize + 1, None);
        }
        self.fields[id as usize] = Some(Field { measurement, name: name.into(), field_type });
    }

    /// Returns the measurement with this name. Registers the name if it is not known.
    pub fn intern_measurement(&mut self, name: &str) -> MeasurementIndex {
        self.measurements.intern(name)
    }

    /// Adds `series` to the entity whose id lies at `id_span` in its `name`. Returns the entity,
    /// and true if `series` is its first series.
    fn intern_entity(
        &mut self,
        measurement: MeasurementIndex,
        name: NameRef<'_>,
        id_span: (u32, u32),
        series: SeriesId,
    ) -> (EntityIndex, bool) {
        let id = name.bytes_at(id_span);
        let hash = self.entity_hash(measurement, id);
        if let Some(known) = self.entity_of(hash, measurement, id) {
            self.more_series.entry(known).or_default().push(series);
            let entity = &mut self.entities[known as usize];
            entity.representative = entity.representative.min(series);
            return (known, false);
        }
        let new = index(self.entities.len());
        self.entity_by_id.insert(hash, new);
        let representative = series;
        self.entities.push(Entity { measurement, first: series, id_span, representative });
        (new, true)
    }
}

impl<'c> Series<'c> {
    /// Returns the name of the series.
    #[must_use]
    pub fn name(self) -> NameRef<'c> {
        self.catalog.name_at(self.stored.name)
    }

    /// Returns the representative series of the entity. A series without an entity, whose id is `id`,
    /// represents itself.
    #[must_use]
    pub fn representative(self, id: SeriesId) -> SeriesId {
        self.entity.map_or(id, |entity| self.catalog.entity(entity).representative)
    }

    /// Returns true if JSON strings can hold the tags without escapes.
    #[must_use]
    pub fn has_plain_tags(self) -> bool {
        self.stored.has_plain_tags
    }

    /// Appends the tags as a JSON object.
    pub fn write_tags(self, out: &mut Vec<u8>) {
        if self.has_plain_tags() {
            json::write_object_of_plain_strings(out, self.name().tags());
        } else {
            json::write_object_of_strings(out, self.name().tags());
        }
    }
}

impl Entity {
    /// Returns the first series of the entity in order of registration, as this process saw it.
    #[must_use]
    pub const fn first_series(&self) -> SeriesId {
        self.first
    }
}

fn index(length: usize) -> u32 {
    u32::try_from(length).expect("stored ids have 32 bits, so there are fewer names")
}
