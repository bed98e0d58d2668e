//! Numbers come back from residuals of every order, and no bytes do harm.

use proptest::prelude::*;

use super::bits::{BitReader, BitWriter};
use super::frequencies::Frequencies;
use super::residual::{ORDERS, add_up};
use super::token::{CLASSES, TOKENS, token_of, unzigzag, zigzag};
use super::{encode, read};
use crate::codec::bytes::ByteReader;
use crate::codec::integer::profile::Profile;

fn coded(values: &[i64], run_lengths: &[u32]) -> Option<Vec<u8>> {
    let bytes = encode(values, run_lengths, &Profile::of(values), values.len() * 16)?;
    let mut input = ByteReader::new(&bytes, "numbers");
    assert_eq!(read(&mut input, run_lengths).unwrap(), values);
    input.end().unwrap();
    Some(bytes)
}

#[test]
fn every_number_has_a_token_and_comes_back() {
    let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, 3 << bit.min(62)]);
    for number in edges.chain([u64::MAX]) {
        let class = CLASSES[usize::from(token_of(number))];
        let rest = number - class.first;
        assert!(rest >> class.bits == 0, "{number}");
        assert_eq!(zigzag(unzigzag(number)), number);
    }
}

#[test]
fn bits_of_every_width_come_back() {
    let numbers: Vec<(u64, u32)> =
        (0..=63).flat_map(|width| [(0, width), ((1 << width) - 1, width)]).collect();
    let mut writer = BitWriter::default();
    for (number, width) in &numbers {
        writer.put(*number, *width);
    }
    let mut bytes = writer.finish();
    let len = bytes.len().to_le_bytes();
    bytes.splice(0..0, [len[0] & 0x7f | 0x80, (bytes.len() >> 7).to_le_bytes()[0]]);
    let mut reader = BitReader::open(&mut ByteReader::new(&bytes, "bits")).unwrap();
    for (number, width) in numbers {
        assert_eq!(reader.take(width), number, "{width} bits");
    }
    assert!(reader.is_at_end());
    reader.take(63);
    assert!(!reader.is_at_end());
}

/// A curve whose differences of order `order` are small.
fn smooth(count: usize, order: usize, noise: u64) -> Vec<i64> {
    let mut seed = 1_u64;
    let mut residual = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((seed >> 33) % noise).wrapping_sub(noise / 2).cast_signed()
    };
    let mut values: Vec<i64> = (0..count).map(|_| residual()).collect();
    add_up(&mut values, &[u32::try_from(count).unwrap()], order, |number| number);
    values.iter().map(|value| value % (1 << 50)).collect()
}

#[test]
fn smooth_curves_take_what_their_differences_take() {
    for order in 0..ORDERS {
        let values = smooth(4_000, order.min(3), 8);
        let bytes = coded(&values, &[4_000]).unwrap();
        assert_eq!(usize::from(bytes[0]), order.min(3));
        // Three bits for each number, and the tables.
        assert!(bytes.len() < 1_500 + 120, "{order}: {}", bytes.len());
    }
}

#[test]
fn what_follows_from_the_number_before_takes_little() {
    // Two numbers that each repeat for a long time.
    let sticky: Vec<i64> = (0..6_000).map(|at| at / 50 % 2 * 1_000).collect();
    assert!(coded(&sticky, &[6_000]).unwrap().len() < 150);
    // Quiet and wild stretches.
    let wild = smooth(6_000, 0, 1 << 20);
    let bursts: Vec<i64> = wild
        .iter()
        .enumerate()
        .map(|(at, wild)| if at / 500 % 4 == 0 { *wild } else { 0 })
        .collect();
    assert!(coded(&bursts, &[6_000]).unwrap().len() < 6_000 / 4 * 20 / 8 + 250);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_numbers_come_back(
        numbers in prop_oneof![
            prop::collection::vec(any::<i64>(), 1_024..1_500),
            prop::collection::vec(-9_i64..9, 1_024..1_500),
            prop::collection::vec(prop_oneof![20 => Just(7_i64), 1 => any::<i64>()], 1_024..1_500),
        ],
        run in 1_u32..400,
        step in prop_oneof![Just(1_i64), Just(1_000), Just(1 << 40)],
    ) {
        let values: Vec<i64> = numbers.iter().map(|number| number.wrapping_mul(step)).collect();
        let count = u32::try_from(values.len()).unwrap();
        let mut lengths = vec![run; (count / run) as usize];
        lengths.extend(Some(count % run).filter(|rest| *rest > 0));
        coded(&values, &lengths);
    }

    /// Changed bytes are refused or decode to some numbers.
    #[test]
    fn changed_bytes_do_no_harm(
        at in any::<prop::sample::Index>(),
        byte: u8,
        cut in any::<prop::sample::Index>(),
        noise in 1_u64..2_000,
    ) {
        let mut bytes = coded(&smooth(1_100, 1, noise), &[1_100]).unwrap();
        let index = at.index(bytes.len());
        bytes[index] = byte;
        for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
            if let Ok(numbers) = read(&mut ByteReader::new(bytes, "numbers"), &[1_100]) {
                prop_assert_eq!(numbers.len(), 1_100);
            }
        }
    }

    #[test]
    fn frequencies_add_up_and_come_back(counts in prop::collection::vec(
        prop_oneof![3 => Just(0_u32), 2 => 1_u32..9, 1 => 1_u32..100_000], TOKENS,
    )) {
        let counts: [u32; TOKENS] = counts.try_into().unwrap();
        let Some(frequencies) = Frequencies::of_counts(&counts) else { return Ok(()) };
        let ranges = frequencies.ranges();
        let mut start = 0;
        for ((frequency, before), count) in ranges.iter().zip(counts) {
            prop_assert_eq!(*before, start);
            prop_assert!(*frequency > 0 || count == 0);
            start += frequency;
        }
        prop_assert_eq!(start, 2_048);
        let mut writer = BitWriter::default();
        frequencies.write(&mut writer);
        let bytes = writer.finish();
        let mut framed = vec![];
        crate::codec::bytes::put_len(&mut framed, bytes.len());
        framed.extend(bytes);
        let mut reader = BitReader::open(&mut ByteReader::new(&framed, "bits")).unwrap();
        prop_assert_eq!(Frequencies::read(&mut reader).unwrap().ranges(), ranges);
        prop_assert!(reader.is_at_end());
    }
}
