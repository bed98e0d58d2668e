//! Doubles that are decimals: integers over a power of ten.

use crate::codec::FloatBounds;
use crate::codec::integer::number::{Number, Numbers};
use crate::codec::simd::{mapped, multiversioned};

/// Powers of ten that a double holds exactly.
pub(super) const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Adding this to a double below 2^51 rounds it to an integer and leaves that in the low bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Decimal integers are smaller than this, 2^51, for [`ROUNDER`] to hold.
pub(super) const SCALED_END: f64 = 2_251_799_813_685_248.0;

/// Integers below this are scaled to 32 bits.
const NARROW_END: f64 = 1_073_741_824.0;

/// Stands for what is no integer below that.
pub(super) const STRANGER: i32 = i32::MIN;

/// [`SCALED_END`] as an integer.
const SCALED_END_INTEGER: i64 = 1 << 51;

/// Integers that are summed at a time.
const SUMMED: usize = 512;

/// Values looked at to choose an exponent.
const SAMPLE: usize = 32;

/// Exponents that are tried on a whole sample.
const QUICK_EXPONENTS: usize = 5;

/// One value in so many may be left to the exceptions when an exponent is chosen: each costs ten
/// bytes, about as much as three more bits on 24 others.
const SAMPLE_PER_EXCEPTION: usize = 24;

/// Largest exponent for which [`Power::divide`] may multiply instead.
const FUSED_EXPONENT_MAX: usize = 15;

/// `integer / 10^exponent`, rounded once.
#[expect(clippy::cast_precision_loss, reason = "the writer stays below 2^51; others lose nothing")]
pub(super) fn unscale(integer: i64, power: f64) -> f64 {
    integer as f64 / power
}

/// A power of ten to multiply with and to divide by.
#[derive(Clone, Copy)]
pub(super) struct Power {
    pub(super) of_ten: f64,
    /// The double nearest to one over the power, and what that is off by.
    inverse: f64,
    inverse_rest: f64,
    is_small: bool,
}

impl Power {
    pub(super) fn of(exponent: usize) -> Self {
        let of_ten = POWERS_OF_TEN[exponent];
        let inverse = of_ten.recip();
        let inverse_rest = (-of_ten).mul_add(inverse, 1.0) / of_ten;
        Self { of_ten, inverse, inverse_rest, is_small: exponent <= FUSED_EXPONENT_MAX }
    }

    /// `integer / of_ten`, rounded once, for an integer below 2^51.
    ///
    /// A division takes several times as long as two multiplications. What these round at last is off
    /// from the quotient by less than one part in 2^104. Rounding it would differ from rounding the
    /// quotient only if a number halfway between two doubles, `m * 2^k` with an odd `m` of 54 bits, lay
    /// between both. But `integer / 10^e` is no such number, as `m * 5^e` has more bits than `integer`;
    /// and as `integer` and `m * 2^k * 10^e` are different multiples of one power of two, of which
    /// the latter has at most `2^54 * 5^15 < 2^89`, they are one part in 2^89 apart.
    #[inline]
    fn divide<const FUSED: bool>(self, integer: f64) -> f64 {
        if FUSED && self.is_small {
            integer.mul_add(self.inverse, integer * self.inverse_rest)
        } else {
            integer / self.of_ten
        }
    }

    /// The integer that divided by the power is `value`, if there is one below 2^51; if not, any.
    #[inline]
    fn scale<const FUSED: bool>(self, value: f64) -> (i64, bool) {
        let shifted = value * self.of_ten + ROUNDER;
        let rounded = shifted - ROUNDER;
        let integer = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed();
        let exact = self.divide::<FUSED>(rounded).to_bits() == value.to_bits();
        (integer, exact & (rounded.abs() < SCALED_END))
    }
}

