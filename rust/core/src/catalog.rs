//! The names of one tenant as one process knows them: who is behind each stored id.
//!
//! Ids may arrive in any order and with gaps, since every process registers names on its own.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::batch::{FieldId, FieldType, SeriesId, SeriesName};
use crate::json;
use crate::names;

/// Dense number of a measurement within one process.
pub type MeasurementIndex = u32;
/// Dense number of an entity, i.e. of a (measurement, `entity_id`), within one process.
pub type EntityIndex = u32;

/// One series.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its measurement.
    pub measurement: MeasurementIndex,
    /// Its entity; `None` for a series without `entity_id`, which no read addresses (C30).
    pub entity: Option<EntityIndex>,
    /// Its name.
    pub name: SeriesName,
    /// The tags as a JSON object, ready to be copied into an answer.
    pub tags_json: Box<[u8]>,
}

/// One (measurement, `entity_id`).
#[derive(Clone, Debug)]
pub struct Entity {
    /// Its measurement.
    pub measurement: MeasurementIndex,
    /// Its id, never empty.
    pub id: Box<str>,
    /// The first of its tag sets, in order of registration as seen here; most have no other.
    first: SeriesId,
    more_series: Vec<SeriesId>,
    /// The smallest id among them: the same for every process that knows all of them.
    pub leader: SeriesId,
}

/// One field of one measurement.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its measurement.
    pub measurement: MeasurementIndex,
    /// Its name, never empty.
    pub name: Box<str>,
    /// The one type of its values.
    pub field_type: FieldType,
}

/// A number and the hash of what it stands for, which a table that grows needs again.
struct Hashed<T> {
    hash: u64,
    of: T,
}

/// All names known here.
#[derive(Default)]
pub struct Catalog {
    measurements: Vec<Box<str>>,
    measurement_by_name: HashMap<Box<str>, MeasurementIndex, RandomState>,
    series: Vec<Option<Series>>,
    entities: Vec<Entity>,
    entity_by_id: HashTable<Hashed<EntityIndex>>,
    fields: Vec<Option<Field>>,
    field_by_name: HashMap<(MeasurementIndex, Box<str>), FieldId>,
    series_by_name: HashTable<Hashed<SeriesId>>,
    hasher: RandomState,
    /// Where text is put together whose length is not known yet.
    scratch: Vec<u8>,
    counted_series: usize,
    counted_fields: usize,
}

impl Catalog {
    /// Number of series known.
    #[must_use]
    pub fn series_count(&self) -> usize {
        self.series_by_name.len()
    }

    /// Number of fields known.
    #[must_use]
    pub fn field_count(&self) -> usize {
        self.field_by_name.len()
    }

    /// All series known, each as often as its name counts ([`names::counted`]).
    #[must_use]
    pub const fn counted_series(&self) -> usize {
        self.counted_series
    }

    /// All fields known, counted in the same way.
    #[must_use]
    pub const fn counted_fields(&self) -> usize {
        self.counted_fields
    }

    /// The measurement of this name.
    #[must_use]
    pub fn measurement(&self, name: &str) -> Option<MeasurementIndex> {
        self.measurement_by_name.get(name).copied()
    }

    /// Name of a measurement.
    ///
    /// # Panics
    /// When the index is not from this catalog.
    #[must_use]
    pub fn measurement_name(&self, measurement: MeasurementIndex) -> &str {
        &self.measurements[measurement as usize]
    }

    /// Measurements in byte order of their names (G4).
    #[must_use]
    pub fn measurements_by_name(&self) -> Vec<MeasurementIndex> {
        let mut order: Vec<_> = (0..index(self.measurements.len())).collect();
        order.sort_unstable_by_key(|at| self.measurement_name(*at));
        order
    }

    /// The series under a stored id, if its name was seen.
    #[must_use]
    pub fn series(&self, id: SeriesId) -> Option<&Series> {
        self.series.get(id as usize)?.as_ref()
    }

    /// Hash of a series' name, for [`Self::find_series`].
    #[must_use]
    pub fn hash_of(&self, name: &SeriesName) -> u64 {
        self.hasher.hash_one(name.as_bytes())
    }

    /// The id of a series whose name has this hash.
    #[must_use]
    pub fn find_series(&self, hash: u64, name: &SeriesName) -> Option<SeriesId> {
        let named = |entry: &Hashed<SeriesId>| {
            entry.hash == hash && self.series(entry.of).is_some_and(|series| series.name == *name)
        };
        Some(self.series_by_name.find(hash, named)?.of)
    }

    /// Every series known, by id.
    pub fn all_series(&self) -> impl Iterator<Item = (SeriesId, &Series)> {
        let known = (0..).zip(&self.series);
        known.filter_map(|(id, series)| Some((id, series.as_ref()?)))
    }

    /// Every entity known.
    #[must_use]
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// The field under a stored id, if its name was seen.
    #[must_use]
    pub fn field(&self, id: FieldId) -> Option<&Field> {
        self.fields.get(id as usize)?.as_ref()
    }

