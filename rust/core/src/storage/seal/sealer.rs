//! Seals blobs.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::{hkdf, hmac};
use zeroize::Zeroizing;

use super::data_keys::{DataKeys, KeyId, KeySlot};
use super::key::DataKey;
use super::random::{PLANE_ID_LEN, fill_random};
use super::secret::Secret;
use super::segment::{ID_LEN, SegmentSealer, TAG_LEN};
use crate::model::error::{Error, Result};

/// Bytes that a sealed blob has in addition to its content.
pub const SEAL_OVERHEAD: usize = HEAD_LEN + TAG_LEN;

/// Version of what the key in slot 0 seals. The key in slot 1 has the version after it.
const FIRST_VERSION: u8 = 1;
const HEAD_LEN: usize = 2 + ID_LEN;

/// Kind of content of a blob. The kind is authenticated, so a blob of one kind cannot pass for
/// another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlobKind {
    /// A block of the log.
    LogBlock = 1,
    /// Names of the catalog.
    Names = 2,
    /// A data key.
    Key = 3,
    /// The list of segments.
    Manifest = 4,
    /// A small record.
    Record = 5,
    /// A blob that the program around the engine keeps next to the plane.
    Beside = 16,
}

impl BlobKind {
    const fn what(self) -> &'static str {
        match self {
            Self::LogBlock => "a sealed log block",
            Self::Names => "a sealed name",
            Self::Key => "a sealed key",
            Self::Manifest => "the sealed manifest",
            Self::Record => "a sealed record",
            Self::Beside => "a sealed value",
        }
    }
}

/// Returns the id of a sealed blob, which no other blob has. Returns `None` if the bytes are not a
/// sealed blob.
#[must_use]
pub fn blob_id(sealed: &[u8]) -> Option<&[u8]> {
    sealed.get(2..HEAD_LEN)
}

/// Returns the slot of the key that sealed a blob. Returns `None` if the bytes are not a sealed blob.
#[must_use]
pub fn blob_slot(sealed: &[u8]) -> Option<KeySlot> {
    sealed.first()?.checked_sub(FIRST_VERSION)
}

/// Seals and opens blobs of one plane. Dropping it erases its keys from memory.
pub struct Sealer {
    plane_id: [u8; PLANE_ID_LEN],
    /// The data keys, ready for deriving keys.
    roots: Vec<(KeySlot, Secret<hkdf::Prk>)>,
    keys: DataKeys,
    name_key: Secret<hmac::Key>,
}

impl Sealer {
    /// Makes a sealer for the plane with this id and key.
    #[must_use]
    pub fn new(data_key: &DataKey, plane_id: [u8; PLANE_ID_LEN]) -> Self {
        Self::of(&data_key.clone().into(), plane_id)
    }

    /// Makes a sealer for the plane with this id and these keys.
    #[must_use]
    pub fn of(keys: &DataKeys, plane_id: [u8; PLANE_ID_LEN]) -> Self {
        let roots = keys.keys.iter().map(|(slot, key)| (*slot, root_of(key, &plane_id)));
        let name_key = hmac::Key::new(hmac::HMAC_SHA256, &*name_key_of(keys, &plane_id));
        Self {
            plane_id,
            roots: roots.collect(),
            keys: keys.clone(),
            name_key: Secret::new(name_key),
        }
    }

