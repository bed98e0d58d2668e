//! The text of an API key: `ftk_<environment>_<key id>_<secret><checksum>`.
//!
//! The checksum is the CRC-32 of all before it, so that a mistyped key is refused before anything is
//! looked up.

const PREFIX: &str = "ftk_";
const ENVIRONMENT_BYTES_MAX: usize = 63;
const ID_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 8;

/// The parts of a well-formed key.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct KeyText<'t> {
    /// The environment that it is for.
    pub environment: &'t str,
    /// The id of its record.
    pub key_id: &'t str,
    /// The secret, of which only a hash is kept.
    pub secret: &'t str,
}

impl<'t> KeyText<'t> {
    /// The parts of a text, `None` if it is no key.
    #[must_use]
    pub fn read(text: &'t str) -> Option<Self> {
        if !text.is_ascii() {
            return None;
        }
        let (checked, checksum) = text.split_at_checked(text.len().checked_sub(CHECKSUM_BYTES)?)?;
        let mut parts = checked.strip_prefix(PREFIX)?.split('_');
        let (environment, key_id, secret) = (parts.next()?, parts.next()?, parts.next()?);
        let is_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let is_base32 = |byte: u8| matches!(byte, b'a'..=b'z' | b'2'..=b'7');
        let is_well_formed = parts.next().is_none()
            && (1..=ENVIRONMENT_BYTES_MAX).contains(&environment.len())
            && environment.bytes().all(is_name)
            && key_id.len() == ID_BYTES
            && secret.len() == SECRET_BYTES
            && key_id.bytes().chain(secret.bytes()).all(is_base32)
            && checksum.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && u32::from_str_radix(checksum, 16) == Ok(crc32fast::hash(checked.as_bytes()));
        is_well_formed.then_some(Self { environment, key_id, secret })
    }
}
