//! Names on their way to an id.
//!
//! Names are looked up in memory, where all that were ever registered lie. Those that are missing
//! become a page, which the store takes only if this process knew every page before it: so a name
//! has one id, whoever registers it, and is stored once.

use hashbrown::HashTable;

use super::write::WriteResult;
use super::{Names, Plane};
use crate::batch::{Batch, CellPosition, FieldId, NEW_SERIES_BASE, NewSeries, SeriesId};
use crate::fault::Refusal;
use crate::names;
use crate::seal::Kind;
use crate::store::{FirstIds, NewNames};

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
}

impl Plane {
    /// Gives every series and field of `batch` its stored id, registering what is new. Type
    /// conflicts refuse the batch before any name is registered (E1 to E7).
    pub(super) fn resolve(&self, batch: &mut Batch) -> WriteResult<Ids> {
        let mut found = Found::look_up(batch, &self.names())?;
        if found.is_complete() && batch.new_series.is_empty() {
            return Ok(found.ids(FirstIds::default()));
        }
        if found.is_complete() {
            return Ok(self.note(batch, found.ids(FirstIds::default())));
        }
        let _order = self.naming();
        let first = self.register(batch, &mut found)?;
        let ids = self.note(batch, found.ids(first.unwrap_or_default()));
        if first.is_some() {
            self.names_mut().pages = found.pages + 1;
        }
        Ok(ids)
    }

    /// Notes names and spellings that were not known here.
    fn note(&self, batch: &mut Batch, ids: Ids) -> Ids {
        let mut names = self.names_mut();
        for (field, id) in batch.fields.iter().zip(&ids.fields) {
            let measurement = &batch.measurements[field.table as usize];
            names.catalog.insert_field(*id, measurement, &field.name, field.field_type);
        }
        for (series, id) in std::mem::take(&mut batch.new_series).into_iter().zip(&ids.series) {
            names.catalog.insert_series(*id, series.name);
            names.spellings.insert(series.spelling, *id);
        }
        ids
    }

    /// Stores what is not `found`, which learns what others stored meanwhile. `None` where they
    /// stored all of it.
    fn register(&self, batch: &Batch, found: &mut Found) -> WriteResult<Option<FirstIds>> {
        loop {
            if found.pages != self.names().pages {
                *found = Found::look_up(batch, &self.names())?;
            }
            if found.is_complete() {
                return Ok(None);
            }
            let new = self.new_names(batch, found)?;
            let first = self.store.append_names(found.pages, &new)?;
            if first.is_some() {
                return Ok(first);
            }
            self.follow_names()?;
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
        for (field, known) in batch.fields.iter().zip(&found.fields) {
            if known.is_none() {
                let measurement = &batch.measurements[field.table as usize];
                page.extend(names::encode_field(measurement, &field.name));
                new.fields.push(field.field_type);
            }
        }
        new.sealed_names = self.sealer.seal(Kind::Names, &page)?;
        Ok(new)
    }
}

impl Found {
    /// What `names` has of the names of `batch`.
    fn look_up(batch: &Batch, names: &Names) -> Result<Self, Refusal> {
        let conflict = batch.conflict.as_ref();
        let mut conflict = conflict.map(|conflict| (conflict.at, conflict.field.as_str()));
        let mut fields = Vec::with_capacity(batch.fields.len());
        for field in &batch.fields {
            let measurement = names.catalog.measurement(&batch.measurements[field.table as usize]);
            let known = measurement.and_then(|at| names.catalog.find_field(at, &field.name));
            if known.is_some_and(|(_, field_type)| field_type != field.field_type) {
                conflict = Some(first(conflict, (field.first, field.name.as_str())));
            }
            fields.push(known.map(|(id, _)| id));
        }
        if let Some((_, field)) = conflict {
            return Err(Refusal::TypeConflict { field: field.to_owned() });
        }
        let mut found =
            Self { pages: names.pages, series: Vec::new(), new_series: Vec::new(), fields };
        found.look_up_series(&batch.new_series, names);
        Ok(found)
    }

    fn look_up_series(&mut self, wanted: &[NewSeries], names: &Names) {
        let mut new: HashTable<(u64, u32)> = HashTable::with_capacity(wanted.len());
        self.series.reserve(wanted.len());
        for (at, series) in wanted.iter().enumerate() {
            let hash = names.catalog.hash_of(&series.name);
            let known = names.catalog.find_series(hash, &series.name);
            self.series.push(known.unwrap_or_else(|| {
                let spells = |(other, number): &(u64, u32)| {
                    hash == *other && wanted[self.new_series[*number as usize]].name == series.name
                };
                let (_, number) = *new
                    .entry(hash, spells, |(hash, _)| *hash)
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

    fn is_complete(&self) -> bool {
        self.new_series.is_empty() && self.fields.iter().all(Option::is_some)
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
