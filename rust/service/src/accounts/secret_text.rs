//! Texts that prove an identity. Each holds an id, which finds a record, and a secret.
//!
//! | kind | text |
//! |---|---|
//! | key | `ftk_<environment>_<id>_<secret><checksum>` |
//! | operator token | `fto_<id>_<secret><checksum>` |
//! | console session | `<id>.<secret>` |
//!
//! The checksum is the CRC-32 of the text before it. A mistyped text is therefore refused before
//! any record is read, and a leaked text is easy to search for. No part contains a separator.

use fleetcast_core::model::error::Error;
use fleetcast_core::storage::seal::fill_random;

const ENVIRONMENT_BYTES_MAX: usize = 63;
const ID_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 8;
/// The alphabet of RFC 4648, 6, in lower case: 5 bits for each letter.
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The kinds of secret texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    /// A client of a tenant holds it. No other kind has an environment.
    Key,
    /// An operator holds it and opens sessions with it.
    Token,
    /// A browser holds it.
    Session,
}

/// The parts of a well-formed text.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct SecretText<'t> {
    /// The environment of a key; empty for the other kinds.
    pub environment: &'t str,
    /// The id of the record.
    pub id: &'t str,
    /// The secret, of which only a hash is kept.
    pub secret: &'t str,
}

impl<'t> SecretText<'t> {
    /// Returns the parts of a text, or `None` if the text is not of this kind.
    #[must_use]
    pub fn read(kind: SecretKind, text: &'t str) -> Option<Self> {
        let is_key = kind == SecretKind::Key;
        let mut parts = match kind {
            SecretKind::Key => checked(text)?.strip_prefix("ftk_")?.split('_'),
            SecretKind::Token => checked(text)?.strip_prefix("fto_")?.split('_'),
            SecretKind::Session => text.split('.'),
        };
        let environment = if is_key { parts.next()? } else { "" };
        let (id, secret) = (parts.next()?, parts.next()?);
        let is_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let is_well_formed = parts.next().is_none()
            && is_key == (1..=ENVIRONMENT_BYTES_MAX).contains(&environment.len())
            && environment.bytes().all(is_name)
            && id.len() == ID_BYTES
            && secret.len() == SECRET_BYTES
            && id.bytes().chain(secret.bytes()).all(|byte| BASE32.contains(&byte));
        is_well_formed.then_some(Self { environment, id, secret })
    }
}

/// Returns the text before the checksum, or `None` if the checksum is wrong.
fn checked(text: &str) -> Option<&str> {
    let (checked, checksum) = text.split_at_checked(text.len().checked_sub(CHECKSUM_BYTES)?)?;
    let is_hexadecimal = checksum.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_right = u32::from_str_radix(checksum, 16) == Ok(crc32fast::hash(checked.as_bytes()));
    (is_hexadecimal && is_right).then_some(checked)
}

/// Makes a text with a new id and a new secret of 160 bits. `environment` is the environment of a
/// key.
///
/// # Errors
/// Returns [`Error::Io`] if the system has no random bytes.
pub fn new_secret_text(kind: SecretKind, environment: &str) -> Result<String, Error> {
    let (id, secret) = (random::<ID_BYTES>()?, random::<SECRET_BYTES>()?);
    let checked = match kind {
        SecretKind::Key => format!("ftk_{environment}_{id}_{secret}"),
        SecretKind::Token => format!("fto_{id}_{secret}"),
        SecretKind::Session => return Ok(format!("{id}.{secret}")),
    };
    Ok(format!("{checked}{:08x}", crc32fast::hash(checked.as_bytes())))
}

/// Returns `LENGTH` random characters of base 32.
fn random<const LENGTH: usize>() -> Result<String, Error> {
    let mut bytes = [0; LENGTH];
    fill_random(&mut bytes)?;
    Ok(bytes.iter().map(|byte| char::from(BASE32[usize::from(byte % 32)])).collect())
}
