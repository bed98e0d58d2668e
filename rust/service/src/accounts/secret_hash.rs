//! Keyed hashes. The store keeps only the hash of a secret.

use std::fmt::Write;

use ring::hmac;

/// Length of a hash in bytes.
pub(super) const HASH_BYTES: usize = 32;

/// HMAC-SHA-256 under a key.
pub struct SecretHasher(hmac::Key);

impl SecretHasher {
    /// Makes a hasher with the key `pepper`.
    #[must_use]
    pub fn new(pepper: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, pepper))
    }

    /// Returns the hash of a secret, in hexadecimal.
    #[must_use]
    pub fn hash(&self, secret: &str) -> String {
        let mut text = String::with_capacity(2 * HASH_BYTES);
        for byte in hmac::sign(&self.0, secret.as_bytes()).as_ref() {
            let _ = write!(text, "{byte:02x}"); // writing to a text cannot fail
        }
        text
    }

    /// Returns true if `kept` is the hash of `secret`.
    ///
    /// Takes the same time if `kept` is `None`, so that an unknown id cannot be told from a wrong
    /// secret.
    #[must_use]
    pub fn proves(&self, secret: &str, kept: Option<&[u8; HASH_BYTES]>) -> bool {
        let expected = kept.unwrap_or(&[0; HASH_BYTES]);
        hmac::verify(&self.0, secret.as_bytes(), expected).is_ok() && kept.is_some()
    }
}

/// Returns the bytes of a hash in hexadecimal.
#[must_use]
pub fn read_hash(text: &str) -> Option<[u8; HASH_BYTES]> {
    let mut hash = [0; HASH_BYTES];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != HASH_BYTES || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(pairs) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
    }
    Some(hash)
}
