//! The registry of names: the id of each series and field.
//!
//! Names are looked up in memory, which has every name that was ever registered. Missing names
//! become a page. The store takes the page only if this process knew every page before it. So a
//! name has one id for all processes, and is stored once.

mod lookup;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use self::lookup::Lookup;
pub(super) use self::lookup::StoredIds;
use super::failure::WriteError;
use super::sealed::{SealedStore, open_names, seal_names};
use crate::model::batch::Batch;
use crate::model::catalog::Catalog;
use crate::model::error::{Error, Result};
use crate::model::limits::WriteLimits;
use crate::model::names::NameReader;
use crate::storage::seal::Sealer;
use crate::storage::store::{FirstIds, NamesPage, NewNames};

/// All names of one tenant that this process knows.
///
/// Invariant: the catalog holds the names of the first [`KnownNames::pages`] pages, perhaps some of
/// later pages. A page is noted once, in order. The registry calls only the store and its caches,
/// so a thread with one of its locks waits for no other owner.
pub(super) struct NamesRegistry {
    sealed: Arc<SealedStore>,
    /// Lock to follow pages, or to append and note a page. Taken before `names`.
    order: Mutex<()>,
    names: RwLock<KnownNames>,
}

/// The catalog as of a number of pages.
#[derive(Default)]
pub(super) struct KnownNames {
    /// Pages of names that are in the catalog.
    pages: u64,
    /// Bytes of the names on these pages.
    bytes: usize,
    /// Ids that the store assigns to the names of the next page.
    next_ids: FirstIds,
    pub(super) catalog: Catalog,
}

impl NamesRegistry {
    pub(super) fn new(sealed: Arc<SealedStore>) -> Self {
        Self { sealed, order: Mutex::default(), names: RwLock::default() }
    }

    /// Lends the known names. The caller passes the catalog on instead of calling this again: a
    /// writer that waits in between would block both calls.
    pub(super) fn names(&self) -> RwLockReadGuard<'_, KnownNames> {
        // A poisoned lock is taken over, here and below. A name is noted whole or not at all, and a
        // page that was noted only in part is followed again.
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn names_mut(&self) -> RwLockWriteGuard<'_, KnownNames> {
        self.names.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the pages that any process has appended so far.
    pub(super) fn follow(&self) -> Result<()> {
        self.follow_in(&self.order())
    }

    /// Notes the pages up to number `pages`, unless they are known.
    pub(super) fn follow_until(&self, pages: u64) -> Result<()> {
        if self.names().pages >= pages { Ok(()) } else { self.follow() }
    }

    fn follow_in(&self, _order: &MutexGuard<'_, ()>) -> Result<()> {
        loop {
            let after = self.names().pages;
            let pages = self.sealed.store.names_after(after)?;
            if pages.is_empty() {
                return Ok(());
            }
            pages.iter().try_for_each(|page| self.note_page(page))?;
        }
    }

    fn note_page(&self, page: &NamesPage) -> Result<()> {
        let plain = self.sealed.opened(|sealer| open_names(sealer, page))?;
        let mut reader = NameReader::new(&plain);
        let mut names = self.names_mut();
        for id in &page.series {
            names.catalog.insert_series(*id, reader.series()?);
        }
        let mut measurement = None;
        for (id, field_type) in &page.fields {
            let (another, field) = reader.field()?;
            measurement =
                another.map(|name| names.catalog.intern_measurement(name)).or(measurement);
            let measurement = measurement.ok_or(Error::Corrupt { what: "a page of names" })?;
            names.catalog.insert_field(*id, measurement, field, *field_type);
        }
        names.pages = page.sequence;
        let fields: Vec<_> = page.fields.iter().map(|(id, _)| *id).collect();
        names.next_ids = names.next_ids.beyond(&page.series, &fields);
        names.bytes += plain.len();
        Ok(())
    }

