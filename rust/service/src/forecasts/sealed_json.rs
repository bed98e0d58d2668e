//! JSON under a tenant's key, the content of records.

use fleetcast_core::model::error::Error;
use fleetcast_core::plane::Plane;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Seals `content` under the tenant's key.
///
/// # Errors
/// Returns the errors of [`Plane::seal`].
pub(super) fn seal_json(plane: &Plane, content: &impl Serialize) -> Result<Vec<u8>, Error> {
    let plain = serde_json::to_vec(content);
    plane.seal(&plain.map_err(|error| Error::Invalid { message: error.to_string() })?)
}

/// Opens a sealed content. Returns `None` if its data key was dropped.
///
/// # Errors
/// Returns [`Error::Corrupt`] with `what` for other bytes.
pub(super) fn unseal_json<T: DeserializeOwned>(
    plane: &Plane,
    sealed: &[u8],
    what: &'static str,
) -> Result<Option<T>, Error> {
    let Some(plain) = plane.unseal(sealed)? else { return Ok(None) };
    serde_json::from_slice(&plain).map(Some).map_err(|_| Error::Corrupt { what })
}
