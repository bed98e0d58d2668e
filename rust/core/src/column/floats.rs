//! Doubles: as decimal integers where telemetry was made of decimals, else as bits.

use super::bytes::{Cursor, put_len, put_varint, put_zigzag};
use super::head::FloatBounds;
use super::integers;
use super::vector::vectorised;
use crate::error::Result;

const SCALED: u8 = 0;
const PATCHED: u8 = 1;
const BITS: u8 = 2;

/// Powers of ten that a double holds exactly.
const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Adding this to a double below 2^51 rounds it to an integer and leaves that in the low bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Decimal integers are smaller than this, 2^51, for [`ROUNDER`] to hold.
const SCALED_END: f64 = 2_251_799_813_685_248.0;

/// [`SCALED_END`] as an integer.
const SCALED_END_INTEGER: i64 = 1 << 51;

/// Integers that are summed at a time.
const SUMMED: usize = 512;

/// Values looked at to choose an exponent.
const SAMPLE: usize = 32;

/// One value in so many may be left to the exceptions when an exponent is chosen: each costs ten
/// bytes, about as much as three more bits on 24 others.
const SAMPLE_PER_EXCEPTION: usize = 24;

/// Bytes that an exception takes: its bits, and a guess at its position.
const EXCEPTION_LEN: usize = 10;

/// Largest exponent for which [`Power::divide`] may multiply instead.
const FUSED_EXPONENT_MAX: usize = 15;

/// `integer / 10^exponent`, rounded once.
#[expect(clippy::cast_precision_loss, reason = "the writer stays below 2^51; others lose nothing")]
fn unscale(integer: i64, power: f64) -> f64 {
    integer as f64 / power
}

/// A power of ten to multiply with and to divide by.
#[derive(Clone, Copy)]
struct Power {
    of_ten: f64,
    /// The double nearest to one over the power, and what that is off by.
    inverse: f64,
    inverse_rest: f64,
    is_small: bool,
}

