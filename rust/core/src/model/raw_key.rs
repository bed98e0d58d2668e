//! Raw keys: the bytes that a wire format has for a measurement and its tags, as a digest.
//!
//! The digest of tags is NH of UMAC (RFC 4418, section 5.2) with words of 64 bits: the bytes are cut
//! into pairs of words, a secret word is added to each, and the products of the pairs are added up.
//! Two texts of one length have the same digest with a probability of at most 2^-64, whatever the
//! texts are, because no client sees a digest. Texts of other lengths are told apart by the length.
//!
//! The format and the measurement make a second sum, under words of their own. It is added to the
//! sum of the tags, and computed once for all tags of a measurement.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

use foldhash::quality::RandomState as TableState;

const PAIR_BYTES: usize = 16;
/// Bytes that one sum takes. The sums of longer texts are summed again, under other words.
const SUM_BYTES_MAX: usize = 1 << 10;
/// One more pair than `SUM_BYTES_MAX` has: the last pair may overlap the pair before.
const PAIRS: usize = SUM_BYTES_MAX / PAIR_BYTES + 1;
/// Levels of sums for tags of 4 GiB: each level has a 64th of the bytes of the level before.
const LEVELS: usize = 5;

/// A raw key. Within one tenant, equal keys mean the same series. Keys are valid in one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawKey {
    hash: u64,
    digest: RawDigest,
}

/// Stands for the bytes of a raw key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawDigest {
    /// A `u128`, as bytes so that it needs no alignment.
    sum: [u8; 16],
    tags_length: u32,
}

/// Part of the digests of all raw keys of a format and measurement.
#[derive(Clone, Copy)]
pub(crate) struct RawKeyStart(u128);

/// Secret words for sums of products.
type Words = [[u64; 2]; PAIRS];

/// Secrets of this process.
pub(crate) struct RawKeyHasher {
    table: TableState,
    tags: [Words; LEVELS],
    measurements: [Words; LEVELS],
    start: [u64; 2],
}

impl RawKey {
    /// Returns the raw key of `measurement` and `tags` as `format` has them. `format` separates wire
    /// formats, so that their raw keys never match.
    ///
    /// # Panics
    /// Panics if the tags have 4 GiB or more.
    #[must_use]
    pub fn of(format: u8, measurement: &str, tags: &[u8]) -> Self {
        let hasher = RawKeyHasher::of_process();
        let digest = hasher.digest(hasher.start(format, measurement), tags);
        Self::new(hasher.hash(format, measurement, tags), digest)
    }

    pub(crate) const fn new(hash: u64, digest: RawDigest) -> Self {
        Self { hash, digest }
    }

    /// Returns the hash of the raw key, for tables.
    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) const fn digest(&self) -> &RawDigest {
        &self.digest
    }
}

impl RawDigest {
    /// Returns the length of the tags if `text` begins with the tags of this digest, and the digest
    /// begins with `start`.
    #[inline]
    pub(crate) fn tags_in(
        &self,
        hasher: &RawKeyHasher,
        start: RawKeyStart,
        text: &[u8],
    ) -> Option<usize> {
        let tags = text.get(..self.tags_length as usize)?;
        (hasher.digest(start, tags) == *self).then_some(tags.len())
    }
}

impl RawKeyHasher {
    /// Returns the hasher of this process.
    pub(crate) fn of_process() -> &'static Self {
        static HASHER: LazyLock<RawKeyHasher> = LazyLock::new(|| {
            // SipHash with a key from the operating system makes the secret words.
            let (random, mut count) = (RandomState::new(), 0_u64);
            let mut word = || {
                count += 1;
                random.hash_one(count)
            };
            let mut words = || std::array::from_fn(|_| [word(), word()]);
            RawKeyHasher {
                table: TableState::default(),
                tags: std::array::from_fn(|_| words()),
                measurements: std::array::from_fn(|_| words()),
                start: [word(), word()],
            }
        });
        &HASHER
    }

    /// Returns the hash of a raw key, for tables. It shares no secret with the digest.
    pub(crate) fn hash(&self, format: u8, measurement: &str, tags: &[u8]) -> u64 {
        let mut hasher = self.table.build_hasher();
        hasher.write(measurement.as_bytes());
        hasher.write(tags);
        hasher.write_usize(measurement.len() << 8 | usize::from(format));
        hasher.finish()
    }

    /// Returns the part of a digest that a format and measurement make.
    pub(crate) fn start(&self, format: u8, measurement: &str) -> RawKeyStart {
        let parts = [u64::from(format), measurement.len() as u64];
        let sum = product(parts, self.start);
        RawKeyStart(sum.wrapping_add(sum_of(&self.measurements, measurement.as_bytes())))
    }

    /// Returns the digest of a raw key.
    ///
    /// # Panics
    /// Panics if the tags have 4 GiB or more.
    #[inline]
    pub(crate) fn digest(&self, start: RawKeyStart, tags: &[u8]) -> RawDigest {
        let sum = start.0.wrapping_add(sum_of(&self.tags, tags)).to_le_bytes();
        let tags_length = u32::try_from(tags.len()).expect("a body is far below 4 GiB");
        RawDigest { sum, tags_length }
    }
}

