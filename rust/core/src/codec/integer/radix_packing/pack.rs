//! Digits to words.

use super::layout::{NARROW_GROUP, WordLayout, low_half};
use crate::codec::integer::bit_packing::{self, GROUP, packed_len};
use crate::codec::simd::kernels::LANES;
use crate::codec::simd::multiversioned;

const TO_52: f64 = 4_503_599_627_370_496.0;

impl WordLayout {
    /// Appends `digits`. Each digit is below the radix.
    pub(crate) fn pack(&self, digits: &[u32], out: &mut Vec<u8>) {
        debug_assert!(digits.iter().all(|digit| *digit < self.radix));
        let word_count = self.word_count(digits.len());
        out.reserve(packed_len(word_count, self.width));
        if self.is_narrow() {
            self.pack_narrow(digits, word_count, out);
        } else {
            let mut group = [0; GROUP];
            for first in (0..word_count).step_by(GROUP) {
                let group = &mut group[..GROUP.min(word_count - first)];
                self.gather_wide(digits, word_count, first, group);
                bit_packing::pack(group, self.width, out);
            }
        }
    }

    fn pack_narrow(&self, digits: &[u32], word_count: usize, out: &mut Vec<u8>) {
        let mut group = [0; NARROW_GROUP];
        let mut widened = [0; GROUP];
        for first in (0..word_count).step_by(NARROW_GROUP) {
            let group = &mut group[..NARROW_GROUP.min(word_count - first)];
            gather_narrow(*self, digits, word_count, first, group);
            if let Ok(whole) = <&[u32; NARROW_GROUP]>::try_from(&*group) {
                pack_lanes(whole, self.width, out);
                continue;
            }
            for words in group.chunks(GROUP) {
                let widened = &mut widened[..words.len()];
                widened.iter_mut().zip(words).for_each(|(wide, word)| *wide = u64::from(*word));
                bit_packing::pack(widened, self.width, out);
            }
        }
    }

    /// Fills `words` with the wide words from number `first` on.
    fn gather_wide(&self, digits: &[u32], word_count: usize, first: usize, words: &mut [u64]) {
        words.fill(0);
        for digit in 0..self.digits as usize {
            let of_words = digits_of(digits, word_count, digit, first, words.len());
            for word in &mut *words {
                *word = word.wrapping_mul(self.radix.into());
            }
            for (word, digit) in words.iter_mut().zip(of_words) {
                *word = word.wrapping_add((*digit).into());
            }
        }
        // The computation is the same as in `gather_narrow`, with 63 bits of the quotient.
        let Ok(inverse) = u64::try_from((1_u128 << (self.width + 63)) / u128::from(self.power))
        else {
            return;
        };
        for word in words {
            let wanted = u128::from(*word) << self.width;
            let product = (u128::from(*word) * u128::from(inverse)) >> 63;
            let mut fraction = u64::try_from(product).unwrap_or(u64::MAX);
            while u128::from(fraction) * u128::from(self.power) < wanted {
                fraction = fraction.wrapping_add(1);
            }
            *word = fraction;
        }
    }
}

/// Returns digit number `digit` of each of the `len` words from number `first` on. Returns fewer
/// digits if the digits end before.
fn digits_of(digits: &[u32], word_count: usize, digit: usize, first: usize, len: usize) -> &[u32] {
    let start = (digit * word_count + first).min(digits.len());
    let end = (start + len).min(digits.len());
    &digits[start..end]
}

multiversioned! {
    /// Fills `words` with the narrow words from number `first` on.
    fn gather_narrow(layout: WordLayout, digits: &[u32], word_count: usize, first: usize, words: &mut [u32]) {
        words.fill(0);
        for digit in 0..layout.digits as usize {
            let of_words = digits_of(digits, word_count, digit, first, words.len());
            let (with, without) = words.split_at_mut(of_words.len());
            for (word, digit) in with.iter_mut().zip(of_words) {
                *word = word.wrapping_mul(layout.radix).wrapping_add(*digit);
            }
            for word in without {
                *word = word.wrapping_mul(layout.radix);
            }
        }
        if layout.power == 1 << layout.width {
            return;
        }
        // Computes `word * 2^width / power`, rounded up. The product with the inverse is below
        // 2^32. The product is so precise that the integer nearest to it is the result or 1 less.
        // The comparison corrects that error.
        let power = u64::from(low_half(layout.power));
        #[expect(clippy::cast_precision_loss, reason = "both are exact: they are below 2^33")]
        let inverse = (1_u64 << layout.width) as f64 / power as f64;
        for word in words {
            let wanted = u64::from(*word) << layout.width;
            // Adding 2^52 to a double leaves the nearest integer in the low bits.
            let exact = f64::from_bits(TO_52.to_bits() | u64::from(*word)) - TO_52;
            let fraction = low_half((exact * inverse + TO_52).to_bits());
            let product = u64::from(fraction).wrapping_mul(power);
            *word = fraction.wrapping_add(u32::from(product < wanted));
        }
    }
}

multiversioned! {
    /// Appends a group. Word `i` belongs to lane `i mod 8`. The words of a lane fill `width`
    /// numbers of 32 bits, and the lanes take turns.
    fn pack_lanes(words: &[u32; NARROW_GROUP], width: u32, out: &mut Vec<u8>) {
        let mut pending = [0_u64; LANES];
        let mut filled = 0;
        for row in words.as_chunks::<LANES>().0 {
            for (pending, word) in pending.iter_mut().zip(row) {
                *pending |= u64::from(*word) << filled;
            }
            filled = width.wrapping_add(filled);
            if filled >= 32 {
                filled = filled.wrapping_sub(32);
                out.extend_from_slice(pending.map(|pending| low_half(pending).to_le_bytes()).as_flattened());
                pending = pending.map(|pending| pending >> 32);
            }
        }
    }
}
