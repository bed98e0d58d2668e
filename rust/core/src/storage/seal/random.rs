//! Random bytes of the operating system.

use ring::rand::{SecureRandom, SystemRandom};

use crate::model::error::{Error, Result};

/// Bytes of a plane's id.
pub const PLANE_ID_LEN: usize = 16;

/// Makes a new random plane id.
///
/// # Errors
///
/// Returns [`Error::Io`] if the system has no random bytes.
pub fn random_plane_id() -> Result<[u8; PLANE_ID_LEN]> {
    let mut id = [0; PLANE_ID_LEN];
    fill_random(&mut id)?;
    Ok(id)
}

/// Fills `bytes` with random ones.
///
/// # Errors
///
/// As [`random_plane_id`].
pub fn fill_random(bytes: &mut [u8]) -> Result<()> {
    SystemRandom::new().fill(bytes).map_err(|ring::error::Unspecified| Error::Io {
        what: "draw random bytes".to_owned(),
        source: std::io::Error::other("the system's source of randomness failed"),
    })
}
