//! Newest samples lent to a read, with what they mean.

use std::ops::Range;

use super::measurements::Latest;
use crate::model::catalog::{Catalog, MeasurementIndex};

/// Newest samples as of a read.
pub struct LatestView<'a> {
    /// Newest samples; those within `range_ns` answer the read.
    pub latest: &'a Latest,
    /// The names of their ids.
    pub catalog: &'a Catalog,
    /// The window of the read.
    pub range_ns: Range<i64>,
}

impl LatestView<'_> {
    /// The measurements to answer with, in byte order: the one asked for, or all.
    #[must_use]
    pub fn measurements(&self, measurement: Option<&str>) -> Vec<MeasurementIndex> {
        match measurement {
            Some(name) => self.catalog.measurement(name).into_iter().collect(),
            None => self.catalog.measurements_by_name(),
        }
    }
}
