//! Digits of any radix, several to a word: numbers below 41 in 5.4 bits instead of 6.
//!
//! A word is the fraction `0.d1 d2 d3 …` in that radix, rounded up to its last bit. Multiplying it by
//! the radix moves the first digit in front of the point, so a digit costs one multiplication.

use super::bitpack::{self, GROUP, packed_len};
use super::vector::vectorised;

/// Radices are smaller than this, so that a digit times a radix fits 64 bits.
pub(super) const RADIX_END: u64 = 1 << 31;

/// Most digits of a word.
const DIGITS_MAX: u32 = 64;

/// Words of at most so many bits are narrow: several fit a vector.
const NARROW_BITS: u32 = 32;

/// Narrow words lie side by side in so many lanes …
const LANES: usize = 8;

/// … each of which has so many of a group.
const LANE_WORDS: usize = 32;

/// Narrow words of a group.
const WORDS: usize = LANES * LANE_WORDS;

/// How digits lie in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    radix: u32,
    /// Digits of a word.
    digits: u32,
    /// The radix to the power of `digits`.
    power: u64,
    /// Bits of a word.
    width: u32,
}

impl Words {
    /// Words of so many digits below `radix`, if there are such words.
    pub(super) fn new(radix: u64, digits: u32) -> Option<Self> {
        if digits == 0 || digits > DIGITS_MAX {
            return None;
        }
        let power = radix.checked_pow(digits)?;
        let width = bits_of(power.checked_sub(1)?);
        let radix = u32::try_from(radix).ok().filter(|_| radix < RADIX_END)?;
        bitpack::is_width(width).then_some(Self { radix, digits, power, width })
    }

    /// The words in which `count` digits below `radix` are shortest; wide ones, which are slower to
    /// read, only where they save a hundredth.
    ///
    /// # Panics
    ///
    /// If `radix` is 0 or not below [`RADIX_END`].
    pub(super) fn densest(radix: u64, count: usize) -> Self {
        let mut best = Self::new(radix, 1).expect("a radix in its limits");
        let mut best_len = best.len(count);
        let mut power = radix;
        for digits in 2..=DIGITS_MAX {
            let Some(next) = power.checked_mul(radix).filter(|_| radix > 1) else { break };
            power = next;
            let words = Self { digits, power, width: bits_of(power - 1), ..best };
            if !bitpack::is_width(words.width) {
                continue;
            }
            let len = words.len(count);
            let saved = if words.is_narrow() { 1 } else { best_len / 100 + 1 };
            if len + saved <= best_len {
                (best, best_len) = (words, len);
            }
        }
        best
    }

    pub(super) const fn radix(&self) -> u32 {
        self.radix
    }

    pub(super) const fn digits(&self) -> u32 {
        self.digits
    }

    /// Number of words for `count` digits.
    const fn words(&self, count: usize) -> usize {
        count.div_ceil(self.digits as usize)
    }

    /// Bytes that `count` digits take.
    pub(super) const fn len(&self, count: usize) -> usize {
        packed_len(self.words(count), self.width)
    }

    const fn is_narrow(&self) -> bool {
        self.width <= NARROW_BITS
    }

    /// Appends `digits`, each below the radix.
    pub(super) fn pack(&self, digits: &[u32], out: &mut Vec<u8>) {
        debug_assert!(digits.iter().all(|digit| *digit < self.radix));
        let words = self.words(digits.len());
        out.reserve(packed_len(words, self.width));
        let mut wide = [0; GROUP];
        if !self.is_narrow() {
            for first in (0..words).step_by(GROUP) {
                let wide = &mut wide[..GROUP.min(words - first)];
                self.gather_wide(digits, words, first, wide);
                bitpack::pack(wide, self.width, out);
            }
            return;
        }
        let mut narrow = [0; WORDS];
        for first in (0..words).step_by(WORDS) {
            let narrow = &mut narrow[..WORDS.min(words - first)];
            gather_narrow(*self, digits, words, first, narrow);
            if let Ok(group) = <&[u32; WORDS]>::try_from(&*narrow) {
                pack_lanes(group, self.width, out);
                continue;
            }
            for some in narrow.chunks(GROUP) {
                let wide = &mut wide[..some.len()];
                wide.iter_mut().zip(some).for_each(|(wide, narrow)| *wide = u64::from(*narrow));
                bitpack::pack(wide, self.width, out);
            }
        }
    }

    /// The words from the one numbered `first` on.
    fn gather_wide(&self, digits: &[u32], words: usize, first: usize, out: &mut [u64]) {
        out.fill(0);
        for digit in 0..self.digits as usize {
            let of_words = digits_of(digits, words, digit, first, out.len());
            for word in &mut *out {
                *word = word.wrapping_mul(self.radix.into());
            }
            for (word, digit) in out.iter_mut().zip(of_words) {
                *word = word.wrapping_add((*digit).into());
            }
        }
        // As in `gather_narrow`, with 63 bits of the quotient.
        let Ok(inverse) = u64::try_from((1_u128 << (self.width + 63)) / u128::from(self.power))
        else {
            return;
        };
        for word in out {
            let wanted = u128::from(*word) << self.width;
            let product = (u128::from(*word) * u128::from(inverse)) >> 63;
            let mut fraction = u64::try_from(product).unwrap_or(u64::MAX);
            while u128::from(fraction) * u128::from(self.power) < wanted {
                fraction = fraction.wrapping_add(1);
            }
            *word = fraction;
        }
    }

