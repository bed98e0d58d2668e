//! Digits of every radix and width come back from their words.

use proptest::prelude::*;

use super::WordLayout;
use super::layout::low_half;
use crate::codec::simd::on_all_levels;

fn comes_back(words: WordLayout, digits: &[u32]) {
    let bytes = on_all_levels(|| {
        let mut bytes = Vec::new();
        words.pack(digits, &mut bytes);
        bytes
    });
    assert_eq!(bytes.len(), words.len(digits.len()));
    for (added, gap) in [(0, 0), (u32::MAX - 3, 2)] {
        let back = on_all_levels(|| words.unpack(&bytes, digits.len(), added, gap));
        let expected = digits.iter().map(|digit| digit.wrapping_add(added));
        assert!(back[gap..].iter().copied().eq(expected), "{words:?}");
    }
}

#[test]
fn every_width_and_radix_comes_back() {
    let radices = [1, 2, 3, 7, 9, 10, 41, 161, 241, 255, 257, 1_001, 36_000, 65_535, 65_536];
    for radix in radices.into_iter().chain([65_537, 1 << 20, (1 << 31) - 1]) {
        for words in (1..=64).filter_map(|digits| WordLayout::new(radix, digits)) {
            for count in [0, 1, 2, 63, 600, 4_000] {
                let digit =
                    |index: u64| low_half(index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % radix);
                let digits: Vec<u32> = (1..=count).map(digit).collect();
                comes_back(words, &digits);
                comes_back(words, &vec![low_half(radix - 1); digits.len()]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn digits_come_back(radix in 1_u64..70_000, seed: u64, count in 0_usize..3_000) {
        let digit = |index: u64| low_half((index ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) % radix);
        let digits: Vec<u32> = (0..count as u64).map(digit).collect();
        comes_back(WordLayout::densest(radix, count), &digits);
    }

    /// Any bytes decode to digits below the radix.
    #[test]
    fn any_bytes_are_digits(radix in 1_u64..70_000, noise in prop::collection::vec(any::<u8>(), 4_000)) {
        let words = WordLayout::densest(radix, 1_500);
        let digits = on_all_levels(|| words.unpack(&noise[..words.len(1_500)], 1_500, 0, 0));
        prop_assert!(digits.iter().all(|digit| u64::from(*digit) < radix));
    }
}

#[test]
fn fractions_of_a_bit_are_used() {
    // Whole bits would take 5,000, 5,000, 7,500 and 10,000 bytes.
    for (radix, len_max) in [(9, 4_010), (10, 4_175), (41, 6_760), (161, 9_180)] {
        let len = WordLayout::densest(radix, 10_000).len(10_000);
        assert!(len <= len_max, "{radix}: {len}");
    }
}