/// [`unscale`] of all, and whether all are within `bounds`.
pub(super) fn unscale_all(
    integers: Numbers,
    power: Power,
    bounds: FloatBounds,
) -> (Vec<f64>, bool) {
    let mut integers = match integers {
        Numbers::Narrow(integers) => {
            let (values, low, high) = unscale_narrow(&integers, power);
            // Smaller integers never become larger doubles.
            let outside = is_outside(unscale(low.into(), power.of_ten), bounds)
                | is_outside(unscale(high.into(), power.of_ten), bounds);
            return (values, outside == 0);
        }
        Numbers::Wide(integers) => integers,
    };
    // Where no integer is too large for `ROUNDER`, as the writer's never are, all steps have vector
    // forms on every machine; converting a number of 64 bits has none.
    let is_within = if largest_bits(&integers) < SCALED_END_INTEGER {
        unscale_small(&mut integers, power, bounds)
    } else {
        let mut outside = 0;
        for integer in &mut integers {
            let value = unscale(*integer, power.of_ten);
            outside |= is_outside(value, bounds);
            *integer = value.to_bits().cast_signed();
        }
        outside == 0
    };
    // The same memory, seen as doubles.
    (integers.into_iter().map(|bits| f64::from_bits(bits.cast_unsigned())).collect(), is_within)
}

multiversioned! {
    /// [`unscale`] of all, and the smallest and the largest of these.
    fn unscale_narrow(integers: &[i32], power: Power) -> (Vec<f64>, i32, i32) {
        let (mut low, mut high) = (i32::MAX, i32::MIN);
        let values = mapped(integers, |integer| {
            low = low.min(integer);
            high = high.max(integer);
            power.divide::<FUSED>(integer.into())
        });
        (values, low, high)
    }
}

/// 1 for what does not lie within `bounds`. Comparisons with NaN fail, so it is 1 for that.
#[inline]
pub(super) fn is_outside(value: f64, bounds: FloatBounds) -> u64 {
    u64::from(!(bounds.min..=bounds.max).contains(&value))
}

multiversioned! {
    /// All bits that differ from the sign of their number.
    fn largest_bits(integers: &[i64]) -> i64 {
        integers.iter().fold(0, |bits, &integer| bits | (integer ^ (integer >> 63)))
    }
}

multiversioned! {
    /// Turns integers below 2^51 into the bits of doubles; says whether all are within `bounds`.
    fn unscale_small(integers: &mut [i64], power: Power, bounds: FloatBounds) -> bool {
        let mut outside = 0_u64;
        for integer in integers {
            let double = ROUNDER.to_bits().wrapping_add(integer.cast_unsigned());
            let value = power.divide::<FUSED>(f64::from_bits(double) - ROUNDER);
            outside |= is_outside(value, bounds);
            *integer = value.to_bits().cast_signed();
        }
        outside == 0
    }
}

multiversioned! {
    /// Scales all; gives the number of values that are no decimals.
    pub(super) fn scale_all(values: &[f64], power: Power, integers: &mut [i64]) -> u64 {
        let mut others = 0_u64;
        for (integer, &value) in integers.iter_mut().zip(values) {
            let (scaled, exact) = power.scale::<FUSED>(value);
            *integer = scaled;
            others = others.wrapping_add(u64::from(!exact));
        }
        others
    }
}

multiversioned! {
    /// Scales all to integers below 2^30, whose differences fit 32 bits as well; gives the number of
    /// values that are no such decimals, which become [`STRANGER`].
    pub(super) fn scale_narrow(values: &[f64], power: Power) -> (Vec<i32>, u64) {
        let mut others = 0_u64;
        let integers = mapped(values, |value| {
            let shifted = value * power.of_ten + ROUNDER;
            let rounded = shifted - ROUNDER;
            let exact = power.divide::<FUSED>(rounded).to_bits() == value.to_bits();
            let fits = exact & (rounded.abs() < NARROW_END);
            others = others.wrapping_add(u64::from(!fits));
            if fits { i32::of(shifted.to_bits().cast_signed()) } else { STRANGER }
        });
        (integers, others)
    }
}

/// [`Power::scale`] of one value.
pub(super) fn scale(value: f64, exponent: usize) -> (i64, bool) {
    let of_ten = POWERS_OF_TEN[exponent];
    let power = Power { of_ten, inverse: 0.0, inverse_rest: 0.0, is_small: false };
    power.scale::<false>(value)
}

/// Smallest exponent that makes a decimal integer of `value`.
fn exponent_of(value: f64) -> Option<usize> {
    (0..POWERS_OF_TEN.len())
        .take_while(|exponent| (value * POWERS_OF_TEN[*exponent]).abs() < SCALED_END)
        .find(|exponent| scale(value, *exponent).1)
}

