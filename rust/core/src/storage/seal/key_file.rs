//! The key file: a plane's data keys, sealed under the master key for the plane's name.

use zeroize::Zeroize;

use super::data_keys::DataKeys;
use super::key::DataKey;
use super::random::PLANE_ID_LEN;
use super::sealer::{BlobKind, Sealer};
use crate::model::error::{Error, Result};

/// Name of the file in errors.
pub(super) const KEY_FILE: &str = "the key file";
const KEY_FILE_MAGIC: &[u8; 8] = b"fleetkey";
/// Version of a file with one key, which no turn has made.
const FIRST_KEY_VERSION: u8 = 2;
const KEY_FILE_VERSION: u8 = 3;
/// Version of fleetcast 0.3.0, whose key files were valid for any plane.
const UNBOUND_VERSION: u8 = 1;

/// Id and data keys of a plane.
pub type PlaneKey = ([u8; PLANE_ID_LEN], DataKeys);

/// Makes the content of the key file of the plane with this name: `data_keys`, sealed under the
/// master key.
///
/// # Errors
///
/// Returns [`Error::Io`] if the system has no random bytes.
pub fn wrap(
    master_key: &[u8; 32],
    plane: &str,
    plane_id: &[u8; PLANE_ID_LEN],
    data_keys: &DataKeys,
) -> Result<Vec<u8>> {
    let sealer = Sealer::new(&DataKey::from_bytes(master_key), *plane_id);
    let mut plain = data_keys.encode();
    let sealed = sealer.seal_at(BlobKind::Key, plane.as_bytes(), &plain);
    plain.zeroize();
    let version = if data_keys.name_key.is_some() { KEY_FILE_VERSION } else { FIRST_KEY_VERSION };
    Ok([KEY_FILE_MAGIC.as_slice(), &[version], plane_id, &sealed?].concat())
}

/// Opens the key file of the plane with this name. Returns the plane's id and data keys.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] if the file is damaged, belongs to another plane, or was sealed under
/// another master key. Returns [`Error::Foreign`] if fleetcast 0.3.0 wrote the file.
pub fn unwrap(master_key: &[u8; 32], plane: &str, key_file: &[u8]) -> Result<PlaneKey> {
    let parts = |version| unwrap_parts(master_key, version, plane.as_bytes(), key_file);
    parts(FIRST_KEY_VERSION).or_else(|| parts(KEY_FILE_VERSION)).ok_or_else(|| {
        if key_file.get(KEY_FILE_MAGIC.len()) == Some(&UNBOUND_VERSION) {
            let advice = "Planes.bind takes it over";
            return Error::Foreign { what: format!("the plane is of fleetcast 0.3.0: {advice}") };
        }
        Error::Corrupt { what: KEY_FILE }
    })
}

/// Opens a key file of fleetcast 0.3.0, as [`unwrap`] does for newer files.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] if the file is damaged or was sealed under another master key.
pub fn unwrap_unbound(master_key: &[u8; 32], key_file: &[u8]) -> Result<PlaneKey> {
    let parts = unwrap_parts(master_key, UNBOUND_VERSION, &[], key_file);
    parts.ok_or(Error::Corrupt { what: KEY_FILE })
}

fn unwrap_parts(
    master_key: &[u8; 32],
    version: u8,
    place: &[u8],
    key_file: &[u8],
) -> Option<PlaneKey> {
    let rest = key_file.strip_prefix(KEY_FILE_MAGIC)?.strip_prefix(&[version])?;
    let (plane_id, sealed) = rest.split_first_chunk::<PLANE_ID_LEN>()?;
    let sealer = Sealer::new(&DataKey::from_bytes(master_key), *plane_id);
    let mut plain = sealer.open_parts(BlobKind::Key, place, sealed)?;
    let data_keys = match version {
        KEY_FILE_VERSION => DataKeys::decode(&plain),
        _ => plain.as_slice().try_into().ok().map(|key| DataKey::from_bytes(key).into()),
    };
    plain.zeroize();
    Some((*plane_id, data_keys?))
}
