//! The names of one tenant as one process knows them, by stored id and back.
//!
//! Ids may arrive in any order and with gaps, since each process registers names on its own.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::model::batch::FieldType;
use crate::model::json;
use crate::model::names::{self, FieldId, SeriesId, SeriesName};

/// Dense number of a measurement within one process.
pub type MeasurementIndex = u32;
/// Dense number of an entity, i.e. of a (measurement, `entity_id`), within one process.
pub type EntityIndex = u32;

/// One series.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its measurement.
    pub measurement: MeasurementIndex,
    /// Its entity; `None` for a series without `entity_id`, which no read addresses.
    pub entity: Option<EntityIndex>,
    /// Its name.
    pub name: SeriesName,
    /// Tells that its tags need no escapes in JSON, as those of nearly all series.
    has_plain_tags: bool,
}

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
    series: Vec<Option<Series>>,
    entities: Vec<Entity>,
    /// The tag sets after the first, of those entities that have more.
    more_series: HashMap<EntityIndex, Vec<SeriesId>>,
    entity_by_id: HashTable<Hashed>,
    fields: Vec<Option<Field>>,
    field_by_name: HashMap<(MeasurementIndex, Box<str>), FieldId>,
    series_by_name: HashTable<Hashed>,
    hasher: RandomState,
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
    #[must_use]
    pub fn series(&self, id: SeriesId) -> Option<&Series> {
        self.series.get(id as usize)?.as_ref()
    }

    /// Hash of a series' name, for [`Self::find_series`].
    #[must_use]
    pub fn hash_of(&self, name: &SeriesName) -> u64 {
        whole(half(self.hasher.hash_one(name.as_bytes())))
    }

    /// The id of a series whose name has this hash.
    #[must_use]
    pub fn find_series(&self, hash: u64, name: &SeriesName) -> Option<SeriesId> {
        let named = |entry: &Hashed| {
            entry.whole() == hash
                && self.series(entry.of).is_some_and(|series| series.name == *name)
        };
        Some(self.series_by_name.find(hash, named)?.of)
    }

    /// All series known, by id.
    pub fn all_series(&self) -> impl Iterator<Item = (SeriesId, &Series)> {
        let known = (0..).zip(&self.series);
        known.filter_map(|(id, series)| Some((id, series.as_ref()?)))
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
        let half = half(self.hasher.hash_one((measurement, id)));
        let is_it = |entry: &Hashed| {
            entry.half == half && self.entities[entry.of as usize].is(measurement, id, &self.series)
        };
        Some(self.entity_by_id.find(whole(half), is_it)?.of)
    }

    /// The id of an entity, never empty.
    ///
    /// # Panics
    /// If the index is not from this catalog.
    #[must_use]
    pub fn entity_id(&self, entity: EntityIndex) -> &str {
        self.entity(entity).id(&self.series)
    }

    /// The bytes of that id: what orders entities, without a look at each.
    ///
    /// # Panics
    /// As [`Self::entity_id`].
    #[must_use]
    pub fn entity_id_bytes(&self, entity: EntityIndex) -> &[u8] {
        self.entity(entity).id_bytes(&self.series)
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
    pub fn insert_series(&mut self, id: SeriesId, name: SeriesName) {
        if self.series(id).is_some() {
            return;
        }
        let measurement = self.intern_measurement(name.measurement());
        let (mut has_plain_tags, mut id_span) = (true, None);
        for (key, value) in name.tags() {
            has_plain_tags &= json::is_plain(key) & json::is_plain(value);
            if key == "entity_id" && !value.is_empty() {
                id_span = Some(name.span_of(value));
            }
        }
        let entity = id_span.map(|span| self.intern_entity(measurement, &name, span, id));
        self.counted_series += names::counted(name.as_bytes().len());
        let half = half(self.hasher.hash_one(name.as_bytes()));
        self.series_by_name.insert_unique(whole(half), Hashed { half, of: id }, Hashed::whole);
        put_at(&mut self.series, id, Series { measurement, entity, name, has_plain_tags });
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

    /// The entity whose id lies at `id_span` in `name`, that of `series`, which joins it.
    fn intern_entity(
        &mut self,
        measurement: MeasurementIndex,
        name: &SeriesName,
        id_span: (u32, u32),
        series: SeriesId,
    ) -> EntityIndex {
        let Self { entities, entity_by_id, hasher, .. } = self;
        let id = name.text_at(id_span);
        let half = half(hasher.hash_one((measurement, id)));
        let is_it = |entry: &Hashed| {
            entry.half == half && entities[entry.of as usize].is(measurement, id, &self.series)
        };
        match entity_by_id.entry(whole(half), is_it, Hashed::whole) {
            Entry::Occupied(known) => {
                let known = known.get().of;
                self.more_series.entry(known).or_default().push(series);
                let entity = &mut entities[known as usize];
                entity.representative = entity.representative.min(series);
                known
            }
            Entry::Vacant(free) => {
                let new = index(entities.len());
                free.insert(Hashed { half, of: new });
                entities.push(Entity {
                    measurement,
                    first: series,
                    id_span,
                    representative: series,
                });
                new
            }
        }
    }
}

impl Series {
    /// Appends the tags as a JSON object.
    pub fn write_tags(&self, out: &mut Vec<u8>) {
        if self.has_plain_tags {
            json::write_object_of_plain_strings(out, self.name.tags());
        } else {
            json::write_object_of_strings(out, self.name.tags());
        }
    }
}

impl Entity {
    /// The first of its tag sets, in order of registration as seen here.
    #[must_use]
    pub const fn first_series(&self) -> SeriesId {
        self.first
    }

    fn is(&self, measurement: MeasurementIndex, id: &str, all: &[Option<Series>]) -> bool {
        self.measurement == measurement && self.id_bytes(all) == id.as_bytes()
    }

    fn id<'n>(&self, all: &'n [Option<Series>]) -> &'n str {
        self.first_name(all).text_at(self.id_span)
    }

    fn id_bytes<'n>(&self, all: &'n [Option<Series>]) -> &'n [u8] {
        self.first_name(all).bytes_at(self.id_span)
    }

    fn first_name<'n>(&self, all: &'n [Option<Series>]) -> &'n SeriesName {
        &all[self.first as usize].as_ref().expect("an entity has a series").name
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