impl Power {
    fn of(exponent: usize) -> Self {
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

/// [`unscale`] of all, and whether all are within `bounds`. Where no integer is too large for
/// [`ROUNDER`], as the writer's never are, all steps have vector forms on every machine; converting a
/// number of 64 bits has none.
fn unscale_all(mut integers: Vec<i64>, power: Power, bounds: FloatBounds) -> (Vec<f64>, bool) {
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

/// 1 for what does not lie within `bounds`. Comparisons with NaN fail, so it is 1 for that.
#[inline]
fn is_outside(value: f64, bounds: FloatBounds) -> u64 {
    u64::from(!(bounds.min..=bounds.max).contains(&value))
}

vectorised! {
    /// All bits that differ from the sign of their number.
    fn largest_bits(integers: &[i64]) -> i64 {
        integers.iter().fold(0, |bits, &integer| bits | (integer ^ (integer >> 63)))
    }
}

vectorised! {
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

vectorised! {
    /// Scales all; gives the number of values that are no decimals.
    fn scale_all(values: &[f64], power: Power, integers: &mut [i64]) -> u64 {
        let mut others = 0_u64;
        for (integer, &value) in integers.iter_mut().zip(values) {
            let (scaled, exact) = power.scale::<FUSED>(value);
            *integer = scaled;
            others = others.wrapping_add(u64::from(!exact));
        }
        others
    }
}

vectorised! {
    fn all_within(values: &[f64], bounds: FloatBounds) -> bool {
        let mut outside = 0_u64;
        for value in values {
            outside |= is_outside(*value, bounds);
        }
        outside == 0
    }
}

/// [`Power::scale`] of one value.
fn scale(value: f64, exponent: usize) -> (i64, bool) {
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
fn choose_exponent(values: &[f64]) -> Option<usize> {
    let stride = values.len().div_ceil(SAMPLE).max(1);
    let mut exponents = Vec::with_capacity(SAMPLE);
    let mut others = 0;
    for &value in values.iter().step_by(stride) {
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

/// Appends `values` and gives the exponent that served, if one did.
pub(super) fn encode(values: &[f64], run_lengths: &[u32], out: &mut Vec<u8>) -> Option<usize> {
    if values.is_empty() {
        return None;
    }
    let start = out.len();
    if let Some(exponent) = choose_exponent(values)
        && let Some(scaled) = Scaled::of(values, exponent)
    {
        scaled.write(values, run_lengths, out);
        if out.len() - start < values.len() * 8 {
            return Some(exponent);
        }
        out.truncate(start);
    }
    out.push(BITS);
    let bits: Vec<i64> = values.iter().map(|value| value.to_bits().cast_signed()).collect();
    integers::encode(&bits, run_lengths, out);
    None
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

struct Scaled {
    exponent: usize,
    integers: Vec<i64>,
    /// Positions of values that are no decimals of this exponent, ascending.
    exceptions: Vec<i64>,
}

impl Scaled {
    /// The values as decimal integers, unless exceptions alone would take too much.
    fn of(values: &[f64], exponent: usize) -> Option<Self> {
        let mut integers = vec![0; values.len()];
        let exception_count = scale_all(values, Power::of(exponent), &mut integers);
        let exception_count = usize::try_from(exception_count).unwrap_or(usize::MAX);
        if exception_count > values.len() * 8 / EXCEPTION_LEN / 2 {
            return None;
        }
        let mut exceptions = Vec::with_capacity(exception_count);
        if exception_count > 0 {
            let is_exact = |at: &usize| scale(values[*at], exponent).1;
            // A stand-in that costs nothing: the value before, or the first that is no exception.
            let mut stand_in = (0..values.len()).find(is_exact).map_or(0, |at| integers[at]);
            for (at, position) in (0..values.len()).zip(0..) {
                if is_exact(&at) {
                    stand_in = integers[at];
                } else {
                    exceptions.push(position);
                    integers[at] = stand_in;
                }
            }
        }
        Some(Self { exponent, integers, exceptions })
    }

    fn write(&self, values: &[f64], run_lengths: &[u32], out: &mut Vec<u8>) {
        out.push(if self.exceptions.is_empty() { SCALED } else { PATCHED });
        out.push(self.exponent.to_le_bytes()[0]);
        if !self.exceptions.is_empty() {
            put_len(out, self.exceptions.len());
            integers::encode_run(&self.exceptions, out);
            for &position in &self.exceptions {
                let at = usize::try_from(position).expect("positions are indices");
                out.extend_from_slice(&values[at].to_le_bytes());
            }
        }
        integers::encode(&self.integers, run_lengths, out);
    }
}

/// Reads `count` doubles that lie within `bounds`, which are there if there is a value.
pub(super) fn decode(
    input: &mut Cursor<'_>,
    count: usize,
    run_lengths: &[u32],
    bounds: Option<FloatBounds>,
) -> Result<Vec<f64>> {
    let Some(bounds) = bounds.filter(|_| count > 0) else {
        return Ok(Vec::new());
    };
    let values = match input.byte()? {
        form @ (SCALED | PATCHED) => {
            let power = Power::of(read_exponent(input)?);
            let exceptions =
                if form == PATCHED { read_exceptions(input, count)? } else { Vec::new() };
            let integers = integers::decode(input, count, run_lengths)?;
            let (mut values, is_within) = unscale_all(integers, power, bounds);
            if exceptions.is_empty() {
                input.check(is_within)?;
                return Ok(values);
            }
            for (at, value) in exceptions {
                values[at as usize] = value;
            }
            values
        }
        BITS => {
            let bits = integers::decode(input, count, run_lengths)?;
            bits.into_iter().map(|bits| f64::from_bits(bits.cast_unsigned())).collect()
        }
        _ => return Err(input.corrupt()),
    };
    input.check(all_within(&values, bounds))?;
    Ok(values)
}

fn read_exponent(input: &mut Cursor<'_>) -> Result<usize> {
    let exponent = usize::from(input.byte()?);
    input.check(exponent < POWERS_OF_TEN.len())?;
    Ok(exponent)
}

/// Positions below `count` and the values there.
fn read_exceptions(input: &mut Cursor<'_>, count: usize) -> Result<Vec<(u32, f64)>> {
    let end = u32::try_from(count).map_err(|_| input.corrupt())?;
    // Each has eight bytes of its own.
    let exception_count = input.len(count.min(input.remaining() / 8))?;
    let positions = integers::decode_run(input, exception_count, end)?;
    input.check(positions.is_sorted_by(|a, b| a < b))?;
    positions.into_iter().map(|at| Ok((at, f64::from_le_bytes(input.array()?)))).collect()
}

/// Smallest and largest value in the total order.
pub(crate) fn bounds_of(values: &[f64]) -> Option<FloatBounds> {
    let value = |key: i64| {
        f64::from_bits((key ^ ((key >> 63).cast_unsigned() >> 1).cast_signed()).cast_unsigned())
    };
    if values.is_empty() {
        return None;
    }
    let (low, high) = key_range(values);
    Some(FloatBounds { min: value(low), max: value(high) })
}

vectorised! {
    /// Smallest and largest of the numbers that sort as doubles do.
    fn key_range(values: &[f64]) -> (i64, i64) {
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for value in values {
            // Negative doubles sort the wrong way round until their other bits are turned over.
            let bits = value.to_bits().cast_signed();
            let key = bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed();
            low = low.min(key);
            high = high.max(key);
        }
        (low, high)
    }
}

/// Appends bounds, scaled with `exponent` if that keeps them exact; says whether it did.
pub(super) fn encode_bounds(
    bounds: FloatBounds,
    exponent: Option<usize>,
    out: &mut Vec<u8>,
) -> bool {
    if let Some(exponent) = exponent {
        let (min, min_exact) = scale(bounds.min, exponent);
        let (max, max_exact) = scale(bounds.max, exponent);
        if min_exact && max_exact {
            out.push(exponent.to_le_bytes()[0]);
            put_zigzag(out, min);
            put_varint(out, max.wrapping_sub(min).cast_unsigned());
            return true;
        }
    }
    out.extend_from_slice(&bounds.min.to_le_bytes());
    out.extend_from_slice(&bounds.max.to_le_bytes());
    false
}

/// Reads what [`encode_bounds`] wrote.
pub(super) fn decode_bounds(input: &mut Cursor<'_>, scaled: bool) -> Result<FloatBounds> {
    let (min, max) = if scaled {
        let power = POWERS_OF_TEN[read_exponent(input)?];
        let min = input.zigzag()?;
        let max = min.checked_add_unsigned(input.varint()?).ok_or(input.corrupt())?;
        (unscale(min, power), unscale(max, power))
    } else {
        (f64::from_le_bytes(input.array()?), f64::from_le_bytes(input.array()?))
    };
    input.check(min.is_finite() && max.is_finite() && min.total_cmp(&max).is_le())?;
    Ok(FloatBounds { min, max })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::vector::tests::portably;
    use super::*;

    fn form_of(values: &[f64]) -> u8 {
        let mut bytes = Vec::new();
        let lengths = [u32::try_from(values.len()).unwrap()];
        encode(values, &lengths, &mut bytes);
        let mut input = Cursor::new(&bytes, "floats");
        let back = decode(&mut input, values.len(), &lengths, bounds_of(values)).unwrap();
        input.end().unwrap();
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back), bits(values));
        bytes[0]
    }

    #[test]
    fn decimals_are_scaled_and_strangers_patched() {
        let mut values: Vec<f64> = (0..1_000).map(|at| f64::from(at * 37 % 360) / 10.0).collect();
        assert_eq!(form_of(&values), SCALED);
        for (at, stranger) in [(0, -0.0), (500, 0.1 + 0.2), (501, f64::MAX), (999, 5e-324)] {
            values[at] = stranger;
        }
        assert_eq!(form_of(&values), PATCHED);
        assert_eq!(form_of(&[0.1 + 0.2, 1.0 / 3.0, 5e-324, f64::MIN]), BITS);
        assert_eq!(form_of(&[-0.0; 40]), BITS);
    }

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
                let unscaled = || unscale_all(integers.clone(), power, bounds).0;
                let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                prop_assert_eq!(bits(&unscaled()), &*divided);
                prop_assert_eq!(bits(&portably(unscaled)), divided);
                let values = unscaled();
                let scaled = || {
                    let mut back = vec![0; values.len()];
                    (scale_all(&values, power, &mut back), back)
                };
                prop_assert_eq!(scaled(), portably(scaled));
            }
        }
    }

    #[test]
    fn the_largest_decimal_integers_come_back() {
        let end = SCALED_END;
        form_of(&[end, end - 1.0, end + 1.0, -end, 1.0 - end, 2.0 * end, 4.0 * end, 0.0]);
        form_of(&[9_007_199_254_740_993.0, 0.5, 1e22, 1e-22, 1e300, -1e300]);
    }

    #[test]
    fn bounds_follow_the_total_order() {
        let bounds = bounds_of(&[0.0, -0.0, 3.5, -7.25]).unwrap();
        assert_eq!((bounds.min, bounds.max), (-7.25, 3.5));
        let zeros = bounds_of(&[0.0, -0.0]).unwrap();
        assert!(zeros.min.is_sign_negative() && zeros.max.is_sign_positive());
    }
}
