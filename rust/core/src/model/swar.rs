//! Processes eight bytes of text at a time, in one register.

/// A 1 in each byte.
pub(crate) const ONES: u64 = 0x0101_0101_0101_0101;
/// The high bit of each byte.
pub(crate) const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
/// Eight characters `0`.
const ZEROS: u64 = ONES * 0x30;

/// Returns the first eight bytes of `text`, the first in the lowest byte. A shorter text is padded
/// with zeros.
#[inline]
pub(crate) fn word(text: &[u8]) -> u64 {
    u64::from_le_bytes(match text.first_chunk::<8>() {
        Some(chunk) => *chunk,
        None => std::array::from_fn(|at| text.get(at).copied().unwrap_or(0)),
    })
}

/// Returns high bits of bytes of `word`. The lowest of them marks the first byte equal to `byte`.
#[inline]
pub(crate) const fn equal_bytes(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * byte as u64);
    difference.wrapping_sub(ONES) & !difference & HIGH_BITS
}

/// Returns the eight characters of `word` as digits (0 to 9), and high bits of bytes. The lowest of
/// the high bits marks the first character that is no digit.
#[inline]
pub(crate) const fn digits_and_others(word: u64) -> (u64, u64) {
    let digits = word ^ ZEROS;
    (digits, (digits.wrapping_add(ONES * 0x76) | digits) & HIGH_BITS)
}

/// Returns the number of digits at the start of the eight characters of `word`.
#[inline]
pub(crate) const fn digit_count(word: u64) -> usize {
    (digits_and_others(word).1.trailing_zeros() / 8) as usize
}

/// Returns the number that the first `count` characters of `word` represent, at most seven digits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most seven")]
pub(crate) const fn few_digits(word: u64, count: usize) -> u64 {
    // The shift moves zeros in before the digits and drops the characters after them. There are two
    // shifts, because all eight characters may have to go.
    let bit_count = (count as u32).wrapping_mul(8);
    number((word ^ ZEROS).wrapping_shl(8).wrapping_shl(56_u32.wrapping_sub(bit_count)))
}

/// Returns the number that the eight digits in `word` represent.
#[inline]
pub(crate) const fn eight_digits(word: u64) -> u64 {
    number(word ^ ZEROS)
}

/// Returns the number that eight digits (0 to 9, not their characters) represent, the first in the
/// lowest byte.
#[inline]
pub(crate) const fn number(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_counted_and_read() {
        for text in ["", "7", "42", "007.5", "123456,7", "1234567z", "12345678", "123456789"] {
            let digits: String = text.chars().take(8).take_while(char::is_ascii_digit).collect();
            let word = word(text.as_bytes());
            assert_eq!(digit_count(word), digits.len(), "{text}");
            let value =
                if digits.len() < 8 { few_digits(word, digits.len()) } else { eight_digits(word) };
            assert_eq!(value, digits.parse().unwrap_or(0), "{text}");
        }
    }

    #[test]
    fn every_byte_that_is_no_digit_ends_them() {
        for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
            for at in 0..8 {
                let mut text = *b"90909090";
                text[at] = byte;
                assert_eq!(digit_count(word(&text)), at);
                let found = equal_bytes(word(&text), byte).trailing_zeros() / 8;
                assert_eq!(usize::try_from(found), Ok(at));
            }
        }
    }
}