    /// Returns true if the other sealer has the same keys.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.keys == other.keys
    }

    /// Returns true if a key of the plane has turned, so that bytes may be under a key that is gone.
    #[must_use]
    pub fn has_turned(&self) -> bool {
        self.keys.name_key.is_some()
    }

    /// Returns the id of the key that seals.
    #[must_use]
    pub fn sealing_id(&self) -> KeyId {
        self.keys.sealing_id(&self.plane_id)
    }

    /// Returns the slot of the key that only opens what it sealed, if there is such a key.
    #[must_use]
    pub fn old(&self) -> Option<KeySlot> {
        self.keys.old()
    }

    /// Seals `plain`. The result has [`SEAL_OVERHEAD`] bytes more. Example: 100 bytes are sealed in
    /// 134 bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if the system has no random bytes.
    ///
    /// # Panics
    ///
    /// If `plain` is longer than AES-GCM allows, 64 GiB.
    pub fn seal(&self, kind: BlobKind, plain: &[u8]) -> Result<Vec<u8>> {
        self.seal_at(kind, &[], plain)
    }

    /// Seals `plain` for `place`. The blob does not open at any other place.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::seal`].
    ///
    /// # Panics
    ///
    /// If `plain` is longer than AES-GCM allows, 64 GiB.
    pub fn seal_at(&self, kind: BlobKind, place: &[u8], plain: &[u8]) -> Result<Vec<u8>> {
        let mut id = [0; ID_LEN];
        fill_random(&mut id)?;
        let mut sealed = Vec::with_capacity(plain.len() + SEAL_OVERHEAD);
        let version = FIRST_VERSION + self.keys.sealing();
        sealed.extend_from_slice(&[version, kind as u8]);
        sealed.extend_from_slice(&id);
        sealed.extend_from_slice(plain);
        let context = self.context(version, kind, &id, place);
        let tag = blob_key(self.sealing_root(), &id)
            .seal_in_place_separate_tag(nonce(), context, &mut sealed[HEAD_LEN..])
            .expect("blobs are shorter than 64 GiB");
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Opens a blob that [`Self::seal`] made of the same kind, for the same plane, under the same
    /// key.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] if `sealed` is anything else.
    pub fn open(&self, kind: BlobKind, sealed: &[u8]) -> Result<Vec<u8>> {
        self.open_at(kind, &[], sealed)
    }

    /// Opens a blob that [`Self::seal_at`] made for the same place.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::open`].
    pub fn open_at(&self, kind: BlobKind, place: &[u8], sealed: &[u8]) -> Result<Vec<u8>> {
        self.open_parts(kind, place, sealed).ok_or(Error::Corrupt { what: kind.what() })
    }

    pub(super) fn open_parts(
        &self,
        kind: BlobKind,
        place: &[u8],
        sealed: &[u8],
    ) -> Option<Vec<u8>> {
        let ([version, kind_code], rest) = sealed.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (ciphertext, tag) = rest.split_last_chunk::<TAG_LEN>()?;
        if *kind_code != kind as u8 {
            return None;
        }
        let root = self.root(version.checked_sub(FIRST_VERSION)?)?;
        let mut plain = ciphertext.to_vec();
        let context = self.context(*version, kind, id, place);
        blob_key(root, id)
            .open_in_place_separate_tag(nonce(), context, Tag::from(*tag), &mut plain, 0..)
            .ok()?;
        Some(plain)
    }

    /// Returns a keyed hash of a name kept next to the plane. A lookup by this hash does not show
    /// the name.
    #[must_use]
    pub fn name_hash(&self, name: &[u8]) -> [u8; 16] {
        let mut context = hmac::Context::with_key(&self.name_key);
        context.update(&[BlobKind::Beside as u8]);
        context.update(name);
        let tag = context.sign();
        let mut hash = [0; 16];
        hash.copy_from_slice(&tag.as_ref()[..16]);
        hash
    }

    /// Returns the sealer for the parts of a new segment with this id.
    #[must_use]
    pub fn segment(&self, id: &[u8; ID_LEN]) -> SegmentSealer {
        self.segment_under(self.sealing_root(), self.keys.sealing(), id)
    }

    /// Returns the sealer for the parts of the segment with this id, which the key in `slot` sealed.
    /// Returns `None` if the plane has no key in this slot.
    #[must_use]
    pub fn segment_of(&self, slot: KeySlot, id: &[u8; ID_LEN]) -> Option<SegmentSealer> {
        Some(self.segment_under(self.root(slot)?, slot, id))
    }

    fn segment_under(&self, root: &hkdf::Prk, slot: KeySlot, id: &[u8; ID_LEN]) -> SegmentSealer {
        let key = derive::<_, UnboundKey>(root, &[b"segment", id], &AES_256_GCM);
        let mut context = [FIRST_VERSION + slot; 1 + PLANE_ID_LEN + ID_LEN];
        context[1..=PLANE_ID_LEN].copy_from_slice(&self.plane_id);
        context[1 + PLANE_ID_LEN..].copy_from_slice(id);
        SegmentSealer { key: Secret::new(LessSafeKey::new(key)), slot, context }
    }

    fn root(&self, slot: KeySlot) -> Option<&hkdf::Prk> {
        self.roots.iter().find(|(other, _)| *other == slot).map(|(_, root)| &**root)
    }

    fn sealing_root(&self) -> &hkdf::Prk {
        self.root(self.keys.sealing()).expect("one of the keys seals")
    }

    /// Returns the bytes authenticated together with the ciphertext: version, kind, plane, blob and
    /// place.
    fn context(
        &self,
        version: u8,
        kind: BlobKind,
        id: &[u8; ID_LEN],
        place: &[u8],
    ) -> Aad<Vec<u8>> {
        Aad::from([[version, kind as u8].as_slice(), &self.plane_id, id, place].concat())
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("plane_id", &self.plane_id).finish_non_exhaustive()
    }
}

