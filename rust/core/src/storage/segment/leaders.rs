//! Where the rows of each series belong.

use crate::model::batch::Table;
use crate::model::catalog::{Catalog, Series};
use crate::model::error::{Error, Result};
use crate::model::names::SeriesId;

/// Where the rows of each series belong, as the catalog has it.
pub struct Leaders {
    /// By series id: rank of its measurement among the names, and its entity's leader.
    of_series: Vec<Option<(u32, SeriesId)>>,
}

impl Leaders {
    /// Those of every series known to `catalog`.
    #[must_use]
    pub fn new(catalog: &Catalog) -> Self {
        let order = catalog.measurements_by_name();
        let mut ranks = vec![0; order.len()];
        for (rank, measurement) in (0..).zip(order) {
            ranks[measurement as usize] = rank;
        }
        let place = |(id, series): (SeriesId, &Series)| {
            let leader = series.entity.map_or(id, |entity| catalog.entity(entity).leader);
            (id, (ranks[series.measurement as usize], leader))
        };
        let mut of_series = Vec::new();
        for (id, place) in catalog.all_series().map(place) {
            of_series.resize((id as usize + 1).max(of_series.len()), None);
            of_series[id as usize] = Some(place);
        }
        Self { of_series }
    }

    #[inline]
    fn of(&self, series: SeriesId) -> Result<(u32, SeriesId)> {
        match self.of_series.get(series as usize) {
            Some(Some(place)) => Ok(*place),
            _ => Err(Error::Corrupt { what: "a series without a name" }),
        }
    }

    /// The leader of a series' entity.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a series that has no name.
    #[inline]
    pub fn leader(&self, series: SeriesId) -> Result<SeriesId> {
        Ok(self.of(series)?.1)
    }

    /// Rank of the measurement of a series.
    ///
    /// # Errors
    /// As [`Self::leader`].
    pub fn rank_of(&self, series: SeriesId) -> Result<u32> {
        Ok(self.of(series)?.0)
    }

    /// Rank of the measurement of a table, by its first row; 0 where there is none.
    ///
    /// # Errors
    /// As [`Self::leader`].
    pub fn rank(&self, table: &Table) -> Result<u32> {
        table.series.first().map_or(Ok(0), |series| self.rank_of(*series))
    }
}
