//! Saves a plane into its folder of a backup.

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::content::{content_of, hash_segment, manifest_of, segments_of, visit_log, visit_names};
use super::files::{
    BackupWriter, LOG_MAGIC, NAMES_MAGIC, SEGMENTS, SavedFile, UnsyncedPath, hash_of, range_of,
    read_whole, remove,
};
use super::parallel::in_parallel;
use super::segment_copy::copy_segment;
use super::state::BackupState;
use crate::model::error::{Error, Result};
use crate::plane::sealed;
use crate::storage::manifest::Manifest;
use crate::storage::seal::{Sealer, unwrap};
use crate::storage::store::{Planes, SegmentId, Store, StoreSnapshot, encode_names};

/// Result of saving a plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveReport {
    /// All files of the saved plane, including files of earlier backups.
    pub files: Vec<SavedFile>,
    /// Bytes of the files that this backup wrote.
    pub bytes_written: u64,
    /// Bytes of the segments that this backup linked.
    pub bytes_linked: u64,
    /// Rows in the saved plane.
    pub rows: u64,
    /// Values in the saved plane.
    pub values: u64,
    /// Hash over everything that decides answers.
    pub content: [u8; 32],
}

pub(in crate::plane) fn save(
    (planes, plane): (&dyn Planes, &str),
    master_key: &[u8; 32],
    folder: &Path,
    number: u64,
    before: &[SavedFile],
) -> Result<Option<SaveReport>> {
    let (store, _) = sealed::open(planes, plane, master_key)?;
    let key = || {
        let key = planes.wrapped_key(plane)?;
        let (plane_id, keys) = unwrap(master_key, plane, &key)?;
        Ok((key, Sealer::of(&keys, plane_id)))
    };
    save_store(&*store, &key, folder, number, before)
}

/// Returns the key file and its sealer. It is asked for after each snapshot: a key that turned
/// meanwhile may have sealed the manifest.
type SavedKey<'k> = &'k dyn Fn() -> Result<(Vec<u8>, Sealer)>;

pub(super) fn save_store(
    store: &dyn Store,
    key: SavedKey<'_>,
    folder: &Path,
    number: u64,
    before: &[SavedFile],
) -> Result<Option<SaveReport>> {
    make_folder(folder)?;
    let before: HashMap<_, _> = before.iter().map(|file| (file.name.as_str(), file)).collect();
    let mut saving = Backup {
        store,
        folder,
        number,
        before,
        kept: Vec::new(),
        segments: HashMap::new(),
        unsynced: Vec::new(),
        has_new_segments: false,
        bytes_written: 0,
        bytes_linked: 0,
    };
    // Copy most bytes before the lock keeps the compactor from its work.
    let _pin = store.pin_segments()?;
    let snapshot = store.snapshot()?;
    saving.segments(&manifest_of(&snapshot, &key()?.1)?)?;
    let Some(_lock) = store.lock_compaction()? else { return Ok(None) };
    saving.rest(key).map(Some)
}

/// How a segment came into the backup.
enum CopyKind {
    Known,
    Linked,
    Written,
}

struct Backup<'a> {
    store: &'a dyn Store,
    folder: &'a Path,
    number: u64,
    before: HashMap<&'a str, &'a SavedFile>,
    /// Files of the plane as it is saved, without segments.
    kept: Vec<SavedFile>,
    segments: HashMap<SegmentId, SavedFile>,
    /// Files that were written, without segments.
    unsynced: Vec<UnsyncedPath>,
    has_new_segments: bool,
    bytes_written: u64,
    bytes_linked: u64,
}

