//! The names of one tenant as one process knows them, by stored id and back.
//!
//! Ids may arrive in any order and with gaps, since each process registers names on its own.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use super::arena::{Arena, Place};
use crate::model::batch::FieldType;
use crate::model::json;
use crate::model::names::{FieldId, NameParts, NameRef, SeriesId};

/// Dense number of a measurement within one process.
pub type MeasurementIndex = u32;
/// Dense number of an entity, i.e. of a (measurement, `entity_id`), within one process.
pub type EntityIndex = u32;

/// One series.
#[derive(Clone, Copy)]
pub struct Series<'c> {
    /// Its measurement.
    pub measurement: MeasurementIndex,
    /// Its entity; `None` for a series without `entity_id`, which no read addresses.
    pub entity: Option<EntityIndex>,
    /// Catalog that has its name, which not everybody wants.
    catalog: &'c Catalog,
    stored: &'c StoredSeries,
}

/// A [`Series`] as it is kept.
#[derive(Clone, Copy)]
struct StoredSeries {
    name: Place,
    /// [`NONE`] where the series is not known.
    measurement: MeasurementIndex,
    /// [`NONE`] where it has none.
    entity: EntityIndex,
    /// Tells that its tags need no escapes in JSON, as those of nearly all series.
    has_plain_tags: bool,
}

/// No measurement, or no entity.
const NONE: u32 = u32::MAX;
const UNKNOWN: StoredSeries =
    StoredSeries { name: Place::NOWHERE, measurement: NONE, entity: NONE, has_plain_tags: true };

/// One (measurement, `entity_id`).
#[derive(Clone, Debug)]
pub struct Entity {
    /// Its measurement.
    pub measurement: MeasurementIndex,
    /// The first of its tag sets, in order of registration as seen here; most have no other.
    first: SeriesId,
    /// Offset and length of its id, which is never empty, in the name of the first.
    id_span: (u32, u32),
    /// The smallest id among them: the same for every process that knows all of them.
    pub representative: SeriesId,
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

/// A number and half the hash of what it stands for, which a table that grows needs again.
struct Hashed {
    half: u32,
    of: u32,
}

/// All names known here: some hundred bytes for each, so a text stands only once.
#[derive(Default)]
pub struct Catalog {
    measurements: Vec<Box<str>>,
    measurement_by_name: HashMap<Box<str>, MeasurementIndex, RandomState>,
    /// The one interned last, which most often is the next one too.
    last_measurement: MeasurementIndex,
    series: Vec<StoredSeries>,
    series_count: usize,
    names: Arena,
    entities: Vec<Entity>,
    /// The tag sets after the first, of those entities that have more.
    more_series: HashMap<EntityIndex, Vec<SeriesId>>,
    entity_by_id: HashTable<Hashed>,
    fields: Vec<Option<Field>>,
    field_by_name: HashMap<(MeasurementIndex, Box<str>), FieldId>,
    /// Series that are not the first of an entity, by name: an entity leads to its first.
    others_by_name: HashTable<Hashed>,
    hasher: RandomState,
}

impl Catalog {
    /// Number of series known.
    #[must_use]
    pub const fn series_count(&self) -> usize {
        self.series_count
    }

    /// Number of fields known.
    #[must_use]
    pub fn field_count(&self) -> usize {
        self.field_by_name.len()
    }

    /// The measurement of this name.
    #[must_use]
    pub fn measurement(&self, name: &str) -> Option<MeasurementIndex> {
        let last = self.last_measurement;
        if self.measurements.get(last as usize).is_some_and(|known| **known == *name) {
            return Some(last);
        }
        self.measurement_by_name.get(name).copied()
    }

    /// Name of a measurement.
    ///
    /// # Panics
    /// If the index is not from this catalog.
    #[must_use]
    pub fn measurement_name(&self, measurement: MeasurementIndex) -> &str {
        &self.measurements[measurement as usize]
    }

