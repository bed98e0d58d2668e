//! Series that a body names by different bytes than before. Examples: labels in another order, an
//! attribute of the resource instead of the data point, a rule that leads to the same names.

use hashbrown::HashTable;

use crate::model::batch::NEW_SERIES_BASE;
use crate::model::catalog::Catalog;
use crate::wire::series::SeriesFinder;

/// Series of the new raw keys of a batch, so that all values of one series and time become one row.
pub(super) struct SeriesByName<'c> {
    catalog: &'c Catalog,
    /// By index of the new raw key: the stored series, or the number of the first new raw key with
    /// the same name.
    series: Vec<u32>,
    /// First raw keys of names that are not stored, by hash of the name and number.
    first_by_name: HashTable<(u64, u32)>,
}

impl<'c> SeriesByName<'c> {
    pub(super) fn new(catalog: &'c Catalog) -> Self {
        Self { catalog, series: Vec::new(), first_by_name: HashTable::new() }
    }

    /// Returns the series of a raw key under which `found` was found.
    #[inline]
    pub(super) fn series_of(&self, found: u32) -> u32 {
        found.checked_sub(NEW_SERIES_BASE).map_or(found, |index| self.series[index as usize])
    }

    /// Returns the series of the raw key that was last added to `finder`, under `number`.
    pub(super) fn add(&mut self, finder: &SeriesFinder<'_>, number: u32) -> u32 {
        let added = finder.get(number);
        let known = self.catalog.find_series(added.name, &added.parts);
        let series = known.unwrap_or_else(|| {
            let hash = self.catalog.hash_of(added.name);
            let is_same =
                |&(other, first): &_| other == hash && finder.get(first).name == added.name;
            let first = self.first_by_name.entry(hash, is_same, |(hash, _)| *hash);
            first.or_insert((hash, number)).get().1
        });
        self.series.push(series);
        series
    }
}
