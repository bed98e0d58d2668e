//! Loops over eight numbers of 32 bits that compilers do not vectorise by themselves.

#[cfg(target_arch = "x86_64")]
use super::SimdLevel;

/// Number of 32-bit numbers in a vector of 256 bits.
pub(crate) const LANES: usize = 8;

/// A number for each lane.
pub(crate) type SimdRow = [u32; LANES];

/// Unpacks the digits of words that are fractions of 2^32. `digits[d * stride + i]` becomes digit
/// `d` of word `i` plus `low`, modulo 2^32.
///
/// # Panics
///
/// Panics if `digits` ends before the last digit.
pub(crate) fn unpack_digits(
    words: &[SimdRow],
    radix: u32,
    count: usize,
    low: u32,
    digits: &mut [u32],
    stride: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if SimdLevel::detected() >= SimdLevel::Avx2 {
        #[expect(unsafe_code, reason = "the processor was asked for these features")]
        // SAFETY: `detected` has found every feature that this function is compiled for.
        unsafe {
            avx2::unpack_digits(words, radix, count, low, digits, stride);
        }
        return;
    }
    for (row, start) in words.iter().zip((0..).step_by(LANES)) {
        let mut row = *row;
        for digit in 0..count {
            let out = digits[digit * stride + start..].first_chunk_mut();
            let out: &mut SimdRow = out.expect("room for every digit");
            for (word, out) in row.iter_mut().zip(out) {
                let digit;
                (digit, *word) = next_digit(*word, radix);
                *out = low.wrapping_add(digit);
            }
        }
    }
}

/// Returns the first digit of a word, and the rest of the word.
#[inline]
pub(crate) fn next_digit(word: u32, radix: u32) -> (u32, u32) {
    let product = u64::from(word) * u64::from(radix);
    #[expect(clippy::cast_possible_truncation, reason = "one half each")]
    let halves = ((product >> 32) as u32, product as u32);
    halves
}

/// Turns numbers into their prefix sums, modulo 2^32.
///
/// Example: `[1, 2, 3]` becomes `[1, 3, 6]`.
pub(crate) fn prefix_sums(numbers: &mut [i32]) {
    let (rows, rest) = numbers.as_chunks_mut();
    prefix_sums_scalar(prefix_sums_of_rows(rows), rest);
}

/// Computes the prefix sums of whole rows. Returns the sum of all numbers.
fn prefix_sums_of_rows(rows: &mut [[i32; LANES]]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if SimdLevel::detected() >= SimdLevel::Avx2 {
        #[expect(unsafe_code, reason = "the processor was asked for these features")]
        // SAFETY: `detected` has found every feature that this function is compiled for.
        return unsafe { avx2::prefix_sums_of_rows(rows) };
    }
    prefix_sums_scalar(0, rows.as_flattened_mut())
}

/// Computes the prefix sums that begin with `start`. Returns the last sum.
fn prefix_sums_scalar(start: i32, numbers: &mut [i32]) -> i32 {
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

    use super::{LANES, SimdRow};

    /// 32-bit types for which any bits are valid.
    trait SimdLane {}

    impl SimdLane for u32 {}

    impl SimdLane for i32 {}

    #[target_feature(enable = "avx2")]
    fn load<T: SimdLane>(row: &[T; LANES]) -> __m256i {
        #[expect(unsafe_code, reason = "it takes a pointer")]
        // SAFETY: a row is 32 bytes that may be read, and the load needs no alignment.
        unsafe {
            _mm256_loadu_si256(std::ptr::from_ref(row).cast())
        }
    }

    #[target_feature(enable = "avx2")]
    fn store<T: SimdLane>(vector: __m256i, row: &mut [T; LANES]) {
        #[expect(unsafe_code, reason = "it takes a pointer")]
        // SAFETY: a row is 32 bytes that may be written, and the store needs no alignment.
        unsafe {
            _mm256_storeu_si256(std::ptr::from_mut(row).cast(), vector);
        }
    }

    /// Keeps even and odd lanes apart, because a multiplication widens every other lane to 64 bits.
    #[target_feature(enable = "avx2")]
    pub(crate) fn unpack_digits(
        words: &[SimdRow],
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
            let mut offset = start;
            for _ in 0..count {
                even = _mm256_mul_epu32(even, radix);
                odd = _mm256_mul_epu32(odd, radix);
                let out = digits[offset..].first_chunk_mut().expect("room for every digit");
                let upper = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(even), odd);
                store::<u32>(_mm256_add_epi32(low, upper), out);
                offset = offset.wrapping_add(stride);
            }
        }
    }

    /// First computes the sums within the halves of a row. Then adds the sum of the lower half to
    /// the upper half.
    #[target_feature(enable = "avx2")]
    pub(crate) fn prefix_sums_of_rows(rows: &mut [[i32; LANES]]) -> i32 {
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

    use super::super::on_all_levels;
    use super::*;

    proptest! {
        #[test]
        fn sums_wrap_and_are_the_same_on_all_levels(numbers in prop::collection::vec(any::<i32>(), 0..100)) {
            let mut sum = 0_i32;
            let add = |number: &i32| {
                sum = sum.wrapping_add(*number);
                sum
            };
            let expected: Vec<i32> = numbers.iter().map(add).collect();
            let sums = on_all_levels(|| {
                let mut numbers = numbers.clone();
                prefix_sums(&mut numbers);
                numbers
            });
            prop_assert_eq!(sums, expected);
        }

        /// Unpacking works for any words and digits, and writes only the digits.
        #[test]
        fn digits_are_the_same_on_all_levels(
            words in prop::collection::vec(any::<SimdRow>(), 0..6),
            radix: u32,
            low: u32,
            count in 0_usize..9,
            apart in 0_usize..9,
        ) {
            let stride = words.len() * LANES + apart;
            let digits = on_all_levels(|| {
                let mut digits = vec![7; stride * count + 3];
                unpack_digits(&words, radix, count, low, &mut digits, stride);
                digits
            });
            let mut expected = vec![7; stride * count + 3];
            for (index, word) in words.as_flattened().iter().enumerate() {
                let mut word = *word;
                for digit in 0..count {
                    let first;
                    (first, word) = next_digit(word, radix);
                    expected[digit * stride + index] = low.wrapping_add(first);
                }
            }
            prop_assert_eq!(digits, expected);
        }
    }

    #[test]
    #[should_panic(expected = "room for every digit")]
    fn digits_without_room_are_refused() {
        unpack_digits(&[[1; LANES]; 2], 10, 3, 0, &mut [0; 40], 16);
    }
}