impl Backup<'_> {
    /// Saves everything that the compactor must not change in the meantime.
    fn rest(mut self, key: SavedKey<'_>) -> Result<SaveReport> {
        let mut state = BackupState::new(self.store.snapshot()?);
        let manifest = manifest_of(&state.snapshot, &key()?.1)?;
        self.segments(&manifest)?;
        let before = self.state_before()?;
        self.names(&before, &key()?.0, &mut state)?;
        self.log(&before, &mut state)?;
        self.small("state", &state.encode())?;
        // Read last: a new key may have sealed what was copied. An old key is not dropped meanwhile.
        self.small("key", &key()?.0)?;
        let segments: Option<Vec<_>> =
            segments_of(&manifest).map(|(id, _)| self.segments.remove(&id)).collect();
        let segments = segments.ok_or(Error::Stale)?;
        let content = content_of(&state, segments.iter().map(|file| file.sha256));
        if !self.unsynced.is_empty() {
            self.unsynced.push(UnsyncedPath::folder(self.folder)?);
        }
        if self.has_new_segments {
            self.unsynced.push(UnsyncedPath::folder(&self.folder.join(SEGMENTS))?);
        }
        in_parallel(&self.unsynced, UnsyncedPath::sync)?;
        let counts = &state.snapshot.counts;
        let entries = || manifest.segments.iter();
        let in_log = |ever: u64, left: u64| ever.saturating_sub(left);
        let rows =
            in_log(counts.rows, manifest.rows) + entries().map(|entry| entry.rows).sum::<u64>();
        let values = in_log(counts.values, manifest.values)
            + entries().map(|entry| entry.values).sum::<u64>();
        self.kept.extend(segments);
        let (bytes_written, bytes_linked) = (self.bytes_written, self.bytes_linked);
        Ok(SaveReport { files: self.kept, bytes_written, bytes_linked, rows, values, content })
    }

    fn segments(&mut self, manifest: &Manifest) -> Result<()> {
        let new = segments_of(manifest).filter(|(id, _)| !self.segments.contains_key(id));
        let new: Vec<_> = new.collect();
        let saved = in_parallel(&new, |(id, bytes)| self.segment(*id, *bytes))?;
        for ((id, bytes), (file, how)) in new.into_iter().zip(saved) {
            self.has_new_segments |= !matches!(how, CopyKind::Known);
            match how {
                CopyKind::Known => {}
                CopyKind::Linked => self.bytes_linked += bytes,
                CopyKind::Written => self.bytes_written += bytes,
            }
            self.segments.insert(id, file);
        }
        Ok(())
    }

    fn segment(&self, id: SegmentId, bytes: u64) -> Result<(SavedFile, CopyKind)> {
        let name = format!("{SEGMENTS}/{:032x}", u128::from_be_bytes(id));
        if let Some(saved) = self.known(&name).filter(|saved| saved.bytes == bytes) {
            return Ok((saved, CopyKind::Known));
        }
        let path = self.folder.join(&name);
        remove(&path)?;
        // Resolve symbolic links: a store that is read through a copy has them, and a link to a
        // link is no backup.
        let file = self.store.segment_file(&id).and_then(|file| file.canonicalize().ok());
        if file.is_some_and(|file| std::fs::hard_link(file, &path).is_ok()) {
            let sha256 = hash_segment(self.store, (id, bytes))?;
            return Ok((SavedFile { name, bytes, sha256 }, CopyKind::Linked));
        }
        let sha256 = copy_segment(self.store, (id, bytes), &path)?;
        Ok((SavedFile { name, bytes, sha256 }, CopyKind::Written))
    }

    /// Returns a file of the previous backup if its length is unchanged.
    fn known(&self, name: &str) -> Option<SavedFile> {
        let saved = self.before.get(name)?;
        let length = self.folder.join(name).metadata().ok()?.len();
        (length == saved.bytes).then(|| (*saved).clone())
    }

    fn known_of(&self, suffix: &str) -> Option<SavedFile> {
        let name = self.before.keys().find(|name| name.ends_with(suffix))?;
        self.known(name)
    }

    /// Returns the files of this kind in the previous backup, each with its first and last
    /// position.
    fn known_ranges(&self, kind: &str) -> Vec<(u64, u64, SavedFile)> {
        let named = self.before.keys().filter_map(|name| range_of(name, kind).zip(Some(name)));
        let known =
            named.filter_map(|((first, last), name)| Some((first, last, self.known(name)?)));
        let mut known: Vec<_> = known.collect();
        known.sort_by_key(|(first, ..)| *first);
        known
    }

    /// Returns the state of the previous backup. Returns an empty state if the file is missing or
    /// damaged: then all hashes start again.
    fn state_before(&self) -> Result<BackupState> {
        let Some(saved) = self.known_of(".state") else {
            return Ok(BackupState::new(StoreSnapshot::default()));
        };
        match read_whole(self.folder, &saved).and_then(|bytes| BackupState::decode(&bytes)) {
            Err(Error::Corrupt { .. }) => Ok(BackupState::new(StoreSnapshot::default())),
            outcome => outcome,
        }
    }

    /// Saves the pages of names that the previous backup lacks. With another key file it saves all
    /// pages: a key that sealed earlier pages may be gone.
    fn names(&mut self, before: &BackupState, key: &[u8], state: &mut BackupState) -> Result<()> {
        let last = before.snapshot.names_last;
        let known = self.known_ranges("names");
        let goes_on = last > 0
            && self.known_of(".key").is_some_and(|saved| saved.sha256 == hash_of(key))
            && last <= state.snapshot.names_last
            && reaches(&known, 1, last)
            && self.store.names_after(last - 1)?.first().is_some_and(|page| {
                page.sequence == last && hash_of(&encode_names(page)) == before.last_page_hash
            });
        let mut after = 0;
        if goes_on {
            after = last;
            (state.names_hash, state.last_page_hash) = (before.names_hash, before.last_page_hash);
            self.kept.extend(known.into_iter().map(|(.., saved)| saved));
        }
        if after == state.snapshot.names_last {
            return Ok(());
        }
        let name = format!("{}-{}-{}.names", self.number, after + 1, state.snapshot.names_last);
        let mut file = BackupWriter::create(self.folder, name)?;
        file.write(NAMES_MAGIC)?;
        visit_names(self.store, after, state, |_, stored| file.write_record(stored))?;
        self.keep(file)
    }

    /// Saves the blocks that the previous backup lacks.
    fn log(&mut self, before: &BackupState, state: &mut BackupState) -> Result<()> {
        let (compacted, log_last) = (state.snapshot.compacted, state.snapshot.log_last);
        let last = before.snapshot.log_last;
        let mut known = self.known_ranges("log");
        known.retain(|(_, last, _)| *last > compacted);
        let goes_on = last > compacted
            && last <= log_last
            && reaches(&known, compacted + 1, last)
            && self
                .store
                .log_get(&[last])?
                .first()
                .is_some_and(|entry| hash_of(&entry.sealed) == before.last_block_hash);
        let (mut saved, mut hashed) = (compacted, compacted);
        if goes_on {
            saved = last;
            self.kept.extend(known.into_iter().map(|(.., saved)| saved));
            // Continue the hash only if the log still begins at the same block.
            if before.snapshot.compacted == compacted {
                hashed = last;
                (state.log_hash, state.last_block_hash) = (before.log_hash, before.last_block_hash);
            }
        }
        if saved == log_last {
            return visit_log(self.store, hashed, state, |_| Ok(()));
        }
        let name = format!("{}-{}-{log_last}.log", self.number, saved + 1);
        let mut file = BackupWriter::create(self.folder, name)?;
        file.write(LOG_MAGIC)?;
        visit_log(self.store, hashed, state, |entry| {
            if entry.sequence > saved { file.write_record(&entry.sealed) } else { Ok(()) }
        })?;
        self.keep(file)
    }

    /// Saves a small file, unless the previous backup has the same file.
    fn small(&mut self, kind: &str, bytes: &[u8]) -> Result<()> {
        let known = self.known_of(&format!(".{kind}"));
        if let Some(saved) = known.filter(|saved| saved.sha256 == hash_of(bytes)) {
            self.kept.push(saved);
            return Ok(());
        }
        let mut file = BackupWriter::create(self.folder, format!("{}.{kind}", self.number))?;
        file.write(bytes)?;
        self.keep(file)
    }

    fn keep(&mut self, file: BackupWriter) -> Result<()> {
        let (saved, unsynced) = file.finish()?;
        self.unsynced.push(unsynced);
        self.bytes_written += saved.bytes;
        self.kept.push(saved);
        Ok(())
    }
}

/// Returns true if the files follow each other without a gap, from `first` or earlier to `last`.
fn reaches(known: &[(u64, u64, SavedFile)], first: u64, last: u64) -> bool {
    let begins = known.first().is_some_and(|(begin, ..)| *begin <= first);
    let follows = known.windows(2).all(|pair| pair[0].1.checked_add(1) == Some(pair[1].0));
    begins && follows && known.last().is_some_and(|(_, end, _)| *end == last)
}

fn make_folder(folder: &Path) -> Result<()> {
    for path in [folder, &folder.join(SEGMENTS)] {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(Error::io("make", path, error));
            }
            _ => {}
        }
    }
    Ok(())
}
