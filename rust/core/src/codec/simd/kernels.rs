//! Eight numbers of 32 bits at a time: what compilers do not make vectors of by themselves.

#[cfg(target_arch = "x86_64")]
use super::Machine;

/// Numbers that are worked on side by side.
pub(crate) const LANES: usize = 8;

/// One number of each lane.
pub(crate) type Row = [u32; LANES];

/// The digits of words that are fractions of 2^32. Digit `d` of word `i`, and `low`, become
/// `digits[d * stride + i]`, modulo 2^32.
///
/// # Panics
///
/// If `digits` ends before the last digit.
pub(crate) fn scatter(
    words: &[Row],
    radix: u32,
    count: usize,
    low: u32,
    digits: &mut [u32],
    stride: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if Machine::here() >= Machine::Wide {
        #[expect(unsafe_code, reason = "the features were asked for at run time")]
        // SAFETY: a wide machine has every feature that this is compiled for.
        unsafe {
            avx2::scatter(words, radix, count, low, digits, stride);
        }
        return;
    }
    for (row, start) in words.iter().zip((0..).step_by(LANES)) {
        let mut row = *row;
        for digit in 0..count {
            let out = digits[digit * stride + start..].first_chunk_mut();
            let out: &mut Row = out.expect("room for every digit");
            for (word, out) in row.iter_mut().zip(out) {
                let digit;
                (digit, *word) = next_digit(*word, radix);
                *out = low.wrapping_add(digit);
            }
        }
    }
}

/// The first digit of a word, and the word that is left.
#[inline]
pub(crate) fn next_digit(word: u32, radix: u32) -> (u32, u32) {
    let product = u64::from(word) * u64::from(radix);
    #[expect(clippy::cast_possible_truncation, reason = "one half each")]
    let halves = ((product >> 32) as u32, product as u32);
    halves
}

/// Turns numbers into what those up to each add up to, modulo 2^32.
pub(crate) fn add_up(numbers: &mut [i32]) {
    let (rows, rest) = numbers.as_chunks_mut();
    add_up_each(add_up_rows(rows), rest);
}

/// Gives the sum of all.
fn add_up_rows(rows: &mut [[i32; LANES]]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if Machine::here() >= Machine::Wide {
        #[expect(unsafe_code, reason = "the features were asked for at run time")]
        // SAFETY: a wide machine has every feature that this is compiled for.
        return unsafe { avx2::add_up_rows(rows) };
    }
    add_up_each(0, rows.as_flattened_mut())
}

fn add_up_each(start: i32, numbers: &mut [i32]) -> i32 {
    let mut sum = start;
    for number in numbers {
        sum = sum.wrapping_add(*number);
        *number = sum;
    }
    sum
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_blend_epi32, _mm256_extract_epi32, _mm256_loadu_si256,
        _mm256_mul_epu32, _mm256_permute2x128_si256, _mm256_permutevar8x32_epi32,
        _mm256_set1_epi32, _mm256_setzero_si256, _mm256_shuffle_epi32, _mm256_slli_si256,
        _mm256_srli_epi64, _mm256_storeu_si256,
    };

    use super::{LANES, Row};

    /// Numbers of 32 bits, of which any bits are one.
    trait Lane {}

    impl Lane for u32 {}

    impl Lane for i32 {}

    #[target_feature(enable = "avx2")]
    fn load<T: Lane>(row: &[T; LANES]) -> __m256i {
        #[expect(unsafe_code, reason = "it takes a pointer")]
        // SAFETY: a row is 32 bytes that may be read, and the load asks for no alignment.
        unsafe {
            _mm256_loadu_si256(std::ptr::from_ref(row).cast())
        }
    }

    #[target_feature(enable = "avx2")]
    fn store<T: Lane>(vector: __m256i, row: &mut [T; LANES]) {
        #[expect(unsafe_code, reason = "it takes a pointer")]
        // SAFETY: a row is 32 bytes that may be written, and the store asks for no alignment.
        unsafe {
            _mm256_storeu_si256(std::ptr::from_mut(row).cast(), vector);
        }
    }

    /// A multiplication takes every other number to 64 bits, so these are kept apart.
    #[target_feature(enable = "avx2")]
    pub(crate) fn scatter(
        words: &[Row],
        radix: u32,
        count: usize,
        low: u32,
        digits: &mut [u32],
        stride: usize,
    ) {
        let radix = _mm256_set1_epi32(radix.cast_signed());
        let low = _mm256_set1_epi32(low.cast_signed());
        for (row, start) in words.iter().zip((0..).step_by(LANES)) {
            let mut even = load(row);
            let mut odd = _mm256_srli_epi64::<32>(even);
            let mut at = start;
            for _ in 0..count {
                even = _mm256_mul_epu32(even, radix);
                odd = _mm256_mul_epu32(odd, radix);
                let out = digits[at..].first_chunk_mut().expect("room for every digit");
                let upper = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(even), odd);
                store::<u32>(_mm256_add_epi32(low, upper), out);
                at = at.wrapping_add(stride);
            }
        }
    }

    /// Sums within halves of a row first, then the lower half's sum goes to the upper half.
    #[target_feature(enable = "avx2")]
    pub(crate) fn add_up_rows(rows: &mut [[i32; LANES]]) -> i32 {
        let last = _mm256_set1_epi32(7);
        let mut before = _mm256_setzero_si256();
        for row in rows {
            let mut sum = load(row);
            sum = _mm256_add_epi32(sum, _mm256_slli_si256::<4>(sum));
            sum = _mm256_add_epi32(sum, _mm256_slli_si256::<8>(sum));
            let lower_half = _mm256_permute2x128_si256::<0b0000_1000>(sum, sum);
            sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32::<0b1111_1111>(lower_half));
            store(_mm256_add_epi32(before, sum), row);
            before = _mm256_add_epi32(before, _mm256_permutevar8x32_epi32(sum, last));
        }
        _mm256_extract_epi32::<0>(before)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::everywhere;
    use super::*;

    proptest! {
        #[test]
        fn sums_wrap_and_are_the_same_in_vectors(numbers in prop::collection::vec(any::<i32>(), 0..100)) {
            let mut sum = 0_i32;
            let add = |number: &i32| {
                sum = sum.wrapping_add(*number);
                sum
            };
            let sums: Vec<i32> = numbers.iter().map(add).collect();
            let added = everywhere(|| {
                let mut numbers = numbers.clone();
                add_up(&mut numbers);
                numbers
            });
            prop_assert_eq!(added, sums);
        }

        /// Words and digits may be any; nothing but the digits is written.
        #[test]
        fn digits_are_the_same_in_vectors(
            words in prop::collection::vec(any::<Row>(), 0..6),
            radix: u32,
            low: u32,
            count in 0_usize..9,
            apart in 0_usize..9,
        ) {
            let stride = words.len() * LANES + apart;
            let digits = everywhere(|| {
                let mut digits = vec![7; stride * count + 3];
                scatter(&words, radix, count, low, &mut digits, stride);
                digits
            });
            let mut expected = vec![7; stride * count + 3];
            for (at, word) in words.as_flattened().iter().enumerate() {
                let mut word = *word;
                for digit in 0..count {
                    let first;
                    (first, word) = next_digit(word, radix);
                    expected[digit * stride + at] = low.wrapping_add(first);
                }
            }
            prop_assert_eq!(digits, expected);
        }
    }

    #[test]
    #[should_panic(expected = "room for every digit")]
    fn digits_without_room_are_refused() {
        scatter(&[[1; LANES]; 2], 10, 3, 0, &mut [0; 40], 16);
    }
}
