//! Walks over all sealed bytes of a store, and the hash over everything that decides answers.

use super::files::{Hash, Hasher, hash_of, pieces_of};
use super::state::BackupState;
use crate::model::error::{Error, Result};
use crate::storage::manifest::Manifest;
use crate::storage::seal::{BlobKind, Sealer};
use crate::storage::store::{LogEntry, NamesPage, SegmentId, Store, StoreSnapshot, encode_names};

/// The manifest of a snapshot.
pub(super) fn manifest_of(snapshot: &StoreSnapshot, sealer: &Sealer) -> Result<Manifest> {
    let sealed = snapshot.manifest.as_ref();
    let manifest = sealed.map(|sealed| Manifest::decode(&sealer.open(BlobKind::Manifest, sealed)?));
    manifest.transpose().map(Option::unwrap_or_default)
}

/// Returns ids and lengths of all files. The checkpoint comes first if there is one.
pub(super) fn segments_of(manifest: &Manifest) -> impl Iterator<Item = (SegmentId, u64)> {
    manifest.files().filter(|entry| entry.bytes > 0).map(|entry| (entry.id, entry.bytes))
}

/// Returns the hash of a segment.
pub(super) fn hash_segment(store: &dyn Store, (id, bytes): (SegmentId, u64)) -> Result<Hash> {
    let mut hasher = Hasher::new();
    for (offset, length) in pieces_of(bytes) {
        hasher.add(&store.read_segment(&id, offset, length)?);
    }
    Ok(hasher.finish())
}

/// Hands each page of names after page `after`, up to the last page of `state`, to `visit`: the
/// page and its stored bytes. Continues the hashes of `state` from there.
pub(super) fn visit_names(
    store: &dyn Store,
    after: u64,
    state: &mut BackupState,
    mut visit: impl FnMut(&NamesPage, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut at = after;
    while at < state.snapshot.names_last {
        let pages = store.names_after(at)?;
        for page in pages.iter().take_while(|page| page.sequence <= state.snapshot.names_last) {
            let stored = encode_names(page);
            visit(page, &stored)?;
            state.names_hash = follow(&state.names_hash, &stored);
            state.last_page_hash = hash_of(&stored);
        }
        at = pages.last().map(|page| page.sequence).ok_or(Error::Corrupt { what: "the names" })?;
    }
    Ok(())
}

/// Hands each block of the log after position `after`, up to the last block of `state`, to `visit`.
/// Continues the hashes of `state` from there.
pub(super) fn visit_log(
    store: &dyn Store,
    after: u64,
    state: &mut BackupState,
    mut visit: impl FnMut(&LogEntry) -> Result<()>,
) -> Result<()> {
    let mut at = after;
    while at < state.snapshot.log_last {
        let entries = store.log_after(at)?;
        for entry in entries.iter().take_while(|entry| entry.sequence <= state.snapshot.log_last) {
            visit(entry)?;
            state.last_block_hash = hash_of(&entry.sealed);
            state.log_hash = follow(&state.log_hash, &state.last_block_hash);
        }
        at = entries.last().map(|last| last.sequence).ok_or(Error::Corrupt { what: "the log" })?;
    }
    Ok(())
}

/// Hashes a hash together with the bytes that follow. Example: the hash up to page 8 is
/// `follow(hash up to page 7, page 8)`.
fn follow(hash: &Hash, bytes: &[u8]) -> Hash {
    let mut hasher = Hasher::new();
    hasher.add(hash);
    hasher.add(bytes);
    hasher.finish()
}

/// Returns the hash over everything that decides answers: numbers, names, manifest, log, segments.
/// Opening authenticates all of it, so two stores with the same hash and key answer alike.
pub(super) fn content_of(state: &BackupState, segments: impl IntoIterator<Item = Hash>) -> Hash {
    let mut hasher = Hasher::new();
    hasher.add_part(&state.encode());
    segments.into_iter().for_each(|hash| hasher.add(&hash));
    hasher.finish()
}

/// Returns [`content_of`] for a store. `segments` are the hashes of its segments. The caller
/// ensures that the store does not change in the meantime.
pub(super) fn read_content(
    store: &dyn Store,
    segments: impl IntoIterator<Item = Hash>,
) -> Result<Hash> {
    let mut state = BackupState::new(store.snapshot()?);
    visit_names(store, 0, &mut state, |_, _| Ok(()))?;
    let compacted = state.snapshot.compacted;
    visit_log(store, compacted, &mut state, |_| Ok(()))?;
    Ok(content_of(&state, segments))
}