    /// Fills `digits` from exactly the bytes that [`Self::pack`] made of as many.
    ///
    /// # Panics
    ///
    /// If `bytes` has another length.
    pub(super) fn unpack(&self, bytes: &[u8], digits: &mut [u32]) {
        let words = self.words(digits.len());
        assert_eq!(bytes.len(), packed_len(words, self.width), "bytes of {words} words");
        let mut rest = bytes;
        let mut wide = [0; GROUP];
        if !self.is_narrow() {
            for first in (0..words).step_by(GROUP) {
                let wide = &mut wide[..GROUP.min(words - first)];
                let taken;
                (taken, rest) = rest.split_at(packed_len(wide.len(), self.width));
                bitpack::unpack(taken, self.width, wide);
                self.scatter_wide(wide, digits, words, first);
            }
            return;
        }
        let mut narrow = [0; WORDS];
        for first in (0..words).step_by(WORDS) {
            let narrow = &mut narrow[..WORDS.min(words - first)];
            let taken;
            (taken, rest) = rest.split_at(packed_len(narrow.len(), self.width));
            if let Ok(group) = <&mut [u32; WORDS]>::try_from(&mut *narrow) {
                unpack_lanes(taken, self.width, group);
            } else {
                let parts = taken.chunks(packed_len(GROUP, self.width).max(1));
                // Where the width is 0 there is no part, and the words are 0.
                narrow.fill(0);
                for (some, taken) in narrow.chunks_mut(GROUP).zip(parts) {
                    let wide = &mut wide[..some.len()];
                    bitpack::unpack(taken, self.width, wide);
                    for (narrow, wide) in some.iter_mut().zip(wide) {
                        *narrow = low(*wide);
                    }
                }
            }
            scatter_narrow(*self, narrow, digits, words, first);
        }
    }

    fn scatter_wide(&self, wide: &mut [u64], digits: &mut [u32], words: usize, first: usize) {
        for word in &mut *wide {
            *word <<= 64 - self.width;
        }
        for digit in 0..self.digits as usize {
            let of_words = digits_of_mut(digits, words, digit, first, wide.len());
            for (word, digit) in wide.iter_mut().zip(of_words) {
                let product = u128::from(*word) * u128::from(self.radix);
                #[expect(clippy::cast_possible_truncation, reason = "one half each")]
                let halves = ((product >> 64) as u64, product as u64);
                (*digit, *word) = (low(halves.0), halves.1);
            }
        }
    }
}

const fn bits_of(max: u64) -> u32 {
    64 - max.leading_zeros()
}

/// The lowest 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "that is what it is for")]
const fn low(value: u64) -> u32 {
    value as u32
}

/// Digit number `digit` of `len` words from `first` on: there are fewer where the digits end.
fn digits_of(digits: &[u32], words: usize, digit: usize, first: usize, len: usize) -> &[u32] {
    let start = (digit * words + first).min(digits.len());
    let end = (start + len).min(digits.len());
    &digits[start..end]
}

fn digits_of_mut(
    digits: &mut [u32],
    words: usize,
    digit: usize,
    first: usize,
    len: usize,
) -> &mut [u32] {
    let start = (digit * words + first).min(digits.len());
    let end = (start + len).min(digits.len());
    &mut digits[start..end]
}

vectorised! {
    /// The narrow words from the one numbered `first` on.
    fn gather_narrow(of: Words, digits: &[u32], words: usize, first: usize, out: &mut [u32]) {
        out.fill(0);
        for digit in 0..of.digits as usize {
            let of_words = digits_of(digits, words, digit, first, out.len());
            let (with, without) = out.split_at_mut(of_words.len());
            for (word, digit) in with.iter_mut().zip(of_words) {
                *word = word.wrapping_mul(of.radix).wrapping_add(*digit);
            }
            for word in without {
                *word = word.wrapping_mul(of.radix);
            }
        }
        if of.power == 1 << of.width {
            return;
        }
        // `word * 2^width / power`, rounded up. The inverse has 32 bits, so the product of both is
        // too small by less than 3, which comparing makes good.
        let inverse = u64::from(low((1_u64 << (of.width + 31)) / of.power));
        let power = u64::from(low(of.power));
        for word in out {
            let wanted = u64::from(*word) << of.width;
            let mut fraction = u64::from(*word).wrapping_mul(inverse) >> 31;
            for _ in 0..3 {
                let product = u64::from(low(fraction)).wrapping_mul(power);
                fraction = fraction.wrapping_add(u64::from(product < wanted));
            }
            *word = low(fraction);
        }
    }
}

