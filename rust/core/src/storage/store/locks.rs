//! Locks of a store that processes share. Each is free when it is dropped, or when its process ends.

/// Lock that makes one compactor of all processes the only one of a store. It is free when it is
/// dropped or its process ends. A lock that is a lease may run out before. The later calls of its
/// holder then change no data: they fail with [`crate::model::error::Error::Overtaken`], or are
/// refused as [`super::Store::replace_manifest`] says.
pub trait CompactionLock: Send {}

/// Lock on segments that a newer manifest may no longer name. Readers of such segments share it, or
/// the process that removes them holds it alone. The end of its process frees it at the latest.
pub trait SegmentsLock: Send + Sync {}

/// Keeps other handles from sealing with a data key. The end of its process frees it at the latest,
/// if the store does not keep the key closed for good.
pub trait KeyLock {
    /// Returns the fence of the lease under which the key was locked, or 0 for a store whose
    /// compaction lock is no lease.
    fn fence(&self) -> i64 {
        0
    }
}
