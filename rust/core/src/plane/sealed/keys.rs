//! The keys of an open plane. They change while the data key turns.

use std::sync::{Arc, OnceLock, RwLock};
use std::time::Instant;

use super::key_file::KeyFile;
use crate::model::error::Result;
use crate::storage::seal::{PlaneKey, Sealer, unwrap};
use crate::storage::store::{Planes, Store};

/// The sealer in force, and the key file that may bring another.
pub(super) struct HeldKeys {
    pub(super) sealer: RwLock<Arc<Sealer>>,
    /// `None` for a plane whose keys never turn while it is open.
    pub(super) file: OnceLock<KeyFile>,
}

/// Opens the store of a plane, and returns it with its sealer.
pub(in crate::plane) fn open(
    planes: &dyn Planes,
    plane: &str,
    master_key: &[u8; 32],
) -> Result<(Box<dyn Store>, Sealer)> {
    let (wrapped, store) = planes.open_with_key(plane)?;
    let open = |wrapped: &[u8]| unwrap(master_key, plane, wrapped);
    let held = held(&*store, wrapped, || planes.wrapped_key(plane), open)?;
    let sealer = held.put_in_force(&*store);
    Ok((store, sealer))
}

/// Keys of a key file whose sealing key is held.
pub(super) struct HeldPlaneKey {
    key: PlaneKey,
    /// An instant at which they were the keys in the file.
    known_at: Instant,
}

impl HeldPlaneKey {
    /// Returns their sealer. The caller seals with it from now on, and with no earlier sealer.
    pub(super) fn put_in_force(&self, store: &dyn Store) -> Sealer {
        let (plane_id, keys) = &self.key;
        if let Some(turns) = store.key_turns() {
            turns.note_key(keys.sealing(), keys.sealing_id(plane_id), self.known_at);
        }
        Sealer::of(keys, *plane_id)
    }
}

/// Returns the keys in the key file, and holds the key that seals, so that no other process drops
/// it. `wrapped` is the content of the file a moment ago.
pub(super) fn held(
    store: &dyn Store,
    mut wrapped: Vec<u8>,
    again: impl Fn() -> Result<Vec<u8>>,
    open: impl Fn(&[u8]) -> Result<PlaneKey>,
) -> Result<HeldPlaneKey> {
    loop {
        let (key, known_at) = (open(&wrapped)?, Instant::now());
        let Some(turns) = store.key_turns() else { return Ok(HeldPlaneKey { key, known_at }) };
        let is_held = turns.hold_key(key.1.sealing())?;
        let now = again()?;
        if is_held && now == wrapped {
            return Ok(HeldPlaneKey { key, known_at });
        }
        wrapped = now;
    }
}

impl HeldKeys {
    pub(super) fn new(sealer: Arc<Sealer>) -> Self {
        Self { sealer: RwLock::new(sealer), file: OnceLock::new() }
    }
}
