//! Names on their way to an id.
//!
//! Names are looked up in memory, where all that were ever registered lie. Those that are missing
//! become a page, which the store takes only if this process knew every page before it: so a name
//! has one id, whoever registers it, and is stored once.

use hashbrown::HashTable;

use super::writer::WriteResult;
use super::{Names, Plane};
use crate::model::batch::{Batch, CellPosition, NEW_SERIES_BASE, NewSeries};
use crate::model::error::Result;
use crate::model::fault::Refusal;
use crate::model::limits::WriteLimits;
use crate::model::names::{self, FieldId, SeriesId};
use crate::storage::seal::Kind;
use crate::storage::store::{FirstIds, NewNames};

/// Stored ids of what a batch names by its own numbers.
#[derive(Default)]
pub(super) struct Ids {
    /// By index into [`Batch::new_series`].
    pub(super) series: Vec<SeriesId>,
    /// By index into [`Batch::fields`].
    pub(super) fields: Vec<FieldId>,
}

/// What is known of the names of a batch.
struct Found {
    /// How many pages of names were known.
    pages: u64,
    /// Of each series its id, or [`NEW_SERIES_BASE`] and its place in `new_series`.
    series: Vec<SeriesId>,
    /// Places in [`Batch::new_series`]; each name once.
    new_series: Vec<usize>,
    fields: Vec<Option<FieldId>>,
    /// Why the batch is refused, as far as it is known from these names.
    refusal: Option<Refusal>,
}

impl Plane {
    /// Whether a row of one of `measurements` was ever written, by any process. Names are never
    /// removed, so rows that retention hides count as well.
    ///
    /// # Errors
    /// The store's.
    pub fn knows_any<T: AsRef<str>>(&self, measurements: &[T]) -> Result<bool> {
        self.follow()?;
        let names = self.names();
        Ok(measurements.iter().any(|name| names.catalog.measurement(name.as_ref()).is_some()))
    }

    /// Gives every series and field of `batch` its stored id, registering what is new. Type
    /// conflicts and names beyond what the tenant may have refuse the batch before any
    /// name is registered.
    pub(super) fn resolve(&self, batch: &mut Batch, limits: &WriteLimits) -> WriteResult<Ids> {
        let mut found = Found::look_up(batch, &self.names(), limits);
        if found.is_complete() && batch.new_series.is_empty() {
            return Ok(found.ids(FirstIds::default()));
        }
        if found.is_complete() {
            return Ok(self.note(batch, found.ids(FirstIds::default())));
        }
        let _order = self.naming();
        let first = self.register(batch, &mut found, limits)?;
        let ids = self.note(batch, found.ids(first.unwrap_or_default()));
        if first.is_some() {
            self.names_mut().pages = found.pages + 1;
        }
        Ok(ids)
    }

    /// Notes names and raw_keys that were not known here.
    fn note(&self, batch: &mut Batch, ids: Ids) -> Ids {
        let mut names = self.names_mut();
        let measurements: Vec<_> =
            batch.measurements.iter().map(|name| names.catalog.intern_measurement(name)).collect();
        for (field, id) in batch.fields.iter().zip(&ids.fields) {
            let measurement = measurements[field.table as usize];
            names.catalog.insert_field(*id, measurement, &field.name, field.field_type);
        }
        let mut raw_keys = self.caches.raw_keys_mut();
        for (series, id) in std::mem::take(&mut batch.new_series).into_iter().zip(&ids.series) {
            names.catalog.insert_series(*id, series.name);
            raw_keys.insert(series.raw_key, *id);
        }
        ids
    }

    /// Stores what is not `found`, which learns what others stored meanwhile. `None` where they
    /// stored all of it. A batch is refused only by one who knows all names: else the field that is
    /// named would depend on what this process happens to know, and the store takes no page that would
    /// pass a bound, because it takes none from a process that has not counted all others.
    fn register(
        &self,
        batch: &Batch,
        found: &mut Found,
        limits: &WriteLimits,
    ) -> WriteResult<Option<FirstIds>> {
        loop {
            if found.pages != self.names().pages {
                *found = Found::look_up(batch, &self.names(), limits);
            }
            if found.is_complete() {
                return Ok(None);
            }
            if found.refusal.is_none() {
                let new = self.new_names(batch, found)?;
                let first = self.store.append_names(found.pages, &new)?;
                if first.is_some() {
                    return Ok(first);
                }
            }
            self.follow_names()?;
            if found.pages == self.names().pages
                && let Some(refusal) = found.refusal.take()
            {
                return Err(refusal.into());
            }
        }
    }

