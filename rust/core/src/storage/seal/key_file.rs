//! The key file: a plane's data key, sealed under the master key.

use zeroize::Zeroize;

use super::key::DataKey;
use super::random::PLANE_ID_LEN;
use super::sealer::{Kind, Sealer};
use crate::model::error::{Error, Result};

const KEY_FILE_MAGIC: &[u8; 8] = b"fleetkey";
const KEY_FILE_VERSION: u8 = 1;

/// Contents of a key file: `data_key`, sealed under the master key.
///
/// # Errors
///
/// [`Error::Io`] if the system has no random bytes.
pub fn wrap(
    master_key: &[u8; 32],
    plane_id: &[u8; PLANE_ID_LEN],
    data_key: &DataKey,
) -> Result<Vec<u8>> {
    let sealer = Sealer::new(&DataKey::from_bytes(master_key), *plane_id);
    let sealed = sealer.seal(Kind::Key, &*data_key.0)?;
    Ok([KEY_FILE_MAGIC.as_slice(), &[KEY_FILE_VERSION], plane_id, &sealed].concat())
}

/// Plane id and data key of a key file.
///
/// # Errors
///
/// [`Error::Corrupt`] if the file is damaged or was sealed under another master key.
pub fn unwrap(master_key: &[u8; 32], key_file: &[u8]) -> Result<([u8; PLANE_ID_LEN], DataKey)> {
    unwrap_parts(master_key, key_file).ok_or(Error::Corrupt { what: "the key file" })
}

fn unwrap_parts(master_key: &[u8; 32], key_file: &[u8]) -> Option<([u8; PLANE_ID_LEN], DataKey)> {
    let rest = key_file.strip_prefix(KEY_FILE_MAGIC)?.strip_prefix(&[KEY_FILE_VERSION])?;
    let (plane_id, sealed) = rest.split_first_chunk::<PLANE_ID_LEN>()?;
    let sealer = Sealer::new(&DataKey::from_bytes(master_key), *plane_id);
    let mut plain = sealer.open_parts(Kind::Key, &[], sealed)?;
    let data_key = <&[u8; 32]>::try_from(plain.as_slice()).ok().map(DataKey::from_bytes);
    plain.zeroize();
    Some((*plane_id, data_key?))
}
