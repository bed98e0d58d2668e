//! Walks over all sealed bytes of a store, and the one hash over everything that answers follow
//! from.

use super::files::{Hash, Hasher, hash_of, pieces_of};
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

/// Hash of a segment.
pub(super) fn hash_segment(store: &dyn Store, (id, bytes): (SegmentId, u64)) -> Result<Hash> {
    let mut hasher = Hasher::new();
    for (offset, length) in pieces_of(bytes) {
        hasher.add(&store.read_segment(&id, offset, length)?);
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
            state.names_hash = follow(&state.names_hash, &stored);
            state.last_page_hash = hash_of(&stored);
        }
        at = pages.last().map(|page| page.sequence).ok_or(Error::Corrupt { what: "the names" })?;
    }
    Ok(())
}

/// Hands the blocks of the log after position `after`, up to those of `state`, to `visit`, and goes
/// on with the hashes of `state` from there.
pub(super) fn visit_log(
    store: &dyn Store,
    after: u64,
    state: &mut State,
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

/// Hash of a hash and of what follows what that was made of.
fn follow(hash: &Hash, bytes: &[u8]) -> Hash {
    let mut hasher = Hasher::new();
    hasher.add(hash);
    hasher.add(bytes);
    hasher.finish()
}

/// The hash over everything that answers follow from: numbers, names, manifest, log, segments. All
/// of it is authenticated when it is opened, so stores of one hash and one key answer alike.
pub(super) fn content_of(state: &State, segments: impl IntoIterator<Item = Hash>) -> Hash {
    let mut hasher = Hasher::new();
    hasher.add_part(&state.encode());
    segments.into_iter().for_each(|hash| hasher.add(&hash));
    hasher.finish()
}

/// As [`content_of`], of what a store has, of which `segments` are the hashes. Nobody changes the
/// store meanwhile.
pub(super) fn read_content(
    store: &dyn Store,
    segments: impl IntoIterator<Item = Hash>,
) -> Result<Hash> {
    let mut state = State::new(store.snapshot()?);
    visit_names(store, 0, &mut state, |_, _| Ok(()))?;
    let compacted = state.snapshot.compacted;
    visit_log(store, compacted, &mut state, |_| Ok(()))?;
    Ok(content_of(&state, segments))
}
