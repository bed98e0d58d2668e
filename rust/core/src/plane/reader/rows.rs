//! Rows of a snapshot, from the segments and blocks that overlap, handed to a collector.

use super::Reader;
use crate::codec::BlockReader;
use crate::model::catalog::MeasurementIndex;
use crate::model::error::Result;
use crate::plane::caches::recent::RecentTables;
use crate::plane::follower::PlaneSnapshot;
use crate::query::{Collector, Selection};
use crate::storage::tombstone::Origin;

/// Bytes of recent blocks after which a read joins no more: joining them takes some milliseconds.
const JOINED_BYTES_PER_READ: usize = 1 << 20;

/// Blocks of the log that are read before the read checks whether it has enough.
const LOG_BLOCKS_PER_LOOK: usize = 32;

impl Reader {
    /// Joins recent blocks for later reads, a few at a time, unless another read is joining.
    pub(super) fn join_recent(&self) {
        let caches = &self.sealed.caches;
        let Ok(_joining) = caches.joining.try_lock() else { return };
        let mut bytes = 0;
        while bytes < JOINED_BYTES_PER_READ {
            let Some(parts) = caches.recent().joinable() else { return };
            bytes += parts.bytes();
            let names = self.registry.names();
            let key = |id| match names.catalog.series(id) {
                Some(series) => (series.measurement, series.representative(id)),
                None => (MeasurementIndex::MAX, id),
            };
            let joining = parts.joining(key);
            drop(names);
            let joined = joining.finish();
            caches.recent().replace(&parts, joined);
        }
    }

    /// Hands the wanted rows of a snapshot to `collector`, in write order within each entity, until
    /// it is full.
    pub(super) fn collect(
        &self,
        snapshot: &PlaneSnapshot,
        part: &Selection,
        collector: &mut impl Collector,
    ) -> Result<()> {
        let times_ns = part.times_ns();
        if part.is_empty() || times_ns.is_empty() {
            return Ok(());
        }
        // Kept hours come first: their rows were written before the rows that are stored.
        if collector.hourly_statistics().is_some() {
            for entry in snapshot.manifest.hours.segments_in(times_ns) {
                let open = self.open_segment(entry)?;
                self.sealed.collect_kept_hours(&open, part, collector)?;
            }
        }
        for entry in snapshot.segments_in(times_ns) {
            self.sealed.collect(&*self.open_segment(entry)?, part, collector)?;
        }
        for sequences in snapshot.stored.chunks(LOG_BLOCKS_PER_LOOK) {
            if !collector.is_full() {
                self.sealed.visit_log(sequences, |sequence, plain| {
                    let source = Origin::Log(sequence);
                    let block = BlockReader::open(plain)?;
                    part.collect((&source, &block), times_ns, None, collector)
                })?;
            }
        }
        for table in snapshot.recent.iter().flat_map(RecentTables::indexed) {
            if !collector.is_full() {
                part.collect_decoded(table, times_ns, collector);
            }
        }
        Ok(())
    }
}
