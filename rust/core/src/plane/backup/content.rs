//! Walks over all sealed bytes of a store, and the one hash over everything that answers follow
//! from.

use super::files::{Hash, Hasher, PIECE_BYTES, hash_of};
use super::parallel::in_parallel;
use super::state::State;
use crate::model::error::{Error, Result};
use crate::storage::manifest::Manifest;
use crate::storage::seal::{Kind, Sealer};
use crate::storage::store::{LogEntry, NamesPage, SegmentId, Snapshot, Store, encode_names};

/// The manifest of a snapshot.
pub(super) fn manifest_of(snapshot: &Snapshot, sealer: &Sealer) -> Result<Manifest> {
    let sealed = snapshot.manifest.as_ref();
    let manifest = sealed.map(|sealed| Manifest::decode(&sealer.open(Kind::Manifest, sealed)?));
    manifest.transpose().map(Option::unwrap_or_default)
}

/// Ids and lengths of all segments, the checkpoint first if there is one.
pub(super) fn segments_of(manifest: &Manifest) -> impl Iterator<Item = (SegmentId, u64)> {
    let entries = std::iter::once(&manifest.checkpoint).chain(&manifest.segments);
    entries.filter(|entry| entry.bytes > 0).map(|entry| (entry.id, entry.bytes))
}

/// Hands the bytes of a segment to `visit`, piece by piece, and returns their hash.
pub(super) fn visit_segment(
    store: &dyn Store,
    (id, bytes): (SegmentId, u64),
    mut visit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Hash> {
    let mut hasher = Hasher::new();
    let mut offset = 0;
    while offset < bytes {
        let length = usize::try_from(bytes - offset).map_or(PIECE_BYTES, |n| n.min(PIECE_BYTES));
        let piece = store.read_segment(&id, offset, length)?;
        hasher.add(&piece);
        visit(&piece)?;
        offset += length as u64;
    }
    Ok(hasher.finish())
}

/// Hands the pages of names after `after`, up to those of `state`, to `visit`, page and stored
/// bytes, and goes on with the hashes of `state` from there.
pub(super) fn visit_names(
    store: &dyn Store,
    after: u64,
    state: &mut State,
    mut visit: impl FnMut(&NamesPage, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut at = after;
    while at < state.snapshot.names_last {
        let pages = store.names_after(at)?;
        for page in pages.iter().take_while(|page| page.sequence <= state.snapshot.names_last) {
            let stored = encode_names(page);
            visit(page, &stored)?;
            let mut hasher = Hasher::new();
            hasher.add(&state.names_hash);
            hasher.add(&stored);
            state.names_hash = hasher.finish();
            state.last_page_hash = hash_of(&stored);
        }
        at = pages.last().map(|page| page.sequence).ok_or(Error::Corrupt { what: "the names" })?;
    }
    Ok(())
}

/// Hands the blocks of the log that `state` has to `visit`, notes the hash of the last one in
/// `state`, and returns that of all.
pub(super) fn visit_log(
    store: &dyn Store,
    state: &mut State,
    mut visit: impl FnMut(&LogEntry) -> Result<()>,
) -> Result<Hash> {
    let mut hasher = Hasher::new();
    let mut at = state.snapshot.compacted;
    while at < state.snapshot.log_last {
        let entries = store.log_after(at)?;
        for entry in entries.iter().take_while(|entry| entry.sequence <= state.snapshot.log_last) {
            visit(entry)?;
            hasher.add(&entry.sequence.to_le_bytes());
            hasher.add_part(&entry.sealed);
            state.last_block_hash = hash_of(&entry.sealed);
        }
        at = entries.last().map(|last| last.sequence).ok_or(Error::Corrupt { what: "the log" })?;
    }
    Ok(hasher.finish())
}

/// The hash over everything that answers follow from: numbers, names, manifest, log, segments. All
/// of it is authenticated when it is opened, so stores of one hash and one key answer alike.
pub(super) fn content_of(
    state: &State,
    log: &Hash,
    segments: impl IntoIterator<Item = Hash>,
) -> Hash {
    let mut hasher = Hasher::new();
    hasher.add_part(&state.encode());
    hasher.add(log);
    segments.into_iter().for_each(|hash| hasher.add(&hash));
    hasher.finish()
}

/// As [`content_of`], of a whole store that nobody changes meanwhile.
pub(super) fn read_content(store: &dyn Store, sealer: &Sealer) -> Result<Hash> {
    let mut state = State { snapshot: store.snapshot()?, ..State::default() };
    visit_names(store, 0, &mut state, |_, _| Ok(()))?;
    let log = visit_log(store, &mut state, |_| Ok(()))?;
    let manifest = manifest_of(&state.snapshot, sealer)?;
    let entries: Vec<_> = segments_of(&manifest).collect();
    let segments = in_parallel(&entries, |entry| visit_segment(store, *entry, |_| Ok(())))?;
    Ok(content_of(&state, &log, segments))
}
