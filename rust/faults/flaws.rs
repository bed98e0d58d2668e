//! Flaws of the durable path: each flaw edits the core's sources and leaves out a part of the path.
//! The fault suite must find each flaw. The build script makes the edits in a copy of the sources,
//! and the suite names the flaws.

/// Marks around the part of a text that an edit replaces.
pub(crate) const OPEN: char = '⟦';
/// The closing mark of the pair with [`OPEN`].
pub(crate) const CLOSE: char = '⟧';

/// A part of the durable path that is left out.
pub(crate) struct Flaw {
    /// Name of the part.
    pub(crate) name: &'static str,
    /// Edits that leave the part out, all made together.
    pub(crate) edits: &'static [Edit],
}

/// An expression in a source, and the expression that replaces it. Example: `if ⟦is_known⟧ {` and
/// `true` turn `if is_known {` into `if true {`.
pub(crate) struct Edit {
    /// Path of a file, below the sources of the core.
    pub(crate) file: &'static str,
    /// A text that the file has once, with marks around the expression.
    pub(crate) at: &'static str,
    /// The expression that replaces the marked expression.
    pub(crate) instead: &'static str,
}

const fn edit(file: &'static str, at: &'static str, instead: &'static str) -> Edit {
    Edit { file, at, instead }
}

const APPEND: &str = "storage/store/log/append.rs";
const COMPACTOR: &str = "plane/compactor/mod.rs";
const DIRECTORY: &str = "storage/store/directory.rs";
const ENVIRONMENT: &str = "storage/store/lmdb/environment.rs";
const FILE: &str = "storage/store/log/file.rs";
const FRAME: &str = "storage/store/log/frame.rs";
const HANDLE: &str = "storage/store/log/handle.rs";
const HEAD_PAGES: &str = "storage/store/lmdb/head_pages.rs";
const RECOVERY: &str = "storage/store/log/recovery.rs";
const ROTATION: &str = "storage/store/log/rotation.rs";
const SEGMENT_FILES: &str = "storage/store/segment_files.rs";
const SHARED: &str = "storage/store/log/shared.rs";
const STORE: &str = "storage/store/lmdb/store.rs";
const VISIBLE: &str = "storage/store/log/visible.rs";

/// Bounds that are small in the copy. Rotations and removals need log files that end soon.
pub(crate) const SMALL_BOUNDS: [Edit; 2] = [
    edit(APPEND, "const FILE_BYTES_MAX: u64 = ⟦32 << 20⟧;", "1 << 10"),
    edit(ROTATION, "const COMPACTED_BYTES_MAX: u64 = ⟦64 << 10⟧;", "1"),
];