    /// Measurements in byte order of their names.
    #[must_use]
    pub fn measurements_by_name(&self) -> Vec<MeasurementIndex> {
        let mut order: Vec<_> = (0..index(self.measurements.len())).collect();
        order.sort_unstable_by_key(|at| self.measurement_name(*at));
        order
    }

    /// The series under a stored id, if its name was seen.
    #[inline]
    #[must_use]
    pub fn series(&self, id: SeriesId) -> Option<Series<'_>> {
        let series = self.series.get(id as usize).filter(|series| series.measurement != NONE)?;
        let entity = Some(series.entity).filter(|entity| *entity != NONE);
        Some(Series { measurement: series.measurement, entity, catalog: self, stored: series })
    }

    fn name_at(&self, place: Place) -> NameRef<'_> {
        // SAFETY: names are all that is put there, by `insert`, and places of others come from nowhere.
        #[expect(unsafe_code, reason = "a name is checked once")]
        unsafe {
            NameRef::of(self.names.get(place))
        }
    }

    /// Hash of a series' name.
    #[must_use]
    pub fn hash_of(&self, name: NameRef<'_>) -> u64 {
        whole(half(self.hasher.hash_one(name.as_bytes())))
    }

    /// The id of the series of this name, which has these parts.
    #[must_use]
    pub fn find_series(&self, name: NameRef<'_>, parts: &NameParts) -> Option<SeriesId> {
        if let Some(span) = parts.entity_id {
            let measurement = self.measurement(name.measurement())?;
            let id = name.bytes_at(span);
            let entity = self.entity_of(self.entity_half(measurement, id), measurement, id)?;
            let first = self.entity(entity).first;
            if self.name_at(self.series[first as usize].name) == name {
                return Some(first);
            }
        }
        let hash = self.hash_of(name);
        let is_it = |entry: &Hashed| {
            entry.whole() == hash && self.name_at(self.series[entry.of as usize].name) == name
        };
        Some(self.others_by_name.find(hash, is_it)?.of)
    }

    /// All series known, by id.
    pub fn all_series(&self) -> impl Iterator<Item = (SeriesId, Series<'_>)> {
        (0..index(self.series.len())).filter_map(|id| Some((id, self.series(id)?)))
    }

    /// All entities known.
    #[must_use]
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// The field under a stored id, if its name was seen.
    #[must_use]
    pub fn field(&self, id: FieldId) -> Option<&Field> {
        self.fields.get(id as usize)?.as_ref()
    }

    /// All fields known, by id.
    pub fn all_fields(&self) -> impl Iterator<Item = (FieldId, &Field)> {
        let known = (0..).zip(&self.fields);
        known.filter_map(|(id, field)| Some((id, field.as_ref()?)))
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

    /// An entity.
    ///
    /// # Panics
    /// If the index is not from this catalog.
    #[must_use]
    pub fn entity(&self, entity: EntityIndex) -> &Entity {
        &self.entities[entity as usize]
    }

    /// The entity of this id in this measurement.
    #[must_use]
    pub fn find_entity(&self, measurement: MeasurementIndex, id: &str) -> Option<EntityIndex> {
        self.entity_of(self.entity_half(measurement, id.as_bytes()), measurement, id.as_bytes())
    }

    fn entity_half(&self, measurement: MeasurementIndex, id: &[u8]) -> u32 {
        half(self.hasher.hash_one((measurement, id)))
    }

    fn entity_of(
        &self,
        half: u32,
        measurement: MeasurementIndex,
        id: &[u8],
    ) -> Option<EntityIndex> {
        let is_it = |entry: &Hashed| {
            let entity = &self.entities[entry.of as usize];
            entry.half == half
                && entity.measurement == measurement
                && self.first_name(entity).bytes_at(entity.id_span) == id
        };
        Some(self.entity_by_id.find(whole(half), is_it)?.of)
    }

    /// The id of an entity, never empty.
    ///
    /// # Panics
    /// If the index is not from this catalog.
    #[must_use]
    pub fn entity_id(&self, entity: EntityIndex) -> &str {
        let entity = self.entity(entity);
        self.first_name(entity).text_at(entity.id_span)
    }

    /// The bytes of that id: what orders entities, without a look at each.
    ///
    /// # Panics
    /// As [`Self::entity_id`].
    #[must_use]
    pub fn entity_id_bytes(&self, entity: EntityIndex) -> &[u8] {
        let entity = self.entity(entity);
        self.first_name(entity).bytes_at(entity.id_span)
    }

    fn first_name(&self, entity: &Entity) -> NameRef<'_> {
        self.name_at(self.series[entity.first as usize].name)
    }

    /// The tag sets of an entity, in order of registration as seen here.
    ///
    /// # Panics
    /// If the index is not from this catalog.
    pub fn series_of(&self, entity: EntityIndex) -> impl Iterator<Item = SeriesId> {
        let more = self.more_series.get(&entity).into_iter().flatten();
        std::iter::once(self.entity(entity).first).chain(more.copied())
    }

    /// Notes the name of a series; the same id again changes nothing.
    pub fn insert_series(&mut self, id: SeriesId, name: NameRef<'_>) {
        self.insert_parts(id, name, &name.parts());
    }

    /// As [`Self::insert_series`], of a name that has these parts.
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
            let half = half(self.hasher.hash_one(name.as_bytes()));
            self.others_by_name.insert_unique(whole(half), Hashed { half, of: id }, Hashed::whole);
        }
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
        self.field_by_name.insert((measurement, name.into()), id);
        put_at(&mut self.fields, id, Field { measurement, name: name.into(), field_type });
    }

    /// The measurement of this name, noted if it was not known.
    pub fn intern_measurement(&mut self, name: &str) -> MeasurementIndex {
        let last = self.last_measurement;
        if self.measurements.get(last as usize).is_some_and(|known| **known == *name) {
            return last;
        }
        if let Some(known) = self.measurement(name) {
            self.last_measurement = known;
            return known;
        }
        let new = index(self.measurements.len());
        self.measurements.push(name.into());
        self.measurement_by_name.insert(name.into(), new);
        new
    }

    /// The entity whose id lies at `id_span` in `name`, that of `series`, which joins it; and tells if
    /// it is the first to do so.
    fn intern_entity(
        &mut self,
        measurement: MeasurementIndex,
        name: NameRef<'_>,
        id_span: (u32, u32),
        series: SeriesId,
    ) -> (EntityIndex, bool) {
        let id = name.bytes_at(id_span);
        let half = self.entity_half(measurement, id);
        if let Some(known) = self.entity_of(half, measurement, id) {
            self.more_series.entry(known).or_default().push(series);
            let entity = &mut self.entities[known as usize];
            entity.representative = entity.representative.min(series);
            return (known, false);
        }
        let new = index(self.entities.len());
        self.entity_by_id.insert_unique(whole(half), Hashed { half, of: new }, Hashed::whole);
        let representative = series;
        self.entities.push(Entity { measurement, first: series, id_span, representative });
        (new, true)
    }
}

impl<'c> Series<'c> {
    /// Its name.
    #[must_use]
    pub fn name(self) -> NameRef<'c> {
        self.catalog.name_at(self.stored.name)
    }

    /// Appends the tags as a JSON object.
    pub fn write_tags(self, out: &mut Vec<u8>) {
        if self.stored.has_plain_tags {
            json::write_object_of_plain_strings(out, self.name().tags());
        } else {
            json::write_object_of_strings(out, self.name().tags());
        }
    }
}

impl Entity {
    /// The first of its tag sets, in order of registration as seen here.
    #[must_use]
    pub const fn first_series(&self) -> SeriesId {
        self.first
    }
}

impl Hashed {
    fn whole(&self) -> u64 {
        whole(self.half)
    }
}

fn half(hash: u64) -> u32 {
    u32::try_from(hash >> 32).expect("32 bits are left")
}

/// A hash for tables, which use its lowest and its highest bits, out of half of one.
fn whole(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
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
