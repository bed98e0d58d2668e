//! Newest samples lent to a read, with the names of their ids.

use std::ops::Range;

use super::measurements::Latest;
use crate::model::catalog::{Catalog, MeasurementIndex};

/// Newest samples, as a read sees them.
pub struct LatestView<'a> {
    /// Newest samples. The read returns the samples within `range_ns`.
    pub latest: &'a Latest,
    /// The names of their ids.
    pub catalog: &'a Catalog,
    /// The window of the read.
    pub range_ns: Range<i64>,
}

impl LatestView<'_> {
    /// Returns the measurements of the answer in byte order: the given measurement, or all.
    #[must_use]
    pub fn measurements(&self, measurement: Option<&str>) -> Vec<MeasurementIndex> {
        match measurement {
            Some(name) => self.catalog.measurement(name).into_iter().collect(),
            None => self.catalog.measurements_by_name(),
        }
    }
}
