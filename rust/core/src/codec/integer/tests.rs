//! Numbers come back from every form, and the shortest form is taken.

use proptest::prelude::*;

use super::form::{
    BASED, CODED, CONSTANT, DELTA_PATCHED, FRAME_OF_REFERENCE, LINEAR, LINEAR_RUNS, PATCHED,
};
use super::{decode, encode, encode_times};
use crate::codec::Effort;
use crate::codec::bytes::ByteReader;
use crate::codec::simd::on_all_levels;

fn round_trip(values: &[i64], run_lengths: &[u32]) -> (u8, usize) {
    written_by(encode, values, run_lengths)
}

fn written_by(
    encode: impl Fn(&[i64], &[u32], Effort, &mut Vec<u8>),
    values: &[i64],
    run_lengths: &[u32],
) -> (u8, usize) {
    let bytes = on_all_levels(|| {
        let mut bytes = Vec::new();
        encode(values, run_lengths, Effort::High, &mut bytes);
        bytes
    });
    let back = on_all_levels(|| {
        let mut input = ByteReader::new(&bytes, "numbers");
        let back = decode(&mut input, values.len(), run_lengths).unwrap().widen();
        input.end().unwrap();
        back
    });
    assert_eq!(back, values);
    (bytes[0], bytes.len())
}

#[test]
fn the_shortest_form_is_taken() {
    assert_eq!(round_trip(&[-7; 500], &[500]), (CONSTANT, 2));
    // Steps of ten seconds cost nothing once the step is known.
    let times: Vec<i64> =
        (0..512).map(|at| 1_700_000_000_000_000_000 + at * 10_000_000_000).collect();
    let (form, len) = round_trip(&times, &[512]);
    assert_eq!(form, DELTA_PATCHED);
    assert!(len < 40, "{len}");
    // Jumps between runs do not widen the steps within them.
    let walks: Vec<i64> = (0..1_000).map(|at| (at / 10) * 7_919 % 36_000 + at % 10).collect();
    let (form, len) = round_trip(&walks, &[10; 100]);
    assert_eq!(form, DELTA_PATCHED);
    assert!(len < 100 * 2 + 30, "{len}");
    assert_eq!(round_trip(&[3, 1, 2], &[1; 3]).0, FRAME_OF_REFERENCE);
}

/// Pseudo-random number below `end`, the same on every machine and independent of the numbers
/// before.
fn random(end: i64, index: i64) -> i64 {
    let mut mixed = (index + 1).cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 34).cast_signed() % end
}

#[test]
fn a_range_takes_fractions_of_a_bit_and_few_exceptions_do_not_widen_it() {
    let mut values: Vec<i64> = (0..6_000).map(|at| 500 + 3 * random(41, at)).collect();
    let each = vec![1; values.len()];
    let (form, len) = round_trip(&values, &each);
    assert_eq!(form, PATCHED);
    // log2(41) is 5.36; whole bits would take 6.
    assert!(len < 6_000 * 55 / 80, "{len}");
    for (index, exception) in [(0, -40_000), (17, 36_500), (3_000, 503 + 3 * 41), (5_999, 2)] {
        values[index] = exception;
    }
    let (form, patched_len) = round_trip(&values, &each);
    assert_eq!(form, PATCHED);
    assert!(patched_len < len + 40, "{patched_len}");
    // The difference of an angle that wraps around is an exception.
    let mut angle = 0;
    let angles = (0..6_000).map(|at| {
        angle += random(241, at) - 80;
        angle % 36_000
    });
    let angles: Vec<i64> = angles.collect();
    let (form, len) = round_trip(&angles, &[6_000]);
    assert_eq!(form, DELTA_PATCHED);
    assert!(len < 6_000 + 150, "{len}");
    let groups: Vec<i64> = (0..6_000).map(|at| at / 128 * 100_000 + random(10, at)).collect();
    assert_eq!(round_trip(&groups, &each).0, FRAME_OF_REFERENCE);
}

#[test]
fn times_that_tick_evenly_cost_their_jitter() {
    let time = |tick: i64, at: i64| {
        1_700_000_000_000_000_000 + (at * tick / 100 + random(10, at)) * 1_000_000
    };
    for tick in [1_000_000, 999] {
        let times: Vec<i64> = (0..2_000).map(|at| time(tick, at)).collect();
        let (form, len) = written_by(encode_times, &times, &[1; 2_000]);
        assert_eq!(form, LINEAR);
        assert!(len < 2_000 * 37 / 80 + 40, "{tick}: {len}");
    }
    // The time begins again in each run.
    let times: Vec<i64> = (0..2_000).map(|at| time(1_000_000, at % 400)).collect();
    let (form, len) = written_by(encode_times, &times, &[400; 5]);
    assert_eq!(form, LINEAR_RUNS);
    assert!(len < 2_000 * 37 / 80 + 80, "{len}");
    let extremes = [i64::MIN, i64::MAX, -1, 0].repeat(20);
    written_by(encode_times, &extremes, &[80]);
    written_by(encode_times, &[7; 40], &[40]);
    let falling: Vec<i64> = (0..100).map(|at| -at * 7_000 + random(9, at)).collect();
    assert_eq!(written_by(encode_times, &falling, &[100]).0, DELTA_PATCHED);
}