    /// The id and type of a field.
    #[must_use]
    pub fn find_field(
        &self,
        measurement: MeasurementIndex,
        name: &str,
    ) -> Option<(FieldId, FieldType)> {
        // A borrowed pair cannot look up an owned one; field names are few and looked up once a
        // batch, so the copy is cheaper than a second kind of key.
        let id = *self.field_by_name.get(&(measurement, name.into()))?;
        Some((id, self.field(id)?.field_type))
    }

    /// Every field of a measurement, in order of id.
    pub fn fields_of(
        &self,
        measurement: MeasurementIndex,
    ) -> impl Iterator<Item = (FieldId, &Field)> {
        let known = (0..).zip(&self.fields);
        let known = known.filter_map(|(id, field)| Some((id, field.as_ref()?)));
        known.filter(move |(_, field)| field.measurement == measurement)
    }

    /// An entity.
    ///
    /// # Panics
    /// When the index is not from this catalog.
    #[must_use]
    pub fn entity(&self, entity: EntityIndex) -> &Entity {
        &self.entities[entity as usize]
    }

    /// The entity of this id in this measurement.
    #[must_use]
    pub fn find_entity(&self, measurement: MeasurementIndex, id: &str) -> Option<EntityIndex> {
        let hash = self.hasher.hash_one((measurement, id));
        let is_it = |entry: &Hashed<EntityIndex>| self.entity(entry.of).is(measurement, id);
        Some(self.entity_by_id.find(hash, is_it)?.of)
    }

    /// Notes the name of a series; the same id again changes nothing.
    pub fn insert_series(&mut self, id: SeriesId, name: SeriesName) {
        if self.series(id).is_some() {
            return;
        }
        let measurement = self.intern_measurement(name.measurement());
        let entity =
            name.entity_id().map(|entity_id| self.intern_entity(measurement, entity_id, id));
        self.scratch.clear();
        json::write_object_of_strings(&mut self.scratch, name.tags());
        let tags_json = self.scratch.as_slice().into();
        let hash = self.hash_of(&name);
        self.counted_series += names::counted(name.as_bytes().len());
        self.series_by_name.insert_unique(hash, Hashed { hash, of: id }, |entry| entry.hash);
        put_at(&mut self.series, id, Series { measurement, entity, name, tags_json });
    }

    /// Notes the name of a field of a measurement of this catalog; the same id again changes nothing.
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
        self.counted_fields += names::counted(name.len());
        self.field_by_name.insert((measurement, name.into()), id);
        put_at(&mut self.fields, id, Field { measurement, name: name.into(), field_type });
    }

    /// The measurement of this name, noted if it was not known.
    pub fn intern_measurement(&mut self, name: &str) -> MeasurementIndex {
        if let Some(known) = self.measurement(name) {
            return known;
        }
        let fresh = index(self.measurements.len());
        self.measurements.push(name.into());
        self.measurement_by_name.insert(name.into(), fresh);
        fresh
    }

    /// The entity of this id, which `series` joins.
    fn intern_entity(
        &mut self,
        measurement: MeasurementIndex,
        id: &str,
        series: SeriesId,
    ) -> EntityIndex {
        let Self { entities, entity_by_id, hasher, .. } = self;
        let hash = hasher.hash_one((measurement, id));
        let is_it = |entry: &Hashed<EntityIndex>| {
            entry.hash == hash && entities[entry.of as usize].is(measurement, id)
        };
        match entity_by_id.entry(hash, is_it, |entry| entry.hash) {
            Entry::Occupied(known) => {
                let entity = &mut entities[known.get().of as usize];
                entity.more_series.push(series);
                entity.leader = entity.leader.min(series);
                known.get().of
            }
            Entry::Vacant(free) => {
                let fresh = index(entities.len());
                free.insert(Hashed { hash, of: fresh });
                let (id, more_series) = (id.into(), Vec::new());
                entities.push(Entity {
                    measurement,
                    id,
                    first: series,
                    more_series,
                    leader: series,
                });
                fresh
            }
        }
    }
}

impl Entity {
    /// Its tag sets, in order of registration as seen here.
    pub fn series(&self) -> impl Iterator<Item = SeriesId> {
        std::iter::once(self.first).chain(self.more_series.iter().copied())
    }

    /// The first of [`Self::series`].
    #[must_use]
    pub const fn first_series(&self) -> SeriesId {
        self.first
    }

    fn is(&self, measurement: MeasurementIndex, id: &str) -> bool {
        self.measurement == measurement && *self.id == *id
    }
}

fn put_at<T>(slots: &mut Vec<Option<T>>, id: u32, value: T) {
    let at = id as usize;
    if slots.len() <= at {
        slots.resize_with(at + 1, || None);
    }
    slots[at] = Some(value);
}

fn index(length: usize) -> u32 {
    u32::try_from(length).expect("stored ids have 32 bits, so there are fewer names")
}
