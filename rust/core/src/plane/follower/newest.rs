//! The newest samples, lent to a read.

use std::ops::Range;
use std::sync::RwLockReadGuard;

use super::state::{FollowerState, PlaneSnapshot};
use crate::model::catalog::Catalog;
use crate::plane::caches::Caches;
use crate::plane::registry::KnownNames;
use crate::query::latest::Latest;

/// The newest sample of each entity, and all names. While this value lives, no block is applied and
/// no name is noted.
pub(in crate::plane) struct NewestSamples<'f> {
    pub(super) names: RwLockReadGuard<'f, KnownNames>,
    pub(super) state: RwLockReadGuard<'f, FollowerState>,
    pub(super) caches: &'f Caches,
}

impl<'f> NewestSamples<'f> {
    pub(in crate::plane) fn latest(&self) -> &Latest {
        self.state.latest.as_ref().expect("they are there while this lives")
    }

    pub(in crate::plane) fn catalog(&self) -> &Catalog {
        &self.names.catalog
    }

    /// Returns a snapshot as [`super::Follower::snapshot`] does, and keeps only the names lent.
    pub(in crate::plane) fn into_snapshot(
        self,
        range_ns: &Range<i64>,
    ) -> (RwLockReadGuard<'f, KnownNames>, PlaneSnapshot) {
        let snapshot = self.state.snapshot(range_ns, self.caches);
        (self.names, snapshot)
    }
}
