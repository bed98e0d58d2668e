//! The sort key of each series: the measurement and the representative series of its entity.

use crate::model::batch::Table;
use crate::model::catalog::{Catalog, Series};
use crate::model::error::{Error, Result};
use crate::model::names::SeriesId;

/// Sort keys of the series that a catalog knows.
pub struct Representatives {
    /// By series id: rank of the measurement among the names of measurements, and representative
    /// series of the entity.
    of_series: Vec<Option<(u32, SeriesId)>>,
}

impl Representatives {
    /// Computes the keys of every series known to `catalog`.
    #[must_use]
    pub fn new(catalog: &Catalog) -> Self {
        let order = catalog.measurements_by_name();
        let mut ranks = vec![0; order.len()];
        for (rank, measurement) in (0..).zip(order) {
            ranks[measurement as usize] = rank;
        }
        let key = |(id, series): (SeriesId, Series<'_>)| {
            (id, (ranks[series.measurement as usize], series.representative(id)))
        };
        let mut of_series = Vec::new();
        for (id, key) in catalog.all_series().map(key) {
            of_series.resize((id as usize + 1).max(of_series.len()), None);
            of_series[id as usize] = Some(key);
        }
        Self { of_series }
    }

    #[inline]
    fn of(&self, series: SeriesId) -> Result<(u32, SeriesId)> {
        match self.of_series.get(series as usize) {
            Some(Some(key)) => Ok(*key),
            _ => Err(Error::Corrupt { what: "a series without a name" }),
        }
    }

    /// Returns the representative series of the entity that a series belongs to.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the series has no name.
    #[inline]
    pub fn representative(&self, series: SeriesId) -> Result<SeriesId> {
        Ok(self.of(series)?.1)
    }

    /// Returns the rank of the measurement of a series.
    ///
    /// # Errors
    /// Returns the errors of [`Self::representative`].
    pub fn rank_of(&self, series: SeriesId) -> Result<u32> {
        Ok(self.of(series)?.0)
    }

    /// Returns the rank of the measurement of a table, taken from its first row, or 0 if the table
    /// is empty.
    ///
    /// # Errors
    /// Returns the errors of [`Self::representative`].
    pub fn rank(&self, table: &Table) -> Result<u32> {
        table.series.first().map_or(Ok(0), |series| self.rank_of(*series))
    }
}