/// All flaws.
pub(crate) const FLAWS: [Flaw; 48] = [
    // The sync of a group.
    Flaw { name: "GroupSync", edits: &[edit(HANDLE, "let synced = ⟦file.sync()⟧;", "Ok(())")] },
    // A failed sync is reported to the caller.
    Flaw {
        name: "SyncError",
        edits: &[
            edit(HANDLE, "if ⟦synced.is_ok()⟧ {", "true"),
            edit(HANDLE, "        ⟦synced⟧\n    }", "Ok(())"),
        ],
    },
    // A failed sync ends the use of the handle.
    Flaw {
        name: "Poison",
        edits: &[
            edit(HANDLE, "⟦self.shared.note_failure()⟧;", "()"),
            edit(
                HANDLE,
                "note_failure();\n            ⟦self.is_poisoned.store(true, Ordering::Release)⟧;",
                "()",
            ),
        ],
    },
    // A read syncs in its turn, so no other sync succeeds before it has told of a failure.
    Flaw {
        name: "ReadTurn",
        edits: &[
            edit(
                VISIBLE,
                "let syncing = ⟦self.shared.lock_syncing()?⟧;",
                "return Ok(drop(self.sync_written()))",
            ),
            edit(SHARED, "⟦self.page().syncing_now.load(Ordering::Acquire) != 0⟧", "false"),
        ],
    },
    // The old file is synced before the next file has a name.
    Flaw {
        name: "RotationSync",
        edits: &[edit(ROTATION, "if ⟦self.shared.synced() < self.shared.written()⟧", "false")],
    },
    // A new file is synced before it has its name.
    Flaw {
        name: "FileSync",
        edits: &[edit(FILE, "⟦file.sync_data()?⟧;\n            Ok(file)", "()")],
    },
    // The name of a new file is synced before it is used.
    Flaw {
        name: "FileName",
        edits: &[edit(FILE, "⟦sync_directory(directory)?⟧;\n        Ok(Self", "()")],
    },
    // A rotation that was cut off is completed.
    Flaw {
        name: "RotationEnd",
        edits: &[edit(ROTATION, "if ⟦!self.shared.is_rotating()⟧ {", "true")],
    },
    // The checksum of a frame's head.
    Flaw {
        name: "HeadChecksum", edits: &[edit(FRAME, "if ⟦checksum != expected⟧ {", "false")]
    },
    // The checksum of a frame's body.
    Flaw {
        name: "BodyChecksum",
        edits: &[edit(
            FRAME,
            "if is_checked && ⟦crc32fast::hash(body) != head.body_checksum⟧ {",
            "false",
        )],
    },
    // The checksum of the head before, and the sequence.
    Flaw { name: "Chain", edits: &[edit(FRAME, "⟦self.chain == tail.chain⟧", "true")] },
    // The position in a frame's head.
    Flaw { name: "Position", edits: &[edit(FRAME, "|| ⟦long(8)? != start⟧ {", "false")] },
    // Recovery clears the bytes behind the end.
    Flaw {
        name: "Clearing",
        edits: &[edit(
            RECOVERY,
            "if let Some(last) = ⟦bytes.iter().rposition(|byte| *byte != 0)⟧ {",
            "None::<usize>",
        )],
    },
    // Recovery writes again the frames that may not be durable.
    Flaw {
        name: "Rewriting",
        edits: &[edit(RECOVERY, "let mut at = ⟦end.safe⟧;", "end.tail.end")],
    },
    // Recovery syncs its writes.
    Flaw { name: "RecoverySync", edits: &[edit(RECOVERY, "if ⟦is_changed⟧ {", "false")] },
    // Recovery syncs names.
    Flaw {
        name: "RecoveryNames",
        edits: &[edit(
            RECOVERY,
            "if ⟦witnessed != Some(end.tail.end) || !unneeded.is_empty()⟧ {",
            "false",
        )],
    },
    // A writer announces the end of its frame before it writes.
    Flaw {
        name: "Reservation", edits: &[edit(APPEND, "⟦self.shared.reserve(tail.end)⟧;", "()")]
    },
    // A reader completes the work of a dead writer.
    Flaw {
        name: "ReaderSettles", edits: &[edit(VISIBLE, "if ⟦reserved <= synced⟧ ||", "true")]
    },
    // A writer completes the work of a dead writer.
    Flaw {
        name: "WriterSettles",
        edits: &[edit(
            APPEND,
            "if let Some(frame) = ⟦frame::read(&file, &writer.tail, true)?⟧ {",
            "None",
        )],
    },
    // A write that was cut short is an error.
    Flaw {
        name: "WholeWrite",
        edits: &[edit(
            FILE,
            "Err(error) => ⟦return Err(Error::io(\"write\", &self.path, error))⟧,",
            "return if done > 0 { Ok(()) } else { Err(Error::io(\"write\", &self.path, error)) }",
        )],
    },
    // A file is removed when all of it is stored elsewhere, and no sooner.
    Flaw {
        name: "Needed",
        edits: &[edit(
            ROTATION,
            "if ⟦!taken.has_all_before(self.files.get(pair[1])?.as_ref())⟧ {",
            "false",
        )],
    },
    // Blocks are removed after the manifest with them is durable.
    Flaw {
        name: "ManifestFirst",
        edits: &[edit(
            STORE,
            "⟦self.segments.sync_names()?⟧;",
            "{ drop(self.log.trim(log::CompactedLog { compacted, cursors: log_end })); self.segments.sync_names()? }",
        )],
    },
    // The content of a segment is synced.
    Flaw {
        name: "SegmentContent",
        edits: &[edit(
            SEGMENT_FILES,
            "⟦self.file.sync_data().map_err(|error| Error::io(\"sync\", &self.path, error))?⟧;",
            "()",
        )],
    },
    // The name of a segment is synced.
    Flaw {
        name: "SegmentName",
        edits: &[edit(SEGMENT_FILES, "if ⟦!is_new.swap(false, Ordering::AcqRel)⟧ {", "true")],
    },
    // LMDB syncs its commits.
    Flaw {
        name: "TableSync",
        edits: &[edit(
            ENVIRONMENT,
            "options.flags(⟦EnvFlags::NO_SUB_DIR⟧)",
            "EnvFlags::NO_SUB_DIR | EnvFlags::NO_SYNC",
        )],
    },
    // A head page of LMDB is announced as in doubt before it is written.
    Flaw {
        name: "HeadDoubt",
        edits: &[edit(HEAD_PAGES, "⟦self.shared.doubt_head(transaction)⟧;", "()")],
    },
    // A head page of LMDB in doubt is written again before a commit relies on it.
    Flaw {
        name: "HeadAgain",
        edits: &[edit(HEAD_PAGES, "let is_next = ⟦in_doubt == published⟧ ||", "false")],
    },
    // The repeated write of a head page is synced.
    Flaw {
        name: "HeadSync",
        edits: &[edit(HEAD_PAGES, "⟦file.sync_data().map_err(failed)?⟧;", "()")],
    },
    // A head page of LMDB that LMDB did not publish is overwritten before the next commit.
    Flaw {
        name: "HeadUndone",
        edits: &[edit(HEAD_PAGES, "|| ⟦in_doubt == published + 1⟧;", "false")],
    },
    // A head page of LMDB whose sync has failed stays in doubt.
    Flaw { name: "HeadTrusted", edits: &[edit(HEAD_PAGES, "if ⟦is_known⟧ {", "true")] },
    // Blocks continue after the last block, also if another process wrote it.
    Flaw {
        name: "WriterLooks",
        edits: &[
            edit(APPEND, "if ⟦file.base == live && writer.tail.end == written⟧ =>", "true"),
            edit(APPEND, "if ⟦writer.tail.end != written⟧ {", "false"),
        ],
    },
    // The checksum of a file's head.
    Flaw {
        name: "FileHeadChecksum",
        edits: &[edit(
            FILE,
            "let is_whole = ⟦crc32fast::hash(content).to_le_bytes() == *checksum⟧;",
            "true",
        )],
    },
    // Files left by a creation that was cut off are removed before the next creation.
    Flaw {
        name: "NewRemoved",
        edits: &[edit(FILE, "⟦remove_path(&directory.join(NEW_NAME))⟧", "Ok(())")],
    },
    // The first file continues behind a compacted block.
    Flaw {
        name: "FirstFile",
        edits: &[edit(RECOVERY, "if ⟦first.start.sequence > taken.compacted⟧ {", "false")],
    },
    // A bad frame is damage if another file follows.
    Flaw { name: "Gap", edits: &[edit(RECOVERY, "None if ⟦next.is_some()⟧ =>", "false")] },
    // A file begins at the end of the file before it.
    Flaw {
        name: "Join",
        edits: &[edit(
            RECOVERY,
            "let follows = ⟦begins == (Tail { end, sequence, counts, chain })⟧;",
            "true",
        )],
    },
    // A bad frame is damage if a later head says that more was durable.
    Flaw { name: "LaterHeads", edits: &[edit(RECOVERY, ".max(⟦later⟧);", "0")] },
    // Recovery counts the position up to which the shared file says that the log is durable.
    Flaw { name: "Witness", edits: &[edit(RECOVERY, ".max(⟦witnessed.unwrap_or(0)⟧)", "0")] },
    // A sync covers the frames written before it, and no later frames.
    Flaw {
        name: "WrittenBefore",
        edits: &[edit(HANDLE, "self.shared.publish_synced(⟦written⟧);", "self.shared.written()")],
    },
    // Other processes can tell that another file is about to become the live file.
    Flaw { name: "RotationMark", edits: &[edit(ROTATION, "set_rotating(⟦true⟧)", "false")] },
    // Reads show no frames that a failed sync has left in doubt.
    Flaw {
        name: "InDoubt", edits: &[edit(VISIBLE, "|| ⟦self.shared.is_in_doubt()⟧ {", "false")]
    },
    // Reads look for a commit of LMDB whose process died before the commit was published.
    Flaw {
        name: "DeadCommit",
        edits: &[edit(HEAD_PAGES, "let is_newer = ⟦written > seen⟧;", "false")],
    },
    // At most one compactor runs at a time.
    Flaw {
        name: "CompactionLock",
        edits: &[edit(
            SEGMENT_FILES,
            "Err(TryLockError::WouldBlock) => ⟦Ok(None)⟧,",
            "if name == COMPACTION_LOCK { Ok(Some(FileLock::held(file))) } else { Ok(None) }",
        )],
    },
    // A manifest replaces the manifest that it was made from.
    Flaw {
        name: "Generation",
        edits: &[edit(STORE, "if ⟦head.generation != generation⟧ {", "false")],
    },
    // A compactor reads the manifest again once it has the lock.
    Flaw {
        name: "LookLocked",
        edits: &[edit(
            COMPACTOR,
            "⟦self.follower.follow_heads()?⟧;\n        self.remove_orphans()?;",
            "Default::default()",
        )],
    },
    // Segments that no manifest names are removed.
    Flaw {
        name: "Orphans",
        edits: &[edit(
            COMPACTOR,
            "let segments = ⟦self.sealed.store.segments()?⟧.into_iter();",
            "Vec::new()",
        )],
    },
    // Segments are removed after the manifest that names their successors is durable.
    Flaw {
        name: "RemovedLast",
        edits: &[edit(
            COMPACTOR,
            "let is_replaced = ⟦store.replace_manifest(manifest.generation, &sealed, next.compacted)?⟧;",
            "{ self.remove(manifest.ids().filter(|id| !named.contains(id)))?; store.replace_manifest(manifest.generation, &sealed, next.compacted)? }",
        )],
    },
    // The key of a plane is written last.
    Flaw {
        name: "KeyLast",
        edits: &[edit(
            DIRECTORY,
            "⟦fill(&LmdbStore::create(&folder)?)?⟧;",
            "{ write_key(&folder, wrapped_key)?; fill(&LmdbStore::create(&folder)?)? }",
        )],
    },
];