#[inline]
fn sum_of(levels: &[Words], bytes: &[u8]) -> u128 {
    let (words, levels) = levels.split_first().expect("tags are far below 4 GiB");
    if bytes.len() <= SUM_BYTES_MAX {
        sum_of_products(words, bytes)
    } else {
        long(words, levels, bytes)
    }
}

/// Returns the sum of the sums of the pieces of a long text.
#[cold]
#[inline(never)]
fn long(words: &Words, levels: &[Words], bytes: &[u8]) -> u128 {
    let pieces = bytes.chunks(SUM_BYTES_MAX);
    let sums = pieces.flat_map(|piece| sum_of_products(words, piece).to_le_bytes());
    sum_of(levels, &sums.collect::<Vec<_>>())
}

#[inline]
fn sum_of_products(words: &Words, bytes: &[u8]) -> u128 {
    let (pairs, rest) = bytes.as_chunks::<PAIR_BYTES>();
    let mut sum = 0_u128;
    for (pair, secret) in pairs.iter().zip(words) {
        sum = sum.wrapping_add(product(pair_of(*pair), *secret));
    }
    if rest.is_empty() {
        return sum;
    }
    // The last pair of a text overlaps the pair before. A short text is filled up with zeros.
    let last = bytes
        .last_chunk()
        .copied()
        .unwrap_or_else(|| std::array::from_fn(|at| rest.get(at).copied().unwrap_or_default()));
    sum.wrapping_add(product(pair_of(last), words[pairs.len()]))
}

#[inline]
fn pair_of(bytes: [u8; PAIR_BYTES]) -> [u64; 2] {
    let both = u128::from_le_bytes(bytes);
    #[expect(clippy::cast_possible_truncation, reason = "each half becomes a word")]
    [both as u64, (both >> 64) as u64]
}

#[inline]
fn product(pair: [u64; 2], secret: [u64; 2]) -> u128 {
    let [first, second] = [0, 1].map(|at| u128::from(pair[at].wrapping_add(secret[at])));
    first * second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_or_length_makes_another_key_at_every_length() {
        for length in (0..=80).chain([1_023, 1_024, 1_025, 1_030, 2_048, 70_000]) {
            let tags: Vec<u8> = (0_u8..=255).cycle().take(length).collect();
            let key = RawKey::of(b'j', "link", &tags);
            assert_eq!(RawKey::of(b'j', "link", &tags), key);
            for at in (0..length).filter(|at| length < 3_000 || at % 997 == 0) {
                let mut other = tags.clone();
                other[at] ^= 1;
                let other = RawKey::of(b'j', "link", &other);
                assert_ne!(other.digest, key.digest, "{at} of {length}");
                assert_ne!(other.hash, key.hash, "{at} of {length}");
            }
            let longer = [&*tags, &[0]].concat();
            assert_ne!(RawKey::of(b'j', "link", &longer).digest, key.digest);
        }
    }

    #[test]
    fn formats_and_measurements_have_keys_of_their_own() {
        let key = |format, measurement| RawKey::of(format, measurement, b",a=1").digest;
        let keys = [key(b'l', "m"), key(b'n', "m"), key(b'l', "m\0"), key(b'l', "")];
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{at}");
        }
    }

    #[test]
    fn tags_are_found_only_where_a_text_begins_with_them() {
        let hasher = RawKeyHasher::of_process();
        let start = hasher.start(b'l', "m");
        let digest = hasher.digest(start, b",a=1");
        assert_eq!(digest.tags_in(hasher, start, b",a=1 x=2"), Some(4));
        for text in [&b",a=2 x=2"[..], b",a=", b""] {
            assert_eq!(digest.tags_in(hasher, start, text), None);
        }
        assert_eq!(digest.tags_in(hasher, hasher.start(b'l', "n"), b",a=1 x=2"), None);
    }
}
