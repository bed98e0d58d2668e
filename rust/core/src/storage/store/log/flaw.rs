//! Parts of the durable path that a test leaves out, to see that its absence is found. A release
//! build has all of them and no way to leave one out.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A part that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Part {
    /// The sync of a group.
    GroupSync = 1,
    /// A failed sync is one for the caller.
    SyncError,
    /// A failed sync ends the use of the handle.
    Poison,
    /// The file before is synced before the next one has a name.
    RotationSync,
    /// A new file is synced before it has its name.
    FileSync,
    /// The name of a new file is synced before it is used.
    FileName,
    /// A rotation that was cut off is ended.
    RotationEnd,
    /// The checksum of a frame's head.
    HeadChecksum,
    /// The checksum of a frame's body.
    BodyChecksum,
    /// The checksum of the head before, and the sequence.
    Chain,
    /// A frame's own position.
    Position,
    /// Recovery clears all that follows the end.
    Clearing,
    /// Recovery writes once more all that may not be durable.
    Rewriting,
    /// Recovery syncs all that it has written.
    RecoverySync,
    /// Names are synced by recovery.
    RecoveryNames,
    /// A write says before how far it goes.
    Reservation,
    /// A reader settles what a dead writer has left.
    ReaderSettles,
    /// A writer settles what a dead one has left.
    WriterSettles,
    /// A write that was cut short is none.
    WholeWrite,
    /// A file goes once nothing in it is needed, and no sooner.
    Needed,
    /// Blocks go after the manifest that has them is durable.
    ManifestFirst,
    /// The content of a segment is synced.
    SegmentContent,
    /// The name of a segment is synced.
    SegmentName,
    /// LMDB syncs its commits.
    TableSync,
    /// It is told before a head page of LMDB is written that it may not be on disk.
    HeadDoubt,
    /// A head page of LMDB that may not be on disk is written once more before it is relied on.
    HeadAgain,
    /// That write is synced.
    HeadSync,
    /// A head page of LMDB that nobody was told of is written over before the next commit.
    HeadUndone,
    /// A head page of LMDB whose sync has failed stays in doubt.
    HeadTrusted,
    /// Blocks go on after the last one, whoever wrote it.
    WriterLooks,
    /// The checksum of a file's head.
    FileHeadChecksum,
    /// Remains of a creation that was cut off are removed before the next one.
    NewRemoved,
    /// The first file goes on behind a compacted block.
    FirstFile,
    /// A bad frame is damage where another file follows.
    Gap,
    /// A file begins where the one before it ends.
    Join,
    /// A bad frame is damage where a later head says that more was durable.
    LaterHeads,
    /// The position up to which the shared file says all to have been durable counts.
    Witness,
    /// A sync covers what was written before it, and no more.
    WrittenBefore,
    /// Others can tell that another file is about to become the live one.
    RotationMark,
    /// Reads show nothing that a failed sync has left in doubt.
    InDoubt,
    /// Reads look for a commit of LMDB whose process died before it told of it.
    DeadCommit,
    /// One compactor at a time.
    CompactionLock,
    /// A manifest replaces the one that it was made from.
    Generation,
    /// A compactor looks anew once it has the lock.
    LookLocked,
    /// Segments that no manifest names are removed.
    Orphans,
    /// Segments are removed after the manifest that names others is durable.
    RemovedLast,
    /// The key of a plane is written after all else.
    KeyLast,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 47] = [
        Self::GroupSync,
        Self::SyncError,
        Self::Poison,
        Self::RotationSync,
        Self::FileSync,
        Self::FileName,
        Self::RotationEnd,
        Self::HeadChecksum,
        Self::BodyChecksum,
        Self::Chain,
        Self::Position,
        Self::Clearing,
        Self::Rewriting,
        Self::RecoverySync,
        Self::RecoveryNames,
        Self::Reservation,
        Self::ReaderSettles,
        Self::WriterSettles,
        Self::WholeWrite,
        Self::Needed,
        Self::ManifestFirst,
        Self::SegmentContent,
        Self::SegmentName,
        Self::TableSync,
        Self::HeadDoubt,
        Self::HeadAgain,
        Self::HeadSync,
        Self::HeadUndone,
        Self::HeadTrusted,
        Self::WriterLooks,
        Self::FileHeadChecksum,
        Self::NewRemoved,
        Self::FirstFile,
        Self::Gap,
        Self::Join,
        Self::LaterHeads,
        Self::Witness,
        Self::WrittenBefore,
        Self::RotationMark,
        Self::InDoubt,
        Self::DeadCommit,
        Self::CompactionLock,
        Self::Generation,
        Self::LookLocked,
        Self::Orphans,
        Self::RemovedLast,
        Self::KeyLast,
    ];
}

#[cfg(debug_assertions)]
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);
#[cfg(debug_assertions)]
static SMALL_FILES: AtomicBool = AtomicBool::new(false);

#[cfg(debug_assertions)]
fn bit_of(part: Part) -> u64 {
    1 << part as u8
}

/// Leaves a part out from now on, in all of this process.
#[cfg(debug_assertions)]
pub fn leave_out(part: Part) {
    LEFT_OUT.fetch_or(bit_of(part), Ordering::Relaxed);
}

/// Ends files of a log after a few frames from now on, in all of this process, and lets small files
/// of LMDB be written anew.
#[cfg(debug_assertions)]
pub fn end_files_soon() {
    SMALL_FILES.store(true, Ordering::Relaxed);
}

#[cfg(debug_assertions)]
pub(crate) fn has(part: Part) -> bool {
    LEFT_OUT.load(Ordering::Relaxed) & bit_of(part) == 0
}

/// A bound, or the one of a test.
#[cfg(debug_assertions)]
pub(in crate::storage::store) fn bound(bytes: u64, of_test: u64) -> u64 {
    if SMALL_FILES.load(Ordering::Relaxed) { of_test } else { bytes }
}

#[cfg(not(debug_assertions))]
pub(crate) const fn has(_part: Part) -> bool {
    true
}

#[cfg(not(debug_assertions))]
pub(in crate::storage::store) const fn bound(bytes: u64, _of_test: u64) -> u64 {
    bytes
}