vectorised! {
    /// The digits of the narrow words from the one numbered `first` on.
    fn scatter_narrow(of: Words, words_in: &mut [u32], digits: &mut [u32], words: usize, first: usize) {
        let radix = u64::from(of.radix);
        for word in &mut *words_in {
            *word = low(u64::from(*word) << (NARROW_BITS - of.width));
        }
        for digit in 0..of.digits as usize {
            let of_words = digits_of_mut(digits, words, digit, first, words_in.len());
            for (word, digit) in words_in.iter_mut().zip(of_words) {
                let product = u64::from(*word).wrapping_mul(radix);
                *digit = low(product >> 32);
                *word = low(product);
            }
        }
    }
}

vectorised! {
    /// Appends a group: word `i` belongs to lane `i mod 8`, whose words fill its `width` numbers of
    /// 32 bits; these lie in turns.
    fn pack_lanes(words: &[u32; WORDS], width: u32, out: &mut Vec<u8>) {
        let mut pending = [0_u64; LANES];
        let mut filled = 0;
        for row in words.as_chunks::<LANES>().0 {
            for (pending, word) in pending.iter_mut().zip(row) {
                *pending |= u64::from(*word) << filled;
            }
            filled = width.wrapping_add(filled);
            if filled >= 32 {
                filled = filled.wrapping_sub(32);
                out.extend_from_slice(pending.map(|pending| low(pending).to_le_bytes()).as_flattened());
                pending = pending.map(|pending| pending >> 32);
            }
        }
    }
}

vectorised! {
    /// The inverse of [`pack_lanes`].
    fn unpack_lanes(bytes: &[u8], width: u32, out: &mut [u32; WORDS]) {
        if width == 0 {
            out.fill(0);
            return;
        }
        let mask = u32::MAX >> (32 - width);
        let lanes: &[[[u8; 4]; LANES]] = bytes.as_chunks::<4>().0.as_chunks::<LANES>().0;
        for (row, at) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(0_u32..) {
            let bit = at.wrapping_mul(width);
            let (first, shift) = ((bit / 32) as usize, bit % 32);
            let from = &lanes[first];
            // The last word of a lane ends with it, so what follows is shifted out or masked.
            let next = lanes.get(first.wrapping_add(1)).unwrap_or(from);
            for lane in 0..LANES {
                let (from, next) = (u32::from_le_bytes(from[lane]), u32::from_le_bytes(next[lane]));
                row[lane] = (from >> shift | (next << 1) << (31 - shift)) & mask;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::vector::tests::portably;
    use super::*;

    fn comes_back(words: Words, digits: &[u32]) {
        let mut bytes = Vec::new();
        words.pack(digits, &mut bytes);
        assert_eq!(bytes.len(), words.len(digits.len()));
        let mut portable = Vec::new();
        portably(|| words.pack(digits, &mut portable));
        assert_eq!(bytes, portable);
        let mut back = vec![u32::MAX; digits.len()];
        words.unpack(&bytes, &mut back);
        assert_eq!(back, digits, "{words:?}");
        back.fill(u32::MAX);
        portably(|| words.unpack(&bytes, &mut back));
        assert_eq!(back, digits, "{words:?}");
    }

    #[test]
    fn every_width_and_radix_comes_back() {
        let radices = [1, 2, 3, 7, 9, 10, 41, 161, 241, 255, 257, 1_001, 36_000, 65_535, 65_536];
        for radix in radices.into_iter().chain([65_537, 1 << 20, (1 << 31) - 1]) {
            for words in (1..=64).filter_map(|digits| Words::new(radix, digits)) {
                for count in [0, 1, 2, 63, 600, 4_000] {
                    let digit = |at: u64| low(at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % radix);
                    let digits: Vec<u32> = (1..=count).map(digit).collect();
                    comes_back(words, &digits);
                    comes_back(words, &vec![low(radix - 1); digits.len()]);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn digits_come_back(radix in 1_u64..70_000, seed: u64, count in 0_usize..3_000) {
            let digit = |at: u64| low((at ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) % radix);
            let digits: Vec<u32> = (0..count as u64).map(digit).collect();
            comes_back(Words::densest(radix, count), &digits);
        }

        /// Whatever the bytes say, a digit is below the radix.
        #[test]
        fn any_bytes_are_digits(radix in 1_u64..70_000, noise in prop::collection::vec(any::<u8>(), 4_000)) {
            let words = Words::densest(radix, 1_500);
            let mut digits = vec![0; 1_500];
            words.unpack(&noise[..words.len(1_500)], &mut digits);
            prop_assert!(digits.iter().all(|digit| u64::from(*digit) < radix));
        }
    }

    #[test]
    fn fractions_of_a_bit_are_used() {
        // Whole bits would take 5,000, 5,000, 7,500 and 10,000 bytes.
        for (radix, len_max) in [(9, 4_010), (10, 4_175), (41, 6_760), (161, 9_180)] {
            let len = Words::densest(radix, 10_000).len(10_000);
            assert!(len <= len_max, "{radix}: {len}");
        }
    }
}
