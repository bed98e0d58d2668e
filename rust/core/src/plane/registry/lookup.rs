//! Looks up the names of a batch among the known names.

use hashbrown::HashTable;

use crate::model::batch::{Batch, CellPosition, FieldType, NEW_SERIES_BASE};
use crate::model::catalog::Catalog;
use crate::model::fault::BatchRefusal;
use crate::model::limits::WriteLimits;
use crate::model::names::{self, FieldId, NameRef, SeriesId};
use crate::model::new_series::NewSeries;
use crate::storage::store::FirstIds;

/// Stored ids for the numbers that a batch uses.
#[derive(Default)]
pub(in crate::plane) struct StoredIds {
    /// By index into [`Batch::new_series`].
    pub(in crate::plane) series: Vec<SeriesId>,
    /// By index into [`Batch::fields`].
    pub(in crate::plane) fields: Vec<FieldId>,
}

/// The names of a batch, known and unknown.
pub(super) struct Lookup {
    /// Pages of names that were known at the lookup.
    pub(super) pages: u64,
    /// The id of each series. A new series has [`NEW_SERIES_BASE`] plus its index in `new_series`.
    series: Vec<SeriesId>,
    /// Indices into [`Batch::new_series`], each name once.
    new_series: Vec<usize>,
    fields: Vec<Option<FieldId>>,
    /// Page of the unknown names. Empty if all names are known or the batch is refused earlier.
    pub(super) page: Vec<u8>,
    /// Why the batch is refused, as far as these names tell.
    pub(super) refusal: Option<BatchRefusal>,
}

impl Lookup {
    /// Looks up the names of `batch` in `catalog`, which has the names of `pages` pages with
    /// `bytes` bytes.
    pub(super) fn new(
        batch: &Batch,
        catalog: &Catalog,
        (pages, bytes): (u64, usize),
        limits: &WriteLimits,
    ) -> Self {
        let conflict = batch.conflict.as_ref();
        let mut conflict = conflict.map(|conflict| (conflict.at, conflict.field.as_str()));
        let measurements: Vec<_> =
            batch.measurements.iter().map(|name| catalog.measurement(name)).collect();
        let mut fields = Vec::with_capacity(batch.fields.len());
        for field in &batch.fields {
            let measurement = measurements[field.table as usize];
            let known = measurement.and_then(|index| catalog.find_field(index, &field.name));
            if known.is_some_and(|(_, field_type)| field_type != field.field_type) {
                conflict = Some(first(conflict, (field.first, field.name.as_str())));
            }
            fields.push(known.map(|(id, _)| id));
        }
        let refusal =
            conflict.map(|(_, field)| BatchRefusal::TypeConflict { field: field.to_owned() });
        let (series, new_series, page) = (Vec::new(), Vec::new(), Vec::new());
        let mut lookup = Self { pages, series, new_series, fields, page, refusal };
        lookup.look_up_series(&batch.new_series, catalog);
        if lookup.refusal.is_none() {
            lookup.refusal = lookup.full(batch, catalog, limits);
        }
        if lookup.refusal.is_none() {
            lookup.page = lookup.new_page(batch);
            let is_full = bytes + lookup.page.len() > limits.tenant_names_bytes_max;
            let full = BatchRefusal::TenantFull { bound: "tenant_names_bytes_max" };
            lookup.refusal = (is_full && !lookup.page.is_empty()).then_some(full);
        }
        lookup
    }

    /// Returns the refusal of a batch whose new names would take the tenant past a bound. Names
    /// that exist do not count as new. Example: a tenant with 1,000 series and a bound of 1,000 can
    /// still write all of them.
    fn full(&self, batch: &Batch, catalog: &Catalog, limits: &WriteLimits) -> Option<BatchRefusal> {
        let passes = |known: usize, new: usize, max: usize| new > 0 && known + new > max;
        if passes(catalog.series_count(), self.new_series.len(), limits.tenant_series_max) {
            return Some(BatchRefusal::TenantFull { bound: "tenant_series_max" });
        }
        let new = self.fields.iter().filter(|known| known.is_none()).count();
        let is_full =
            batch.has_excess_fields || passes(catalog.field_count(), new, limits.tenant_fields_max);
        is_full.then_some(BatchRefusal::TenantFull { bound: "tenant_fields_max" })
    }

