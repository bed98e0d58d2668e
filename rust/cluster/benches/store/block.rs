//! Blocks as a batch of some hundred rows makes them.

use std::sync::LazyLock;

use fleetcast_core::storage::seal::random_plane_id;
use fleetcast_core::storage::store::{NewBlock, StoreCounts};

const BYTES: usize = 8 << 10;

/// Bytes that nothing can shorten, as sealed ones are.
static NOISE: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..BYTES / 16).flat_map(|_| random_plane_id().unwrap()).collect());

/// A sealed block with an id of its own.
pub(crate) fn sealed() -> Vec<u8> {
    let mut sealed = NOISE.clone();
    sealed[..2].copy_from_slice(&[1, 1]);
    sealed[2..18].copy_from_slice(&random_plane_id().unwrap());
    sealed
}

/// [`sealed`], as a store takes it.
pub(crate) fn new() -> NewBlock {
    let counts = StoreCounts { rows: 1_000, values: 5_000, batches: 1, ..StoreCounts::default() };
    NewBlock { sealed: sealed(), counts, cursor: None }
}
