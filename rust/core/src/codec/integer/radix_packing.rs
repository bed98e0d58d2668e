//! Digits of any radix, several to a word: numbers below 41 in 5.4 bits instead of 6.
//!
//! A word is the fraction `0.d1 d2 d3 …` in that radix, rounded up to its last bit. Multiplying it by
//! the radix moves the first digit in front of the point, so a digit costs one multiplication.

use super::bit_packing::{self, GROUP, packed_len};
use crate::codec::simd::kernels::{self, LANES, Row};
use crate::codec::simd::multiversioned;

/// Radices are smaller than this, so that a digit times a radix fits 64 bits.
pub(super) const RADIX_END: u64 = 1 << 31;

/// Most digits of a word.
const DIGITS_MAX: u32 = 64;

/// Words of at most so many bits are narrow: several fit a vector.
const NARROW_BITS: u32 = 32;

/// Narrow words lie side by side in lanes, each of which has so many of a group.
const LANE_WORDS: usize = 32;

/// Narrow words of a group.
const WORDS: usize = LANES * LANE_WORDS;

const TO_52: f64 = 4_503_599_627_370_496.0;

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
        bit_packing::is_width(width).then_some(Self { radix, digits, power, width })
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
            if !bit_packing::is_width(words.width) {
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
                bit_packing::pack(wide, self.width, out);
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
                bit_packing::pack(wide, self.width, out);
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

    /// The `count` digits of exactly the bytes that [`Self::pack`] made of as many, each more by
    /// `low`, modulo 2^32, behind `gap` zeros.
    ///
    /// # Panics
    ///
    /// If `bytes` has another length.
    pub(super) fn unpack(&self, bytes: &[u8], count: usize, low: u32, gap: usize) -> Vec<u32> {
        let words = self.words(count);
        assert_eq!(bytes.len(), packed_len(words, self.width), "bytes of {words} words");
        // Every word has all its digits, also behind the last number.
        let mut all = vec![0; gap + words * self.digits as usize];
        let digits = &mut all[gap..];
        if self.is_narrow() {
            self.unpack_narrow(bytes, words, low, digits);
        } else {
            self.unpack_wide(bytes, words, low, digits);
        }
        all.truncate(gap + count);
        all
    }

    fn unpack_narrow(&self, bytes: &[u8], words: usize, low: u32, digits: &mut [u32]) {
        let mut rest = bytes;
        let mut rows = [[0; LANES]; LANE_WORDS];
        for first in (0..words).step_by(WORDS) {
            let len = WORDS.min(words - first);
            let taken;
            (taken, rest) = rest.split_at(packed_len(len, self.width));
            if len == WORDS {
                unpack_lanes(taken, self.width, &mut rows);
            } else {
                unpack_some(taken, self.width, &mut rows.as_flattened_mut()[..len]);
            }
            let digits = &mut digits[first..];
            let whole = &rows[..len / LANES];
            kernels::unpack_digits(whole, self.radix, self.digits as usize, low, digits, words);
            for (at, word) in
                rows.as_flattened().iter().enumerate().take(len).skip(whole.len() * LANES)
            {
                let mut word = *word;
                for out in digits[at..].iter_mut().step_by(words) {
                    let digit;
                    (digit, word) = kernels::next_digit(word, self.radix);
                    *out = low.wrapping_add(digit);
                }
            }
        }
    }

    fn unpack_wide(&self, bytes: &[u8], words: usize, low: u32, digits: &mut [u32]) {
        let mut rest = bytes;
        let mut wide = [0; GROUP];
        for first in (0..words).step_by(GROUP) {
            let wide = &mut wide[..GROUP.min(words - first)];
            let taken;
            (taken, rest) = rest.split_at(packed_len(wide.len(), self.width));
            bit_packing::unpack(taken, self.width, wide);
            scatter_wide(*self, wide, low, &mut digits[first..], words);
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

multiversioned! {
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
        // `word * 2^width / power`, rounded up. The product with the inverse, below 2^32, is so near
        // that the integer nearest to it is what is wanted or 1 less, which comparing makes good.
        let power = u64::from(low(of.power));
        #[expect(clippy::cast_precision_loss, reason = "both are exact: they are below 2^33")]
        let inverse = (1_u64 << of.width) as f64 / power as f64;
        for word in out {
            let wanted = u64::from(*word) << of.width;
            // Adding 2^52 to a double leaves the integer nearest to it in the low bits.
            let exact = f64::from_bits(TO_52.to_bits() | u64::from(*word)) - TO_52;
            let fraction = low((exact * inverse + TO_52).to_bits());
            let product = u64::from(fraction).wrapping_mul(power);
            *word = fraction.wrapping_add(u32::from(product < wanted));
        }
    }
}

multiversioned! {
    /// As [`kernels::unpack_digits`], of words that are fractions of `2^width`, above 32 bits.
    fn scatter_wide(of: Words, words: &mut [u64], least: u32, digits: &mut [u32], stride: usize) {
        let radix = u64::from(of.radix);
        let half = u64::from(u32::MAX);
        for word in &mut *words {
            *word <<= 64_u32.wrapping_sub(of.width);
        }
        for digits in digits.chunks_mut(stride) {
            for (word, digit) in words.iter_mut().zip(digits) {
                // The product of 95 bits, from those of both halves.
                let lower = (*word & half).wrapping_mul(radix);
                let upper = (*word >> 32).wrapping_mul(radix).wrapping_add(lower >> 32);
                *digit = least.wrapping_add(low(upper >> 32));
                *word = upper << 32 | lower & half;
            }
        }
    }
}

multiversioned! {
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

multiversioned! {
    /// The inverse of [`pack_lanes`], but for that words become fractions of 2^32.
    fn unpack_lanes(bytes: &[u8], width: u32, out: &mut [Row; LANE_WORDS]) {
        if width == 0 {
            out.as_flattened_mut().fill(0);
            return;
        }
        let lanes: &[[[u8; 4]; LANES]] = bytes.as_chunks::<4>().0.as_chunks::<LANES>().0;
        for (row, at) in out.iter_mut().zip(0_u32..) {
            let bit = at.wrapping_mul(width);
            let (first, shift) = ((bit / 32) as usize, bit % 32);
            let from = &lanes[first];
            // The last word of a lane ends with it, so what follows is shifted out.
            let next = lanes.get(first.wrapping_add(1)).unwrap_or(from);
            for lane in 0..LANES {
                let (from, next) = (u32::from_le_bytes(from[lane]), u32::from_le_bytes(next[lane]));
                row[lane] = (from >> shift | (next << 1) << (31 - shift)) << (32 - width);
            }
        }
    }
}

/// The same of words that are too few for lanes.
fn unpack_some(bytes: &[u8], width: u32, out: &mut [u32]) {
    let mut wide = [0; GROUP];
    // Where the width is 0 there is no part, and the words are 0.
    out.fill(0);
    for (some, taken) in out.chunks_mut(GROUP).zip(bytes.chunks(packed_len(GROUP, width).max(1))) {
        let wide = &mut wide[..some.len()];
        bit_packing::unpack(taken, width, wide);
        for (word, wide) in some.iter_mut().zip(wide) {
            *word = low(*wide << (NARROW_BITS - width));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::simd::on_all_levels;

    fn comes_back(words: Words, digits: &[u32]) {
        let bytes = on_all_levels(|| {
            let mut bytes = Vec::new();
            words.pack(digits, &mut bytes);
            bytes
        });
        assert_eq!(bytes.len(), words.len(digits.len()));
        for (low, gap) in [(0, 0), (u32::MAX - 3, 2)] {
            let back = on_all_levels(|| words.unpack(&bytes, digits.len(), low, gap));
            let expected = digits.iter().map(|digit| digit.wrapping_add(low));
            assert!(back[gap..].iter().copied().eq(expected), "{words:?}");
        }
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
            let digits = on_all_levels(|| words.unpack(&noise[..words.len(1_500)], 1_500, 0, 0));
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
