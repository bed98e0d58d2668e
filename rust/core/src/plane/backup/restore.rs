//! Makes a plane from its folder of a backup.

use std::io::ErrorKind;
use std::path::Path;
use std::thread;

use super::content::{hash_segment, manifest_of, read_content, segments_of};
use super::files::{
    DAMAGED, Hash, LOG_MAGIC, NAMES_MAGIC, SEGMENTS, SavedFile, SavedReader, range_of, read_whole,
};
use super::parallel::in_parallel;
use super::segment_copy;
use super::state::BackupState;
use crate::model::error::{Error, Result};
use crate::plane::binding::bind_names;
use crate::storage::seal::{Sealer, unwrap, unwrap_unbound, wrap};
use crate::storage::store::{Link, LogEntry, Planes, SegmentId, Store, decode_names};

/// Bytes of names or blocks that one transaction loads: bounds its memory.
const LOAD_BYTES: usize = 4 << 20;

pub(in crate::plane) fn restore(
    (planes, plane): (&dyn Planes, &str),
    (saved_as, master_key): (&str, &[u8; 32]),
    new_master_key: &[u8; 32],
    folder: &Path,
    files: &[SavedFile],
    content: &Hash,
    link: Link,
) -> Result<()> {
    let key_file = read_whole(folder, find(files, ".key")?)?;
    let bound = unwrap(master_key, saved_as, &key_file);
    let is_bound = bound.is_ok();
    let (plane_id, data_keys) = bound.or_else(|_| unwrap_unbound(master_key, &key_file))?;
    let sealer = Sealer::of(&data_keys, plane_id);
    let wrapped_key = wrap(new_master_key, plane, &plane_id, &data_keys)?;
    planes.create(plane, &wrapped_key, &mut |store| {
        load_store(store, &sealer, folder, files, content, link)?;
        if is_bound { Ok(()) } else { bind_names(store, &sealer) }
    })
}

/// Loads a store that was just made. Reads it again and compares it with `content`.
pub(super) fn load_store(
    store: &dyn Store,
    sealer: &Sealer,
    folder: &Path,
    files: &[SavedFile],
    content: &Hash,
    link: Link,
) -> Result<()> {
    let state = BackupState::decode(&read_whole(folder, find(files, ".state")?)?)?;
    let names_last = state.snapshot.names_last;
    let names = RecordFiles { folder, files, kind: "names", magic: NAMES_MAGIC };
    let decode = |sequence, stored: Vec<u8>| decode_names(sequence, &stored);
    names.load(0, names_last, decode, |pages| store.load_names(pages))?;
    let log = RecordFiles { folder, files, kind: "log", magic: LOG_MAGIC };
    let decode = |sequence, sealed| Ok(LogEntry { sequence, sealed });
    let (compacted, log_last) = (state.snapshot.compacted, state.snapshot.log_last);
    log.load(compacted, log_last, decode, |entries| store.load_log(entries))?;
    let manifest = manifest_of(&state.snapshot, sealer)?;
    let segments: Vec<_> = segments_of(&manifest).collect();
    in_parallel(&segments, |segment| load_segment(store, folder, files, *segment, link))?;
    // Read the segments again while they become durable.
    let hashes = thread::scope(|scope| {
        let loading = scope.spawn(|| store.load_snapshot(&state.snapshot));
        let hashes = in_parallel(&segments, |segment| hash_segment(store, *segment));
        loading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        hashes
    })?;
    let is_same = read_content(store, hashes)? == *content;
    if is_same { Ok(()) } else { Err(DAMAGED) }
}

/// Files of numbered records of one kind.
struct RecordFiles<'a> {
    folder: &'a Path,
    files: &'a [SavedFile],
    kind: &'a str,
    magic: &'a [u8; 9],
}

impl RecordFiles<'_> {
    /// Loads the records after `after` up to `last`, and checks that their numbers have no gap.
    fn load<R>(
        &self,
        after: u64,
        last: u64,
        decode: impl Fn(u64, Vec<u8>) -> Result<R>,
        mut load: impl FnMut(&[R]) -> Result<()>,
    ) -> Result<()> {
        let ranged =
            self.files.iter().filter_map(|file| Some((range_of(&file.name, self.kind)?, file)));
        let mut ranged: Vec<_> = ranged.collect();
        ranged.sort_by_key(|(range, _)| *range);
        let (mut at, mut bytes, mut loaded) = (after, 0, Vec::new());
        for ((first, end), file) in ranged {
            if at.checked_add(1).is_none_or(|next| first > next) {
                return Err(DAMAGED);
            }
            let mut reader = SavedReader::open_marked(self.folder, file, self.magic)?;
            let mut sequence = first;
            while let Some(record) = reader.record()? {
                if sequence == at + 1 {
                    at = sequence;
                    bytes += record.len();
                    loaded.push(decode(sequence, record)?);
                }
                if bytes >= LOAD_BYTES {
                    load(&std::mem::take(&mut loaded))?;
                    bytes = 0;
                }
                sequence += 1;
            }
            if sequence != end + 1 {
                return Err(DAMAGED);
            }
        }
        load(&loaded)?;
        if at == last { Ok(()) } else { Err(DAMAGED) }
    }
}

/// Loads a segment. Its content is compared later, when the store is read again.
fn load_segment(
    store: &dyn Store,
    folder: &Path,
    files: &[SavedFile],
    (id, bytes): (SegmentId, u64),
    link: Link,
) -> Result<()> {
    let name = format!("{SEGMENTS}/{:032x}", u128::from_be_bytes(id));
    let file = files.iter().find(|file| file.name == name).ok_or(DAMAGED)?;
    let path = std::path::absolute(folder.join(&name));
    let path = path.map_err(|error| Error::io("find", folder, error))?;
    let length = match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(DAMAGED),
        meta => meta.map_err(|error| Error::io("read", &path, error))?.len(),
    };
    if [length, file.bytes] != [bytes; 2] {
        return Err(DAMAGED);
    }
    if store.link_segment(&id, &path, link)? {
        return Ok(());
    }
    let mut segment = store.create_segment(&id)?;
    segment_copy::load_segment(&path, bytes, &mut *segment)?;
    segment.finish_content()
}

fn find<'a>(files: &'a [SavedFile], suffix: &str) -> Result<&'a SavedFile> {
    files.iter().find(|file| file.name.ends_with(suffix)).ok_or(DAMAGED)
}
