//! Words of digits, and the choice of the number of digits in a word.

use crate::codec::integer::bit_packing::{is_width, packed_len};
use crate::codec::simd::kernels::LANES;

/// Radices are smaller than this, so that a digit times a radix fits 64 bits.
pub(crate) const RADIX_END: u64 = 1 << 31;

/// Maximum number of digits in a word.
const DIGITS_MAX: u32 = 64;

/// Maximum width of a narrow word in bits.
pub(super) const NARROW_BITS: u32 = 32;

/// Number of words of each lane in a group of narrow words.
pub(super) const LANE_WORDS: usize = 32;

/// Number of narrow words in a group.
pub(super) const NARROW_GROUP: usize = LANES * LANE_WORDS;

/// Layout of digits in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordLayout {
    pub(super) radix: u32,
    /// Number of digits in a word.
    pub(super) digits: u32,
    /// The radix to the power of `digits`.
    pub(super) power: u64,
    /// Width of a word in bits.
    pub(super) width: u32,
}

impl WordLayout {
    /// Returns words of `digits` digits below `radix`, or `None` if the format has no such words.
    pub(crate) fn new(radix: u64, digits: u32) -> Option<Self> {
        if digits == 0 || digits > DIGITS_MAX {
            return None;
        }
        let power = radix.checked_pow(digits)?;
        let width = bits_of(power.checked_sub(1)?);
        let radix = u32::try_from(radix).ok().filter(|_| radix < RADIX_END)?;
        is_width(width).then_some(Self { radix, digits, power, width })
    }

    /// Returns the words that hold `count` digits below `radix` in the fewest bytes. Wide words,
    /// which are slower to read, are chosen only if they save at least a hundredth.
    ///
    /// # Panics
    ///
    /// Panics if `radix` is 0 or not below [`RADIX_END`].
    pub(crate) fn densest(radix: u64, count: usize) -> Self {
        let mut best = Self::new(radix, 1).expect("a radix in its limits");
        let mut best_len = best.len(count);
        let mut power = radix;
        for digits in 2..=DIGITS_MAX {
            let Some(next) = power.checked_mul(radix).filter(|_| radix > 1) else { break };
            power = next;
            let words = Self { digits, power, width: bits_of(power - 1), ..best };
            if !is_width(words.width) {
                continue;
            }
            let len = words.len(count);
            let saved_min = if words.is_narrow() { 1 } else { best_len / 100 + 1 };
            if len + saved_min <= best_len {
                (best, best_len) = (words, len);
            }
        }
        best
    }

    pub(crate) const fn radix(&self) -> u32 {
        self.radix
    }

    pub(crate) const fn digits(&self) -> u32 {
        self.digits
    }

    /// Number of words for `count` digits.
    pub(super) const fn word_count(&self, count: usize) -> usize {
        count.div_ceil(self.digits as usize)
    }

    /// Bytes that `count` digits take.
    pub(crate) const fn len(&self, count: usize) -> usize {
        packed_len(self.word_count(count), self.width)
    }

    pub(super) const fn is_narrow(&self) -> bool {
        self.width <= NARROW_BITS
    }
}

const fn bits_of(max: u64) -> u32 {
    64 - max.leading_zeros()
}

/// Returns the lowest 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "truncation is the purpose")]
pub(super) const fn low_half(value: u64) -> u32 {
    value as u32
}
