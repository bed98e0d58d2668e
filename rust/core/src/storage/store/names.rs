//! Pages of names, and the ids that names get.

use crate::model::batch::{FieldType, NEW_SERIES_BASE};
use crate::model::error::{Error, Result};
use crate::model::names::{FieldId, SeriesId};

/// Names that have no id yet, to become a page.
#[derive(Clone, Debug, Default)]
pub struct NewNames {
    /// Number of series.
    pub series: u32,
    /// Types of the fields.
    pub fields: Vec<FieldType>,
    /// The names themselves, sealed: series first, then fields.
    pub sealed_names: Vec<u8>,
}

/// Ids given to a page of names: those of its series count up from one number, those of its fields
/// from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstIds {
    /// Id of the first series.
    pub series: SeriesId,
    /// Id of the first field.
    pub field: FieldId,
}

/// One stored page of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamesPage {
    /// Position in the order of registration, from 1.
    pub sequence: u64,
    /// Ids of the series on the page, in order.
    pub series: Vec<SeriesId>,
    /// Ids and types of the fields on the page, in order.
    pub fields: Vec<(FieldId, FieldType)>,
    /// The sealed names, series first.
    pub sealed_names: Vec<u8>,
}

impl FirstIds {
    /// First ids of the page after this one, which has `names`.
    ///
    /// # Errors
    /// [`Error::Invalid`] where `names` do not fit below the limit.
    pub fn after(self, names: &NewNames) -> Result<Self> {
        let next = |first: u32, count: usize| {
            let next = first.checked_add(u32::try_from(count).ok()?);
            next.filter(|next| *next <= NEW_SERIES_BASE)
        };
        let series = usize::try_from(names.series).ok().and_then(|count| next(self.series, count));
        let field = next(self.field, names.fields.len());
        let next = series.zip(field).map(|(series, field)| Self { series, field });
        let message = "a tenant has at most 2,147,483,648 series and as many fields".to_owned();
        next.ok_or(Error::Invalid { message })
    }

    /// The first ids that are neither below these nor among those given.
    #[must_use]
    pub fn beyond(self, series: &[SeriesId], fields: &[FieldId]) -> Self {
        let next = |first: u32, ids: &[u32]| ids.iter().fold(first, |next, id| next.max(id + 1));
        Self { series: next(self.series, series), field: next(self.field, fields) }
    }
}

impl NamesPage {
    /// The page of these names under ids from `first` on.
    #[must_use]
    pub fn new(sequence: u64, first: FirstIds, names: &NewNames) -> Self {
        Self {
            sequence,
            series: (first.series..first.series + names.series).collect(),
            fields: (first.field..).zip(names.fields.iter().copied()).collect(),
            sealed_names: names.sealed_names.clone(),
        }
    }

    /// The place that its names are sealed for.
    ///
    /// # Panics
    /// For more than 2^32 names, which no tenant has.
    #[must_use]
    pub fn place(&self) -> Vec<u8> {
        [self.sequence.to_le_bytes().as_slice(), &self.ids()].concat()
    }

    /// Numbers of its names, their ids, and the types of the fields.
    pub(super) fn ids(&self) -> Vec<u8> {
        let count = |count: usize| u32::try_from(count).expect("a page has fewer than 2^32 names");
        let mut bytes = Vec::with_capacity(8 + 4 * self.series.len() + 5 * self.fields.len());
        bytes.extend(count(self.series.len()).to_le_bytes());
        bytes.extend(count(self.fields.len()).to_le_bytes());
        bytes.extend(self.series.iter().flat_map(|id| id.to_le_bytes()));
        for (id, field_type) in &self.fields {
            bytes.extend(id.to_le_bytes());
            bytes.push(field_type.code());
        }
        bytes
    }
}
