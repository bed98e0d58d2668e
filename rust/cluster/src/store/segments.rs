//! Segments: registered in the database before they are written, and read through the cache.

use std::sync::Arc;

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::store::{NewSegment, SegmentId};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio_postgres::types::ToSql;

use super::ClusterStore;
use crate::cache::{ObjectCache, PIECE_BYTES};
use crate::cluster::Cluster;
use crate::identity::Id;
use crate::objects::{Objects, Upload};
use crate::seen::timeline;

const WRITING: &str = "register a segment";
const READING: &str = "list segments";

/// Registers a segment for the holder of the lease, or for a plane that is being loaded.
const BEGIN: &str = "\
    INSERT INTO segment (plane, id, fence, made_at) SELECT plane, $2, fence, clock_timestamp() FROM plane \
    WHERE plane = $1 AND ($3::int8 = 0 OR fence = $3) RETURNING 1";
const FINISH: &str = "UPDATE segment SET bytes = $3 WHERE plane = $1 AND id = $2 RETURNING 1";
/// `$3` is the fence as above. A compactor that has lost its lease takes segments of the next holder
/// for orphans. So does a compactor whose manifest the new primary lacks: `$4` is its timeline.
const RETIRE: &str = concat!(
    "\
    UPDATE segment SET removed_at = clock_timestamp() WHERE plane = $1 AND id = $2 AND removed_at IS NULL \
    AND ($3::int8 = 0 OR fence <= $3) AND $4 = ",
    timeline!()
);
const LIST: &str = "SELECT id FROM segment WHERE plane = $1 AND removed_at IS NULL";
const LENGTH: &str = "SELECT bytes FROM segment WHERE plane = $1 AND id = $2";

/// Bound on the concurrent fetches of one read.
const FETCHES: usize = 16;

/// Bytes at the end of a segment that are read to open it.
const END_BYTES: u64 = 64 << 10;

struct ObjectWriter {
    cluster: Arc<Cluster>,
    plane: Id,
    id: Id,
    /// `None` once the upload has ended.
    upload: Option<Upload>,
}

impl NewSegment for ObjectWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let upload = self.upload.as_mut().ok_or(Error::Closed)?;
        self.cluster.wait(|_| upload.append(bytes))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let upload = self.upload.take().ok_or(Error::Closed)?;
        let bytes = self.cluster.wait(|_| upload.finish())?;
        let bytes = i64::try_from(bytes).map_err(|_| Error::Corrupt { what: "a segment" })?;
        let finished = self.cluster.change(WRITING, FINISH, &[&self.plane, &self.id, &bytes])?;
        if finished.is_empty() { Err(Error::Overtaken) } else { Ok(()) }
    }

    fn finish_content(self: Box<Self>) -> Result<()> {
        self.finish()
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            // The next compaction finds the segment in the registry.
            drop(self.cluster.wait(|_| async {
                upload.abort().await;
                Ok(())
            }));
        }
    }
}

impl ClusterStore {
    pub(super) fn begin_segment(&self, id: Id) -> Result<Box<dyn NewSegment>> {
        let objects = self.cluster.objects()?;
        let begun = self.cluster.change(WRITING, BEGIN, &[&self.plane, &id, &self.fence()])?;
        if begun.is_empty() {
            return Err(Error::Overtaken);
        }
        let upload = Some(objects.begin(self.plane, id));
        let cluster = Arc::clone(&self.cluster);
        Ok(Box::new(ObjectWriter { cluster, plane: self.plane, id, upload }))
    }

    pub(super) fn segment_part(&self, id: Id, offset: u64, length: usize) -> Result<Vec<u8>> {
        let corrupt = Error::Corrupt { what: "a segment" };
        let Some(end) = offset.checked_add(length as u64) else { return Err(corrupt) };
        let (objects, cache) = (self.cluster.objects()?, self.cluster.cache());
        let read = self.cluster.wait(|_| async move {
            match cache {
                Some(cache) => cached(objects, cache, self.plane, id, offset..end).await,
                // A range must not be empty. One more byte distinguishes a missing object from an
                // empty part.
                None => objects.read(self.plane, id, offset, end.max(offset + 1)).await,
            }
        });
        match read {
            Ok(bytes) => bytes.get(..length).map(<[u8]>::to_vec).ok_or(corrupt),
            // For a range past the end, each server has its own error.
            Err(_) if matches!(self.segment_length(id), Ok(stored) if stored < end) => Err(corrupt),
            Err(error) => Err(error),
        }
    }

    pub(super) fn segment_length(&self, id: Id) -> Result<u64> {
        let rows = self.cluster.read(READING, LENGTH, &[&self.plane, &id])?;
        let bytes: Option<i64> = rows.first().ok_or(Error::Stale)?.get(0);
        bytes.map(super::small::unsigned).ok_or(Error::Stale)
    }

    pub(super) fn registered(&self) -> Result<Vec<SegmentId>> {
        let rows = self.cluster.read(READING, LIST, &[&self.plane])?;
        Ok(rows.iter().map(|row| row.get::<_, Id>(0).0).collect())
    }

    pub(super) fn retire_segment(&self, id: Id) -> Result<()> {
        let (fence, timeline) = (self.fence(), self.timeline_text());
        let parameters: [&(dyn ToSql + Sync); 4] = [&self.plane, &id, &fence, &timeline];
        self.cluster.change("remove a segment", RETIRE, &parameters).map(drop)
    }

    /// Fetches the ends of segments into the cache, in the background.
    pub(super) fn fetch_ends(&self, segments: &[(SegmentId, u64)]) {
        let Some(cache) = self.cluster.shared_cache() else { return };
        let Ok(objects) = self.cluster.objects().cloned() else { return };
        let plane = self.plane;
        let ends: Vec<(Id, u64)> = segments.iter().map(|(id, bytes)| (Id(*id), *bytes)).collect();
        // If a fetch fails, the later read reports the error.
        drop(self.cluster.spawn(move |_| async move {
            let fetches = ends.into_iter().map(|(id, bytes)| {
                let (objects, cache) = (objects.clone(), Arc::clone(&cache));
                async move {
                    let range = bytes.saturating_sub(END_BYTES)..bytes;
                    drop(cached(&objects, &cache, plane, id, range).await);
                }
            });
            stream::iter(fetches).buffer_unordered(FETCHES).collect::<()>().await;
        }));
    }
}

/// Returns the bytes of a segment in `range`, or fewer if the segment ends before. Pieces that are
/// not in the cache are fetched and kept.
async fn cached(
    objects: &Objects,
    cache: &ObjectCache,
    plane: Id,
    id: Id,
    range: std::ops::Range<u64>,
) -> Result<Vec<u8>> {
    let first = range.start / PIECE_BYTES;
    let last = range.end.saturating_sub(1).max(range.start) / PIECE_BYTES;
    let fetches = (first..=last).map(|piece| async move {
        if let Some(bytes) = cache.get(id, piece) {
            return Ok(bytes);
        }
        let from = piece * PIECE_BYTES;
        let bytes = objects.read(plane, id, from, from + PIECE_BYTES).await?;
        cache.put(id, piece, &bytes);
        Ok(bytes)
    });
    let pieces: Vec<Vec<u8>> = stream::iter(fetches).buffered(FETCHES).try_collect().await?;
    let mut bytes = pieces.concat();
    let skipped = usize::try_from(range.start - first * PIECE_BYTES).unwrap_or(usize::MAX);
    bytes.drain(..skipped.min(bytes.len()));
    Ok(bytes)
}
