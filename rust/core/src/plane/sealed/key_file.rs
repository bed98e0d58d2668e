//! The key file of a plane, as an open plane reads and changes it.

use std::sync::Arc;

use crate::model::error::Result;
use crate::storage::seal::{
    DataKeys, KeyId, KeySlot, MasterKey, MasterKeys, PLANE_ID_LEN, PlaneKey, unwrap, with_new_key,
    wrap,
};
use crate::storage::store::{KeyLock, Planes};

/// The key file of a plane, and the master keys that open it.
pub struct KeyFile {
    planes: Arc<dyn Planes>,
    plane: String,
    keys: MasterKeys,
}

impl KeyFile {
    /// Names the key file of `plane` of `planes`.
    #[must_use]
    pub fn new(planes: Arc<dyn Planes>, plane: &str, keys: MasterKeys) -> Self {
        Self { planes, plane: plane.to_owned(), keys }
    }

    pub(super) fn wrapped(&self) -> Result<Vec<u8>> {
        self.planes.wrapped_key(&self.plane)
    }

    /// Opens the content of the file with the master keys that are known. The source of master keys
    /// is not asked, because a caller may hold locks.
    pub(super) fn open(&self, wrapped: &[u8]) -> Result<PlaneKey> {
        self.keys.open_known(|key| unwrap(key, &self.plane, wrapped))
    }

    /// Adds a new data key, unless one was added before, and makes it the key that seals.
    ///
    /// The new key is durable before it seals. Otherwise a power cut could bring back a file without
    /// it, after other processes have stored bytes under it.
    pub(in crate::plane) fn turn(&self) -> Result<()> {
        let replace = |before: &[u8], wrapped: &[u8], open: &[KeyId]| {
            self.planes.turn_key(&self.plane, before, wrapped, open)
        };
        let with_new = |plane_id: &_, keys: DataKeys| {
            let is_one = keys.newest() == keys.sealing() && keys.old().is_none();
            is_one.then(|| with_new_key(keys, plane_id)).transpose()
        };
        self.change(with_new, replace)?;
        let turned =
            |_: &_, keys: DataKeys| Ok((keys.newest() != keys.sealing()).then(|| keys.turned()));
        self.change(turned, replace)
    }

    /// Drops the data key in slot `old`, which `lock` locks, unless it is dropped already.
    pub(in crate::plane) fn drop_old(&self, old: KeySlot, lock: &dyn KeyLock) -> Result<()> {
        let without_old =
            |_: &_, keys: DataKeys| Ok((keys.old() == Some(old)).then(|| keys.without_old()));
        self.change(without_old, |before, wrapped, _| {
            self.planes.drop_key(&self.plane, before, wrapped, lock)
        })
    }

    /// Asks the source of master keys for those that open the file, if the known keys do not.
    pub(super) fn renew_master_keys(&self) -> Result<PlaneKey> {
        self.keys.open(|| self.wrapped(), |key| unwrap(key, &self.plane, &self.wrapped()?))
    }

    /// Replaces the keys by the result of `change`, under the same master key. `replace` stores the
    /// file, if the file is still the same, and gets the ids of its keys.
    fn change(
        &self,
        change: impl Fn(&[u8; PLANE_ID_LEN], DataKeys) -> Result<Option<DataKeys>>,
        replace: impl Fn(&[u8], &[u8], &[KeyId]) -> Result<bool>,
    ) -> Result<()> {
        loop {
            let before = self.wrapped()?;
            let opened =
                |key: &[u8; 32]| Ok((MasterKey::new(*key), unwrap(key, &self.plane, &before)?));
            let (master_key, (plane_id, keys)) = self.keys.open(|| self.wrapped(), opened)?;
            let Some(next) = change(&plane_id, keys)? else { return Ok(()) };
            let wrapped = wrap(&master_key, &self.plane, &plane_id, &next)?;
            if replace(&before, &wrapped, &next.ids(&plane_id))? {
                return Ok(());
            }
        }
    }
}