/// The exponent that serves nearly all of a sample, if most of it are decimals.
pub(super) fn choose_exponent(values: &[f64]) -> Option<usize> {
    let stride = values.len().div_ceil(SAMPLE).max(1);
    let mut sample = [0.0; SAMPLE];
    let mut len = 0;
    for value in values.iter().step_by(stride) {
        sample[len] = *value;
        len += 1;
    }
    let sample = &sample[..len];
    quick_exponent(sample).or_else(|| any_exponent(sample))
}

/// The same of few digits, which are tried on the whole sample at a time.
fn quick_exponent(sample: &[f64]) -> Option<usize> {
    let spared = sample.len() / SAMPLE_PER_EXCEPTION;
    let mut chosen = None;
    for exponent in 0..QUICK_EXPONENTS {
        let (_, others) = scale_narrow(sample, Power::of(exponent));
        if others <= spared as u64 {
            chosen = chosen.or(Some(exponent));
        }
        if others == 0 {
            return chosen;
        }
    }
    None
}

/// The same of any decimals, some of which may be none.
fn any_exponent(sample: &[f64]) -> Option<usize> {
    let mut exponents = Vec::with_capacity(sample.len());
    let mut others = 0;
    for &value in sample {
        match exponent_of(value) {
            Some(exponent) => exponents.push(exponent),
            None => others += 1,
        }
        if others > SAMPLE / 4 && others > exponents.len() {
            return None;
        }
    }
    exponents.sort_unstable();
    let spared = exponents.len() / SAMPLE_PER_EXCEPTION;
    exponents.len().checked_sub(1 + spared).map(|at| exponents[at])
}

/// The sum of `values` as the decimals that they are, rounded once; `None` unless all of them are
/// decimals of one exponent.
pub(crate) fn decimal_sum(values: &[f64]) -> Option<f64> {
    let chosen = choose_exponent(values)?;
    // The sample may have missed the few values with a digit more.
    (chosen..POWERS_OF_TEN.len()).take(3).find_map(|exponent| {
        let sum = sum_scaled(values, Power::of(exponent))?;
        // Below 2^53 both are exact, so the division rounds once.
        (sum.unsigned_abs() < 1 << 53).then(|| unscale(sum, POWERS_OF_TEN[exponent]))
    })
}

/// The sum of decimal integers, unless one is none or it overflows.
fn sum_scaled(values: &[f64], power: Power) -> Option<i64> {
    let mut integers = [0; SUMMED];
    let mut sum = 0_i64;
    for values in values.chunks(SUMMED) {
        let integers = &mut integers[..values.len()];
        let others = scale_all(values, power, integers);
        // As part of a sum, -0.0 is as good as 0.
        let zeros = || values.iter().filter(|value| value.to_bits() == (-0.0_f64).to_bits());
        if others > 0 && others != zeros().count() as u64 {
            return None;
        }
        // Each is below 2^52, so some hundreds fit.
        let part = integers.iter().fold(0_i64, |sum, integer| sum.wrapping_add(*integer));
        sum = sum.checked_add(part)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::simd::on_all_levels;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// With and without the vectors of the machine.
        #[test]
        fn decimals_divide_alike_on_any_machine(
            integers in prop::collection::vec(-SCALED_END_INTEGER + 1..SCALED_END_INTEGER, 1..70),
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
                let unscaled = || unscale_all(Numbers::Wide(integers.clone()), power, bounds).0;
                let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                prop_assert_eq!(on_all_levels(|| bits(&unscaled())), &*divided);
                let narrow: Option<Vec<i32>> =
                    integers.iter().map(|integer| i32::try_from(*integer).ok()).collect();
                if let Some(narrow) = narrow {
                    let unscaled = || unscale_all(Numbers::Narrow(narrow.clone()), power, bounds);
                    prop_assert_eq!(on_all_levels(|| bits(&unscaled().0)), divided);
                }
                let values = unscaled();
                let (others, scaled) = on_all_levels(|| {
                    let mut back = vec![0; values.len()];
                    (scale_all(&values, power, &mut back), back)
                });
                let (narrow, strangers) = on_all_levels(|| scale_narrow(&values, power));
                prop_assert!(others <= strangers);
                for (scaled, narrow) in scaled.iter().zip(narrow) {
                    prop_assert!(narrow == STRANGER || *scaled == i64::from(narrow));
                }
            }
        }
    }
}
