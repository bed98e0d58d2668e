//! Seals blobs.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::{hkdf, hmac};

use super::key::DataKey;
use super::random::{PLANE_ID_LEN, fill_random};
use super::secret::Secret;
use super::segment::{ID_LEN, SegmentSealer, TAG_LEN};
use crate::model::error::{Error, Result};

/// Bytes that a sealed blob has in addition to its content.
pub const SEAL_OVERHEAD: usize = HEAD_LEN + TAG_LEN;

const VERSION: u8 = 1;
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

/// Seals and opens blobs of one plane. Dropping it erases its keys from memory.
pub struct Sealer {
    plane_id: [u8; PLANE_ID_LEN],
    /// The data key, ready for deriving keys.
    root: Secret<hkdf::Prk>,
    name_key: Secret<hmac::Key>,
}

impl Sealer {
    /// Makes a sealer for the plane with this id and key.
    #[must_use]
    pub fn new(data_key: &DataKey, plane_id: [u8; PLANE_ID_LEN]) -> Self {
        let salt = [b"fleetcast plane v1".as_slice(), &plane_id].concat();
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, &salt).extract(&*data_key.0);
        let name_key = derive(&root, &[b"name hash"], hmac::HMAC_SHA256);
        Self { plane_id, root: Secret::new(root), name_key: Secret::new(name_key) }
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
        sealed.extend_from_slice(&[VERSION, kind as u8]);
        sealed.extend_from_slice(&id);
        sealed.extend_from_slice(plain);
        let tag = self
            .blob_key(&id)
            .seal_in_place_separate_tag(
                nonce(),
                self.context(kind, &id, place),
                &mut sealed[HEAD_LEN..],
            )
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
        if *version != VERSION || *kind_code != kind as u8 {
            return None;
        }
        let mut plain = ciphertext.to_vec();
        let context = self.context(kind, id, place);
        self.blob_key(id)
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

    /// Returns the sealer for the parts of the segment with this id.
    #[must_use]
    pub fn segment(&self, id: &[u8; ID_LEN]) -> SegmentSealer {
        let key = derive::<_, UnboundKey>(&self.root, &[b"segment", id], &AES_256_GCM);
        let mut context = [VERSION; 1 + PLANE_ID_LEN + ID_LEN];
        context[1..=PLANE_ID_LEN].copy_from_slice(&self.plane_id);
        context[1 + PLANE_ID_LEN..].copy_from_slice(id);
        SegmentSealer { key: Secret::new(LessSafeKey::new(key)), context }
    }

    fn blob_key(&self, id: &[u8; ID_LEN]) -> LessSafeKey {
        LessSafeKey::new(derive::<_, UnboundKey>(&self.root, &[b"blob", id], &AES_256_GCM))
    }

    /// Returns the bytes authenticated together with the ciphertext: version, kind, plane, blob and
    /// place.
    fn context(&self, kind: BlobKind, id: &[u8; ID_LEN], place: &[u8]) -> Aad<Vec<u8>> {
        Aad::from([[VERSION, kind as u8].as_slice(), &self.plane_id, id, place].concat())
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("plane_id", &self.plane_id).finish_non_exhaustive()
    }
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
