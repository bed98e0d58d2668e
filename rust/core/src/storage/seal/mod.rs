//! Sealing: everything a tenant stores is encrypted and authenticated under that tenant's own key.
//!
//! The layout stands in `docs/format.md`, "Sealed blob" and "Key file". Each blob has an AES key of
//! its own, derived from the tenant's data key and a random id, so no nonce can ever repeat: not
//! after a crash, not between processes, not when a counter goes back.

mod random;
mod secret;

mod key;
mod segment;

mod sealer;

mod key_file;

#[cfg(test)]
mod tests;

pub use key::DataKey;
pub use key_file::{PlaneKey, unwrap, unwrap_unbound, wrap};
pub use random::{PLANE_ID_LEN, fill_random, random_plane_id};
pub use sealer::{Kind, SEAL_OVERHEAD, Sealer, blob_id};
pub use segment::SegmentSealer;
