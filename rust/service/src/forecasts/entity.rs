//! The key of an entity's records, and the id of the routing decision for an entity.

use std::fmt::Write;

use fleetcast_core::model::error::Error;
use fleetcast_core::plane::Plane;
use ring::digest;

/// A keyed hash of an entity and its family.
pub type EntityDigest = [u8; 16];

/// Returns the digest of an entity, and the key of its records in every table: account, family and
/// digest.
#[must_use]
pub fn forecast_key(
    plane: &Plane,
    account: &str,
    family: &str,
    entity_id: &str,
) -> (EntityDigest, Vec<u8>) {
    let digest = plane.name_hash(format!("{family}/{entity_id}").as_bytes());
    (digest, [account.as_bytes(), b"/", family.as_bytes(), b"/", &digest].concat())
}

/// Returns the id of a rollout's decision about an entity: a UUID of version 5 (RFC 9562, 5.5) in
/// the namespace of the rollout, for the hexadecimal digits of the entity's digest.
///
/// # Errors
/// Returns [`Error::Corrupt`] if the rollout's id is not a UUID.
pub fn assignment_id(rollout_id: &str, digest: &EntityDigest) -> Result<String, Error> {
    let digits = rollout_id.replace('-', "");
    let namespace = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32);
    let namespace = namespace.ok_or(Error::Corrupt { what: "the id of a rollout" })?;
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    #[expect(clippy::big_endian_bytes, reason = "the format of a UUID")]
    context.update(&namespace.to_be_bytes());
    context.update(hexadecimal(digest).as_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&context.finish().as_ref()[..16]);
    id[6] = id[6] & 0x0f | 0x50;
    id[8] = id[8] & 0x3f | 0x80;
    let text = hexadecimal(&id);
    let part = |range| &text[range];
    Ok([part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-"))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to memory cannot fail
        text
    })
}
