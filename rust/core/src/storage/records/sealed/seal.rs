//! Seals records, each for its place.

use ring::hmac;
use zeroize::Zeroizing;

use super::head::RecordsHead;
use crate::model::error::{Error, Result};
use crate::storage::seal::{BlobKind, DataKey, Sealer, blob_id};

/// Space of the facts about the store.
pub(super) const FACTS: &str = "facts";
/// Space of the facts of a store that was written without a seal.
pub(super) const OPEN_FACTS: &str = "";
/// The space of the head, and its key there.
pub(super) const HEAD: (&str, &[u8]) = ("seal", b"head");

const KEY_LABEL: &[u8] = b"fleetcast records 1";
const REVISION_PLACE: &[u8] = b"revision file";
/// Bytes at the beginning of each head, which identify the master key.
const CHECK_LEN: usize = 16;

/// Key of a fact in the unsealed stores of 0.3.0. The fact identifies the master key.
pub(super) const OPEN_CHECK_KEY: &[u8] = b"master-key-check";
const OPEN_CHECK_LABEL: &[u8] = b"fleetcast control store check 1";

/// Seals and opens the records of one store.
pub(super) struct RecordSeal {
    sealer: Sealer,
    master_key: Zeroizing<[u8; 32]>,
    /// First bytes of the heads that this seal makes.
    check: [u8; CHECK_LEN],
    /// The value under [`OPEN_CHECK_KEY`] for this master key.
    pub(super) open_check: [u8; 32],
}

impl RecordSeal {
    /// Makes the seal of the store with this name under a master key.
    pub(super) fn new(master_key: &[u8; 32], store: &str) -> Self {
        let derived = |label: &[u8]| derived(master_key, label);
        let name = derived(&[KEY_LABEL, b"/", store.as_bytes()].concat());
        let (id, _) = name.split_first_chunk().expect("32 bytes are more than 16");
        let sealer = Sealer::new(&DataKey::from_bytes(&derived(KEY_LABEL)), *id);
        let check = sealer.name_hash(b"master key check");
        let open_check = derived(OPEN_CHECK_LABEL);
        Self { sealer, master_key: Zeroizing::new(*master_key), check, open_check }
    }

    /// Derives a secret for one purpose from the master key.
    pub(super) fn derived(&self, label: &str) -> [u8; 32] {
        derived(&self.master_key, label.as_bytes())
    }

    pub(super) fn seal(&self, space: &str, key: &[u8], plain: &[u8]) -> Result<Vec<u8>> {
        self.sealer.seal_at(BlobKind::Record, &place(space, key), plain)
    }

    pub(super) fn open(&self, space: &str, key: &[u8], sealed: &[u8]) -> Result<Vec<u8>> {
        let opened = self.sealer.open_at(BlobKind::Record, &place(space, key), sealed);
        opened.map_err(|_| foreign(space, key))
    }

    /// Returns the share of a record in the sum of its store's head.
    pub(super) fn share(&self, space: &str, key: &[u8], sealed: &[u8]) -> Result<[u8; 16]> {
        let id = blob_id(sealed).ok_or_else(|| foreign(space, key))?;
        Ok(self.sealer.name_hash(&[&place(space, key), id].concat()))
    }

    pub(super) fn seal_head(&self, head: &RecordsHead) -> Result<Vec<u8>> {
        let sealed = self.seal(HEAD.0, HEAD.1, &head.encode())?;
        Ok([self.check.as_slice(), &sealed].concat())
    }

    pub(super) fn open_head(&self, sealed: &[u8]) -> Result<RecordsHead> {
        let opened = sealed.get(CHECK_LEN..).map(|sealed| self.open(HEAD.0, HEAD.1, sealed));
        let opened = opened.unwrap_or_else(|| Err(foreign(HEAD.0, HEAD.1)))?;
        RecordsHead::decode(&opened).ok_or_else(|| foreign(HEAD.0, HEAD.1))
    }

    /// Returns true if a head was sealed under this master key, even if the head is damaged.
    pub(super) fn knows(&self, sealed: &[u8]) -> bool {
        sealed.starts_with(&self.check)
    }

    pub(super) fn seal_revision(&self, head: &RecordsHead) -> Result<Vec<u8>> {
        self.sealer.seal_at(BlobKind::Record, REVISION_PLACE, &head.encode())
    }

    pub(super) fn open_revision(&self, sealed: &[u8]) -> Option<RecordsHead> {
        let opened = self.sealer.open_at(BlobKind::Record, REVISION_PLACE, sealed).ok()?;
        RecordsHead::decode(&opened)
    }
}

fn derived(master_key: &[u8; 32], label: &[u8]) -> [u8; 32] {
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, master_key), label);
    mac.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Returns the key of the fact that keeps the secret for a purpose.
pub(super) fn secret_key(label: &str) -> Vec<u8> {
    [b"secret/", label.as_bytes()].concat()
}

/// Returns the place of a record. The length of the space's name comes first, so two spaces never
/// share a place. Example: key `bc` of space `a` and key `c` of space `ab` have different places.
fn place(space: &str, key: &[u8]) -> Vec<u8> {
    let length = u8::try_from(space.len()).expect("names of spaces are short");
    [&[length], space.as_bytes(), key].concat()
}

fn foreign(space: &str, key: &[u8]) -> Error {
    let key = key.escape_ascii();
    let what =
        format!("the record {space}/{key} is damaged, or was put there without the master key");
    Error::Foreign { what }
}
