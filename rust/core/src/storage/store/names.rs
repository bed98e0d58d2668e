//! Pages of names, and the ids of names.

use crate::model::batch::{FieldType, NEW_SERIES_BASE};
use crate::model::error::{Error, Result};
use crate::model::names::{FieldId, SeriesId};

/// Names that have no id yet, for a new page.
#[derive(Clone, Debug, Default)]
pub struct NewNames {
    /// Number of series.
    pub series: u32,
    /// Types of the fields.
    pub fields: Vec<FieldType>,
    /// The sealed names: series first, then fields.
    pub sealed_names: Vec<u8>,
}

/// First ids of a page of names. The ids of its series count up from one number, and the ids of its
/// fields from the other. Example: with the first ids 7 and 3, two series get the ids 7 and 8, and
/// a field gets 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstIds {
    /// Id of the first series.
    pub series: SeriesId,
    /// Id of the first field.
    pub field: FieldId,
}

/// A stored page of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamesPage {
    /// Position in the order of registration, counted from 1.
    pub sequence: u64,
    /// Ids of the series on the page, in order.
    pub series: Vec<SeriesId>,
    /// Ids and types of the fields on the page, in order.
    pub fields: Vec<(FieldId, FieldType)>,
    /// The sealed names, series first.
    pub sealed_names: Vec<u8>,
}

impl FirstIds {
    /// Returns the first ids of the next page, if this page has `names`.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if `names` do not fit below the greatest id.
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

    /// Returns first ids that are at least these, and greater than all given ids.
    #[must_use]
    pub fn beyond(self, series: &[SeriesId], fields: &[FieldId]) -> Self {
        let next = |first: u32, ids: &[u32]| ids.iter().fold(first, |next, id| next.max(id + 1));
        Self { series: next(self.series, series), field: next(self.field, fields) }
    }
}

impl NamesPage {
    /// Makes the page of these names, with ids from `first` on.
    #[must_use]
    pub fn new(sequence: u64, first: FirstIds, names: &NewNames) -> Self {
        Self {
            sequence,
            series: (first.series..first.series + names.series).collect(),
            fields: (first.field..).zip(names.fields.iter().copied()).collect(),
            sealed_names: names.sealed_names.clone(),
        }
    }

    /// Returns the place that the names of the page are sealed for.
    ///
    /// # Panics
    /// If the page has more than 2^32 names, which no tenant has.
    #[must_use]
    pub fn place(&self) -> Vec<u8> {
        [self.sequence.to_le_bytes().as_slice(), &self.ids()].concat()
    }

    /// Encodes the numbers of series and fields, their ids, and the types of the fields.
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
