//! Sealing: everything that a tenant stores is encrypted and authenticated under the tenant's key.
//!
//! `docs/format.md` has the layout, in "Sealed blob" and "Key file". The AES key of a blob is
//! derived from a data key of the tenant and a random id. So no nonce can repeat: not after a crash,
//! not between processes, and not when a counter goes back.

mod random;
mod secret;

mod key;

mod data_keys;

mod segment;

mod sealer;

mod key_file;

mod master_keys;

#[cfg(test)]
mod tests;

pub use data_keys::{DataKeys, KeyId, KeySlot};
pub use key::DataKey;
pub use key_file::{PlaneKey, unwrap, unwrap_unbound, wrap};
pub use master_keys::{KeySource, MasterKey, MasterKeys, open_secret, seal_secret};
pub use random::{PLANE_ID_LEN, fill_random, random_plane_id};
pub use sealer::{BlobKind, SEAL_OVERHEAD, Sealer, blob_id, blob_slot, with_new_key};
pub use segment::SegmentSealer;