    /// The page of what is not `found`.
    fn new_names(&self, batch: &Batch, found: &Found) -> WriteResult<NewNames> {
        let mut page = Vec::new();
        for at in &found.new_series {
            page.extend_from_slice(batch.new_series[*at].name.as_bytes());
        }
        let series = u32::try_from(found.new_series.len()).expect("a batch has few series");
        let mut new = NewNames { series, ..NewNames::default() };
        let mut table_before = None;
        for (field, known) in batch.fields.iter().zip(&found.fields) {
            if known.is_none() {
                let is_another = table_before.replace(field.table) != Some(field.table);
                let measurement = &batch.measurements[field.table as usize];
                names::put_field(&mut page, is_another.then_some(measurement), &field.name);
                new.fields.push(field.field_type);
            }
        }
        new.sealed_names = self.sealer.seal(Kind::Names, &page)?;
        Ok(new)
    }
}

impl Found {
    /// What `names` has of the names of `batch`.
    fn look_up(batch: &Batch, names: &Names, limits: &WriteLimits) -> Self {
        let conflict = batch.conflict.as_ref();
        let mut conflict = conflict.map(|conflict| (conflict.at, conflict.field.as_str()));
        let measurements: Vec<_> =
            batch.measurements.iter().map(|name| names.catalog.measurement(name)).collect();
        let mut fields = Vec::with_capacity(batch.fields.len());
        for field in &batch.fields {
            let measurement = measurements[field.table as usize];
            let known = measurement.and_then(|at| names.catalog.find_field(at, &field.name));
            if known.is_some_and(|(_, field_type)| field_type != field.field_type) {
                conflict = Some(first(conflict, (field.first, field.name.as_str())));
            }
            fields.push(known.map(|(id, _)| id));
        }
        let refusal = conflict.map(|(_, field)| Refusal::TypeConflict { field: field.to_owned() });
        let (series, new_series) = (Vec::new(), Vec::new());
        let mut found = Self { pages: names.pages, series, new_series, fields, refusal };
        found.look_up_series(&batch.new_series, names);
        if found.refusal.is_none() {
            found.refusal = found.full(batch, names, limits);
        }
        found
    }

    /// The refusal of a batch whose new names would take the tenant past a bound. Names that exist
    /// are no new ones, however many there are.
    fn full(&self, batch: &Batch, known: &Names, limits: &WriteLimits) -> Option<Refusal> {
        let passes = |known: usize, new: usize, max: usize| new > 0 && known + new > max;
        let lengths = self.new_series.iter().map(|at| batch.new_series[*at].name.as_bytes().len());
        let (series, new) = (known.catalog.counted_series(), lengths.map(names::counted).sum());
        if passes(series, new, limits.tenant_series_max) {
            return Some(Refusal::TenantFull { field: "tags" });
        }
        let missing = batch.fields.iter().zip(&self.fields).filter(|(_, known)| known.is_none());
        let lengths = missing.map(|(field, _)| field.name.len());
        let (fields, new) = (known.catalog.counted_fields(), lengths.map(names::counted).sum());
        let is_full = batch.has_excess_fields || passes(fields, new, limits.tenant_fields_max);
        is_full.then_some(Refusal::TenantFull { field: "fields" })
    }

    fn look_up_series(&mut self, wanted: &[NewSeries], names: &Names) {
        let mut new: HashTable<(u64, u32)> = HashTable::with_capacity(wanted.len());
        self.series.reserve(wanted.len());
        for (at, series) in wanted.iter().enumerate() {
            let hash = names.catalog.hash_of(&series.name);
            let known = names.catalog.find_series(hash, &series.name);
            self.series.push(known.unwrap_or_else(|| {
                let is_same = |(other, number): &(u64, u32)| {
                    hash == *other && wanted[self.new_series[*number as usize]].name == series.name
                };
                let (_, number) = *new
                    .entry(hash, is_same, |(hash, _)| *hash)
                    .or_insert_with(|| {
                        let number = u32::try_from(self.new_series.len());
                        self.new_series.push(at);
                        (hash, number.expect("a batch has few series"))
                    })
                    .get();
                NEW_SERIES_BASE + number
            }));
        }
    }

    /// Whether all has its id, and nothing refuses the batch.
    fn is_complete(&self) -> bool {
        self.refusal.is_none()
            && self.new_series.is_empty()
            && self.fields.iter().all(Option::is_some)
    }

    /// The ids, where those that were missing count up from `first`.
    fn ids(&self, first: FirstIds) -> Ids {
        let mut free = first.field..;
        let field = |known: &Option<FieldId>| known.or_else(|| free.next());
        Ids {
            series: self
                .series
                .iter()
                .map(|id| match id.checked_sub(NEW_SERIES_BASE) {
                    Some(number) => first.series + number,
                    None => *id,
                })
                .collect(),
            fields: self.fields.iter().map(field).collect::<Option<_>>().expect("ids do not end"),
        }
    }
}

/// The one that stands first in the batch.
fn first<'b>(
    earlier: Option<(CellPosition, &'b str)>,
    next: (CellPosition, &'b str),
) -> (CellPosition, &'b str) {
    earlier.filter(|earlier| earlier.0 <= next.0).unwrap_or(next)
}