#[test]
fn multiples_with_a_few_others_take_what_their_quotients_take() {
    let page =
        |at| 20_480 * random(1 << 20, at) + if at % 10 == 0 { random(20_480, -at) } else { 0 };
    let pages: Vec<i64> = (0..4_000).map(page).collect();
    let (form, len) = round_trip(&pages, &[1_000; 4]);
    assert_eq!(form, BASED);
    // 20 bits for each number, and 15 more for each tenth.
    assert!(len < 4_000 * 20 / 8 + 400 * 15 / 8 + 600, "{len}");
    // A clock that counts seconds in doubles moves by 238 ns. The jitter is 2^12 such steps.
    let time = |at: i64| {
        let ticks = (1_700_000_000 + 30 * at) * (1 << 22) + random(1 << 12, at);
        i64::try_from((i128::from(ticks) * 1_000_000_000) >> 22).unwrap()
    };
    let times: Vec<i64> = (0..4_000).map(time).collect();
    let (form, len) = written_by(encode_times, &times, &[4_000]);
    assert_eq!(form, BASED);
    assert!(len < 4_000 * 13 / 8 + 200, "{len}");
    let wild: Vec<i64> = times.iter().map(|time| time.wrapping_mul(1 << 20)).collect();
    written_by(encode_times, &wild, &[4_000]);
}

#[test]
fn tails_take_what_they_hold() {
    // A die of twelve gives the number of bits. On average a number takes nine bits with a sign,
    // but the largest takes twelve.
    let values: Vec<i64> = (0..4_000).map(|at| random(2 << random(12, -at), at)).collect();
    let (form, len) = round_trip(&values, &[4_000]);
    assert_eq!(form, CODED);
    assert!(len < 4_000 * 19 / 16 + 100, "{len}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Numbers near the ends of 32 bits and their prefix sums come back, in runs of any length.
    #[test]
    fn numbers_of_32_bits_and_a_few_more_come_back(
        at_end: bool,
        end in prop_oneof![Just(i64::from(i32::MAX)), Just(1_i64 << 30), Just(1_i64 << 40), Just(0_i64)],
        below in prop_oneof![2_i64..300, 1_i64 << 20..1_i64 << 22],
        step in prop_oneof![Just(1_i64), Just(5_i64), Just(1_000_i64)],
        lengths in prop::collection::vec(1_u32..300, 1..6),
        exception in prop::option::of(any::<prop::sample::Index>()),
        seed: u16,
    ) {
        let count = i64::from(lengths.iter().sum::<u32>());
        let start = if at_end { end - below * step * 2 } else { -end - 1 };
        let number = |at: i64| start + step * random(below, at + i64::from(seed));
        let mut numbers: Vec<i64> = (0..count).map(number).collect();
        if let Some(exception) = exception {
            let index = exception.index(numbers.len());
            numbers[index] -= 1 << 31;
        }
        round_trip(&numbers, &lengths);
        let mut sum = 0;
        let sums: Vec<i64> = numbers.iter().map(|number| { sum += number - start; sum + start }).collect();
        round_trip(&sums, &lengths);
        written_by(encode_times, &sums, &lengths);
        let narrow: Option<Vec<i32>> = numbers.iter().map(|number| i32::try_from(*number).ok()).collect();
        if let Some(narrow) = narrow.filter(|numbers| numbers.iter().all(|number| number.unsigned_abs() < 1 << 30)) {
            let bytes = |encode: &dyn Fn(&mut Vec<u8>)| {
                let mut bytes = Vec::new();
                encode(&mut bytes);
                bytes
            };
            let wide = bytes(&|out| encode(&numbers, &lengths, Effort::High, out));
            prop_assert_eq!(on_all_levels(|| bytes(&|out| encode(&narrow, &lengths, Effort::High, out))), wide);
        }
    }
}

#[test]
fn the_whole_range_comes_back() {
    let extremes = [i64::MIN, i64::MAX, -1, 0, i64::MAX, i64::MIN, 1];
    round_trip(&extremes, &[7]);
    round_trip(&extremes, &[3, 4]);
    round_trip(&extremes, &[1; 7]);
    round_trip(&[i64::MIN, i64::MAX].repeat(200), &[400]);
}
