//! Tokens. A number below 16 has its own token. Larger numbers share two tokens for each power of
//! two.
//!
//! Example: 16 to 23 share token 16, and 24 to 31 share token 17.

/// Numbers below this have their own token.
const DIRECT: u64 = 1 << DIRECT_BITS;
const DIRECT_BITS: u32 = 4;

/// Number of tokens.
pub(super) const TOKENS: usize = (1 << DIRECT_BITS) + 2 * (64 - DIRECT_BITS as usize);

/// Returns the token of a number.
#[inline]
pub(super) const fn token_of(number: u64) -> u8 {
    let exponent = (number | 1).ilog2();
    let token = if exponent < DIRECT_BITS {
        number
    } else {
        let half = (number >> (exponent - 1)) & 1;
        DIRECT + (2 * (exponent - DIRECT_BITS)) as u64 + half
    };
    token.to_le_bytes()[0]
}

/// The numbers of one token.
#[derive(Clone, Copy)]
pub(super) struct Class {
    pub(super) first: u64,
    /// Number of bits that tell the numbers of the token apart.
    pub(super) bits: u32,
}

/// Classes by token. There is a class for each byte, so that no index is checked.
pub(super) static CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut all = [Class { first: 0, bits: 0 }; 256];
    let mut token = 0_u32;
    while (token as usize) < TOKENS {
        let number = token as u64;
        all[token as usize] = if number < DIRECT {
            Class { first: number, bits: 0 }
        } else {
            let bits = (token - (1 << DIRECT_BITS)) / 2 + DIRECT_BITS - 1;
            Class { first: (2 | (number & 1)) << bits, bits }
        };
        token += 1;
    }
    all
}

/// Maps a difference of either sign near 0 to a small number.
#[inline]
pub(super) const fn zigzag(difference: u64) -> u64 {
    difference << 1 ^ (difference.cast_signed() >> 63).cast_unsigned()
}

/// Returns the difference that [`zigzag`] was given.
#[inline]
pub(super) const fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}