fn root_of(key: &DataKey, plane_id: &[u8; PLANE_ID_LEN]) -> Secret<hkdf::Prk> {
    let salt = [b"fleetcast plane v1".as_slice(), plane_id].concat();
    Secret::new(hkdf::Salt::new(hkdf::HKDF_SHA256, &salt).extract(&*key.0))
}

impl DataKeys {
    /// Returns the ids of the keys of the plane with this id, oldest first.
    #[must_use]
    pub fn ids(&self, plane_id: &[u8; PLANE_ID_LEN]) -> Vec<KeyId> {
        self.keys.iter().map(|(_, key)| id_of(key, plane_id)).collect()
    }

    /// Returns the id of the key that seals.
    ///
    /// # Panics
    /// Never: one of the keys seals.
    #[must_use]
    pub fn sealing_id(&self, plane_id: &[u8; PLANE_ID_LEN]) -> KeyId {
        let sealing = self.keys.iter().find(|(slot, _)| *slot == self.sealing);
        id_of(&sealing.expect("one of the keys seals").1, plane_id)
    }
}

fn id_of(key: &DataKey, plane_id: &[u8; PLANE_ID_LEN]) -> KeyId {
    let output = expanded(&root_of(key, plane_id), b"key id");
    let mut id = [0; 16];
    id.copy_from_slice(&output[..16]);
    id
}

fn expanded(root: &hkdf::Prk, info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut bytes = Zeroizing::new([0; 32]);
    let info = [info];
    let output = root.expand(&info, hkdf::HKDF_SHA256);
    output.and_then(|output| output.fill(&mut *bytes)).expect("one block of HKDF output");
    bytes
}

/// Returns the key of the hashes of names, which stays the same when the data key turns.
fn name_key_of(keys: &DataKeys, plane_id: &[u8; PLANE_ID_LEN]) -> Zeroizing<[u8; 32]> {
    match (&keys.name_key, &*keys.keys) {
        (Some(key), _) => key.0.clone(),
        (None, [(_, first), ..]) => expanded(&root_of(first, plane_id), b"name hash"),
        (None, []) => unreachable!("a plane has a key"),
    }
}

/// Returns the keys with a new key, which does not seal yet.
///
/// # Errors
/// Returns [`Error::Io`] if the system has no random bytes.
pub fn with_new_key(keys: DataKeys, plane_id: &[u8; PLANE_ID_LEN]) -> Result<DataKeys> {
    let name_key = name_key_of(&keys, plane_id);
    keys.with_new(&name_key)
}

fn blob_key(root: &hkdf::Prk, id: &[u8; ID_LEN]) -> LessSafeKey {
    LessSafeKey::new(derive::<_, UnboundKey>(root, &[b"blob", id], &AES_256_GCM))
}

/// The nonce is constant: each key is derived for one blob and seals no other blob.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

fn derive<L, K>(root: &hkdf::Prk, info: &[&[u8]], length: L) -> K
where
    L: hkdf::KeyType,
    K: for<'a> From<hkdf::Okm<'a, L>>,
{
    K::from(root.expand(info, length).expect("one block of HKDF output"))
}
