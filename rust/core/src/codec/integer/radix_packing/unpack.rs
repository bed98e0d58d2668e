//! Words to digits.

use super::layout::{LANE_WORDS, NARROW_BITS, NARROW_GROUP, WordLayout, low_half};
use crate::codec::integer::bit_packing::{self, GROUP, packed_len};
use crate::codec::simd::kernels::{self, LANES, SimdRow};
use crate::codec::simd::multiversioned;

impl WordLayout {
    /// Returns `gap` zeros, then the `count` digits for which `pack` wrote `bytes`. Adds `added` to
    /// each digit, modulo 2^32.
    ///
    /// # Panics
    ///
    /// Panics if `bytes` has another length.
    pub(crate) fn unpack(&self, bytes: &[u8], count: usize, added: u32, gap: usize) -> Vec<u32> {
        let word_count = self.word_count(count);
        assert_eq!(bytes.len(), packed_len(word_count, self.width), "bytes of {word_count} words");
        // Every word has all its digits, so digits after the last number are unpacked as well.
        let mut all = vec![0; gap + word_count * self.digits as usize];
        let digits = &mut all[gap..];
        if self.is_narrow() {
            self.unpack_narrow(bytes, word_count, added, digits);
        } else {
            self.unpack_wide(bytes, word_count, added, digits);
        }
        all.truncate(gap + count);
        all
    }

    fn unpack_narrow(&self, bytes: &[u8], word_count: usize, added: u32, digits: &mut [u32]) {
        let mut rest = bytes;
        let mut rows = [[0; LANES]; LANE_WORDS];
        for first in (0..word_count).step_by(NARROW_GROUP) {
            let len = NARROW_GROUP.min(word_count - first);
            let taken;
            (taken, rest) = rest.split_at(packed_len(len, self.width));
            if len == NARROW_GROUP {
                unpack_lanes(taken, self.width, &mut rows);
            } else {
                unpack_few(taken, self.width, &mut rows.as_flattened_mut()[..len]);
            }
            let digits = &mut digits[first..];
            let whole = &rows[..len / LANES];
            let digit_count = self.digits as usize;
            kernels::unpack_digits(whole, self.radix, digit_count, added, digits, word_count);
            let words = rows.as_flattened().iter().enumerate().take(len);
            for (index, word) in words.skip(whole.len() * LANES) {
                let mut word = *word;
                for out in digits[index..].iter_mut().step_by(word_count) {
                    let digit;
                    (digit, word) = kernels::next_digit(word, self.radix);
                    *out = added.wrapping_add(digit);
                }
            }
        }
    }

    fn unpack_wide(&self, bytes: &[u8], word_count: usize, added: u32, digits: &mut [u32]) {
        let mut rest = bytes;
        let mut group = [0; GROUP];
        for first in (0..word_count).step_by(GROUP) {
            let group = &mut group[..GROUP.min(word_count - first)];
            let taken;
            (taken, rest) = rest.split_at(packed_len(group.len(), self.width));
            bit_packing::unpack(taken, self.width, group);
            unpack_wide_digits(*self, group, added, &mut digits[first..], word_count);
        }
    }
}

multiversioned! {
    /// Does the same as [`kernels::unpack_digits`] for wide words, which are fractions of
    /// `2^width`.
    fn unpack_wide_digits(layout: WordLayout, words: &mut [u64], added: u32, digits: &mut [u32], stride: usize) {
        let radix = u64::from(layout.radix);
        let half = u64::from(u32::MAX);
        for word in &mut *words {
            *word <<= 64_u32.wrapping_sub(layout.width);
        }
        for digits in digits.chunks_mut(stride) {
            for (word, digit) in words.iter_mut().zip(digits) {
                // Builds the product of 95 bits from the products of both halves.
                let lower = (*word & half).wrapping_mul(radix);
                let upper = (*word >> 32).wrapping_mul(radix).wrapping_add(lower >> 32);
                *digit = added.wrapping_add(low_half(upper >> 32));
                *word = upper << 32 | lower & half;
            }
        }
    }
}

multiversioned! {
    /// Reads a group of words from its lanes, as fractions of 2^32.
    fn unpack_lanes(bytes: &[u8], width: u32, out: &mut [SimdRow; LANE_WORDS]) {
        if width == 0 {
            out.as_flattened_mut().fill(0);
            return;
        }
        let lanes: &[[[u8; 4]; LANES]] = bytes.as_chunks::<4>().0.as_chunks::<LANES>().0;
        for (row, index) in out.iter_mut().zip(0_u32..) {
            let bit = index.wrapping_mul(width);
            let (first, shift) = ((bit / 32) as usize, bit % 32);
            let from = &lanes[first];
            // The last word of a lane ends with the lane, so the number after it is shifted out.
            let next = lanes.get(first.wrapping_add(1)).unwrap_or(from);
            for lane in 0..LANES {
                let (from, next) = (u32::from_le_bytes(from[lane]), u32::from_le_bytes(next[lane]));
                row[lane] = (from >> shift | (next << 1) << (31 - shift)) << (32 - width);
            }
        }
    }
}

/// Does the same as [`unpack_lanes`] for words that are too few for lanes.
fn unpack_few(bytes: &[u8], width: u32, out: &mut [u32]) {
    let mut widened = [0; GROUP];
    // A width of 0 means that there are no bytes and all words are 0.
    out.fill(0);
    for (words, taken) in out.chunks_mut(GROUP).zip(bytes.chunks(packed_len(GROUP, width).max(1))) {
        let widened = &mut widened[..words.len()];
        bit_packing::unpack(taken, width, widened);
        for (word, wide) in words.iter_mut().zip(widened) {
            *word = low_half(*wide << (NARROW_BITS - width));
        }
    }
}