    /// Finds the stored id of every series and field of `batch`, and registers new names. A type
    /// conflict, or names beyond the tenant's bounds, refuse the batch before a name is registered.
    pub(super) fn resolve(
        &self,
        batch: &mut Batch,
        limits: &WriteLimits,
    ) -> Result<StoredIds, WriteError> {
        let mut lookup = self.look_up(batch, limits);
        if lookup.is_complete() {
            let ids = lookup.ids(FirstIds::default());
            return Ok(if batch.new_series.is_empty() { ids } else { self.note(batch, ids, None) });
        }
        let order = self.order();
        let first = self.register(&order, batch, &mut lookup, limits)?;
        let ids = lookup.ids(first.unwrap_or_default());
        Ok(self.note(batch, ids, first.map(|_| &lookup)))
    }

    fn look_up(&self, batch: &Batch, limits: &WriteLimits) -> Lookup {
        let names = self.names();
        Lookup::new(batch, &names.catalog, (names.pages, names.bytes), limits)
    }

    /// Notes names and raw keys that were not known here, and the page of `stored`.
    fn note(&self, batch: &mut Batch, ids: StoredIds, stored: Option<&Lookup>) -> StoredIds {
        let mut names = self.names_mut();
        let measurements: Vec<_> =
            batch.measurements.iter().map(|name| names.catalog.intern_measurement(name)).collect();
        for (field, id) in batch.fields.iter().zip(&ids.fields) {
            let measurement = measurements[field.table as usize];
            names.catalog.insert_field(*id, measurement, &field.name, field.field_type);
        }
        let mut raw_keys = self.sealed.caches.raw_keys_mut();
        let new = std::mem::take(&mut batch.new_series);
        for (series, id) in new.iter().zip(&ids.series) {
            names.catalog.insert_parts(*id, series.name, &series.parts);
            raw_keys.insert(series.raw_key, *id);
        }
        if let Some(stored) = stored {
            names.pages = stored.pages + 1;
            names.bytes += stored.page.len();
            names.next_ids = names.next_ids.beyond(&ids.series, &ids.fields);
        }
        ids
    }

    /// Stores the names that `lookup` lacks. Returns `None` if other processes stored all of them
    /// in the meantime; `lookup` then knows their ids.
    ///
    /// Only a process that knows all names refuses a batch. Otherwise the field in the refusal
    /// would depend on the names that this process happens to know. The store takes no page that
    /// would pass a bound, because it takes a page only from a process that has counted all others.
    fn register(
        &self,
        order: &MutexGuard<'_, ()>,
        batch: &Batch,
        lookup: &mut Lookup,
        limits: &WriteLimits,
    ) -> Result<Option<FirstIds>, WriteError> {
        loop {
            if lookup.pages != self.names().pages {
                *lookup = self.look_up(batch, limits);
            }
            if lookup.is_complete() {
                return Ok(None);
            }
            if lookup.refusal.is_none() {
                let expected = self.names().next_ids;
                let sealer = self.sealed.sealing();
                let new = new_names(&sealer, batch, lookup, expected)?;
                let stored = self.sealed.store.append_names(lookup.pages, &new)?;
                drop(sealer);
                match stored {
                    None => {}
                    Some(first) if first == expected => return Ok(Some(first)),
                    Some(_) => return Err(Error::Corrupt { what: "the next id of a name" }.into()),
                }
            }
            self.follow_in(order)?;
            if lookup.pages == self.names().pages
                && let Some(refusal) = lookup.refusal.take()
            {
                return Err(refusal.into());
            }
        }
    }
}

/// Returns the page of the names that `lookup` lacks, as it is stored under ids from `first` on.
fn new_names(sealer: &Sealer, batch: &Batch, lookup: &Lookup, first: FirstIds) -> Result<NewNames> {
    let (series, fields) = lookup.new_ids(batch);
    let new = NewNames { series, fields, sealed_names: Vec::new() };
    first.after(&new)?;
    let place = NamesPage::new(lookup.pages + 1, first, &new).place();
    let sealed_names = seal_names(sealer, &place, &lookup.page)?;
    Ok(NewNames { sealed_names, ..new })
}
