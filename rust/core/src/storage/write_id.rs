//! Identifiers of writes: UUID version 7 (RFC 9562, section 5.7).

use crate::model::error::Result;
use crate::storage::seal::fill_random;

/// Makes an identifier that sorts by the millisecond of `now_ns`. Its 74 random bits make it unique
/// across processes.
///
/// # Errors
/// Returns [`crate::model::error::Error::Io`] if the operating system gives no random bytes.
pub fn new(now_ns: i64) -> Result<String> {
    let mut bytes = [0_u8; 16];
    fill_random(&mut bytes)?;
    let ms = now_ns.max(0) / 1_000_000;
    bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
    bytes[6] = bytes[6] & 0x0f | 0x70;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f2_identifiers_are_version_7_sort_by_time_and_never_repeat() {
        let earlier = new(1_700_000_000_000_000_000).unwrap();
        let later = new(1_700_000_000_001_000_000).unwrap();
        assert!(earlier < later);
        assert_eq!(earlier.len(), 36);
        assert_eq!(&earlier[14..15], "7");
        assert!("89ab".contains(&earlier[19..20]));
        assert!(earlier.starts_with("018bcfe5-6800-"));
        assert_ne!(new(0).unwrap(), new(0).unwrap());
    }
}
