//! Doubles come back bit for bit, and in the same way on every SIMD level.

use proptest::prelude::*;

use super::bounds::FloatBounds;
use super::decimal::{
    EXCEPTION, POWERS_OF_TEN, Power, SCALED_END, scale_all, scale_narrow, unscale,
};
use super::decode::unscale_all;
use super::encode::{BITS, RATIOS, REPEATED, SCALED, SCALED_WITH_EXCEPTIONS};
use super::{decode, encode};
use crate::codec::Effort;
use crate::codec::bytes::ByteReader;
use crate::codec::integer::number::SignedNumbers;
use crate::codec::simd::on_all_levels;

/// Decimal integers are smaller than this.
const INTEGER_END: i64 = 1 << 51;

fn form_of(values: &[f64]) -> u8 {
    let mut bytes = Vec::new();
    let lengths = [u32::try_from(values.len()).unwrap()];
    encode(values, &lengths, Effort::High, &mut bytes);
    let mut input = ByteReader::new(&bytes, "floats");
    let back = decode(&mut input, values.len(), &lengths, FloatBounds::of(values)).unwrap();
    input.end().unwrap();
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&back), bits(values));
    bytes[0]
}

#[test]
fn decimals_are_scaled_and_others_are_exceptions() {
    let mut values: Vec<f64> = (0..1_000).map(|at| f64::from(at * 37 % 360) / 10.0).collect();
    assert_eq!(form_of(&values), SCALED);
    for (index, exception) in [(0, -0.0), (500, 0.1 + 0.2), (501, f64::MAX), (999, 5e-324)] {
        values[index] = exception;
    }
    assert_eq!(form_of(&values), SCALED_WITH_EXCEPTIONS);
    assert_eq!(form_of(&[0.1 + 0.2, 1.0 / 3.0, 5e-324, f64::MIN]), BITS);
    assert_eq!(form_of(&[-0.0; 40]), BITS);
}

/// Pseudo-random number below `end`, the same on every machine.
fn random(end: u32, index: u32) -> f64 {
    let mixed = (index ^ index >> 7).wrapping_add(1).wrapping_mul(0x9e37_79b1);
    f64::from((mixed ^ mixed >> 15) % end)
}

#[test]
fn values_over_a_divisor_are_ratios_and_few_distinct_ones_are_stored_once() {
    let mut means: Vec<f64> = (0..1_500).map(|at| random(9_000, at) / 84.0).collect();
    assert_eq!(form_of(&means), RATIOS);
    // Values scaled to a range with two roundings.
    let scale = 2.0 / 4_557.0;
    let scaled: Vec<f64> = (0..1_500).map(|at| random(4_557, at) * scale - 1.0).collect();
    assert_eq!(form_of(&scaled), RATIOS);
    for (index, other) in [(0, -0.0), (1, 1e300), (700, f64::MIN_POSITIVE), (1_499, 5e-324)] {
        means[index] = other;
        form_of(&means);
    }
    let levels: Vec<f64> = (0..1_500).map(|at| (random(20, at) + 2.0).sqrt()).collect();
    assert_eq!(form_of(&levels), REPEATED);
    let uneven: Vec<f64> = (0..1_500).map(|at| random(20, at).powi(4) / 10.0).collect();
    assert_eq!(form_of(&uneven), REPEATED);
    form_of(&(0..1_500).map(|at| if at % 2 == 0 { -0.0 } else { 0.0 }).collect::<Vec<_>>());
}

#[test]
fn the_largest_decimal_integers_come_back() {
    let end = SCALED_END;
    form_of(&[end, end - 1.0, end + 1.0, -end, 1.0 - end, 2.0 * end, 4.0 * end, 0.0]);
    form_of(&[9_007_199_254_740_993.0, 0.5, 1e22, 1e-22, 1e300, -1e300]);
}

#[test]
fn bounds_follow_the_total_order() {
    let bounds = FloatBounds::of(&[0.0, -0.0, 3.5, -7.25]).unwrap();
    assert_eq!((bounds.min, bounds.max), (-7.25, 3.5));
    let zeros = FloatBounds::of(&[0.0, -0.0]).unwrap();
    assert!(zeros.min.is_sign_negative() && zeros.max.is_sign_positive());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Bits of any kind of doubles come back from every form that they may take.
    #[test]
    fn any_doubles_come_back(
        kinds in prop::collection::vec((0..6_u8, any::<u64>(), 1_u32..5_000), 1..6),
        count in 1_usize..1_500,
    ) {
        let values: Vec<f64> = (0..count)
            .map(|at| {
                let (kind, bits, end) = kinds[at * kinds.len() / count];
                let index = u32::try_from(at).unwrap();
                let any = f64::from_bits(bits.rotate_left(index % 64) & !(1 << 62));
                match kind {
                    0 => random(end, index) / 100.0,
                    1 => random(end, index) / f64::from(end),
                    2 => (random(end % 50 + 1, index) + 1.0).ln(),
                    3 => random(end, index) / 2_f64.powi(50),
                    4 => (f64::from(index) / 100.0).sin(),
                    _ => any,
                }
            })
            .collect();
        form_of(&values);
    }

    #[test]
    fn decimals_divide_alike_on_all_levels(
        integers in prop::collection::vec(-INTEGER_END + 1..INTEGER_END, 1..70),
        small in prop::collection::vec(-100_000_i64..100_000, 1..70),
        exponent in 0..POWERS_OF_TEN.len(),
    ) {
        let power = Power::of(exponent);
        let bounds = FloatBounds { min: f64::MIN, max: f64::MAX };
        for integers in [integers, small] {
            let divided: Vec<u64> = integers
                .iter()
                .map(|integer| unscale(*integer, POWERS_OF_TEN[exponent]).to_bits())
                .collect();
            let unscaled = || unscale_all(SignedNumbers::Wide(integers.clone()), power, bounds).0;
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(on_all_levels(|| bits(&unscaled())), &*divided);
            let narrow: Option<Vec<i32>> =
                integers.iter().map(|integer| i32::try_from(*integer).ok()).collect();
            if let Some(narrow) = narrow {
                let unscaled = || unscale_all(SignedNumbers::Narrow(narrow.clone()), power, bounds);
                prop_assert_eq!(on_all_levels(|| bits(&unscaled().0)), divided);
            }
            let values = unscaled();
            let (exceptions, scaled) = on_all_levels(|| {
                let mut back = vec![0; values.len()];
                (scale_all(&values, power, &mut back), back)
            });
            let (narrow, narrow_exceptions) = on_all_levels(|| scale_narrow(&values, power));
            prop_assert!(exceptions <= narrow_exceptions);
            for (scaled, narrow) in scaled.iter().zip(narrow) {
                prop_assert!(narrow == EXCEPTION || *scaled == i64::from(narrow));
            }
        }
    }
}