    fn look_up_series(&mut self, wanted: &NewSeries, catalog: &Catalog) {
        let mut new: HashTable<(u64, u32)> = HashTable::with_capacity(wanted.len());
        self.series.reserve(wanted.len());
        self.new_series.reserve(wanted.len());
        for (index, series) in wanted.iter().enumerate() {
            let known = catalog.find_series(series.name, &series.parts);
            self.series.push(known.unwrap_or_else(|| {
                let hash = catalog.hash_of(series.name);
                let is_same = |(other, number): &(u64, u32)| {
                    hash == *other && {
                        let other = wanted.get(self.new_series[*number as usize]);
                        other.is_some_and(|other| other.name == series.name)
                    }
                };
                let (_, number) = *new
                    .entry(hash, is_same, |(hash, _)| *hash)
                    .or_insert_with(|| {
                        let number = u32::try_from(self.new_series.len());
                        self.new_series.push(index);
                        (hash, number.expect("a batch has few series"))
                    })
                    .get();
                NEW_SERIES_BASE + number
            }));
        }
    }

    /// Returns the names of [`Self::new_series`].
    fn names<'b>(&self, batch: &'b Batch) -> impl Iterator<Item = NameRef<'b>> {
        let new = self.new_series.iter().filter_map(|index| batch.new_series.get(*index));
        new.map(|series| series.name)
    }

    /// Encodes the unknown names as a page.
    fn new_page(&self, batch: &Batch) -> Vec<u8> {
        let mut page = Vec::new();
        if self.new_series.len() == batch.new_series.len() {
            page.extend_from_slice(batch.new_series.names());
        } else {
            self.names(batch).for_each(|name| page.extend_from_slice(name.as_bytes()));
        }
        let mut table_before = None;
        for (field, known) in batch.fields.iter().zip(&self.fields) {
            if known.is_none() {
                let is_another = table_before.replace(field.table) != Some(field.table);
                let measurement = &batch.measurements[field.table as usize];
                names::put_field(&mut page, is_another.then_some(measurement), &field.name);
            }
        }
        page
    }

    /// Returns the number of series and the types of fields on [`Self::page`].
    pub(super) fn new_ids(&self, batch: &Batch) -> (u32, Vec<FieldType>) {
        let series = u32::try_from(self.new_series.len()).expect("a batch has few series");
        let fields = batch.fields.iter().zip(&self.fields);
        let new = fields.filter(|(_, known)| known.is_none());
        (series, new.map(|(field, _)| field.field_type).collect())
    }

    /// Returns true if every name has an id and the batch is not refused.
    pub(super) fn is_complete(&self) -> bool {
        self.refusal.is_none()
            && self.new_series.is_empty()
            && self.fields.iter().all(Option::is_some)
    }

    /// Returns the ids. Missing ids count up from `first`.
    pub(super) fn ids(&self, first: FirstIds) -> StoredIds {
        let mut free = first.field..;
        let field = |known: &Option<FieldId>| known.or_else(|| free.next());
        let series = |id: &SeriesId| match id.checked_sub(NEW_SERIES_BASE) {
            Some(number) => first.series + number,
            None => *id,
        };
        StoredIds {
            series: self.series.iter().map(series).collect(),
            fields: self.fields.iter().map(field).collect::<Option<_>>().expect("ids do not end"),
        }
    }
}

/// Returns the conflict that comes first in the batch.
fn first<'b>(
    earlier: Option<(CellPosition, &'b str)>,
    next: (CellPosition, &'b str),
) -> (CellPosition, &'b str) {
    earlier.filter(|earlier| earlier.0 <= next.0).unwrap_or(next)
}
