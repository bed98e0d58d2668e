//! Doubles: as decimal integers where telemetry was made of decimals, else as bits.

use super::bytes::{Cursor, put_len, put_varint, put_zigzag};
use super::head::FloatBounds;
use super::integers;
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

/// Values looked at to choose an exponent.
const SAMPLE: usize = 32;

/// One value in so many may be left to the exceptions when an exponent is chosen: each costs ten
/// bytes, about as much as three more bits on 24 others.
const SAMPLE_PER_EXCEPTION: usize = 24;

/// Bytes that an exception takes: its bits, and a guess at its position.
const EXCEPTION_LEN: usize = 10;

/// `integer / 10^exponent`, rounded once.
#[expect(clippy::cast_precision_loss, reason = "the writer stays below 2^51; others lose nothing")]
fn unscale(integer: i64, power: f64) -> f64 {
    integer as f64 / power
}

/// [`unscale`] of all. Where no integer is too large for [`ROUNDER`], as the writer's never are, all
/// steps have vector forms on every machine; converting a number of 64 bits has none.
fn unscale_all(integers: Vec<i64>, power: f64) -> Vec<f64> {
    let bits = integers.iter().fold(0, |bits, &integer| bits | (integer ^ (integer >> 63)));
    if bits >= SCALED_END_INTEGER {
        return integers.into_iter().map(|integer| unscale(integer, power)).collect();
    }
    let base = ROUNDER.to_bits();
    let double =
        |integer: i64| f64::from_bits(base.wrapping_add(integer.cast_unsigned())) - ROUNDER;
    integers.into_iter().map(|integer| double(integer) / power).collect()
}

/// The integer whose [`unscale`] is `value`, if there is one below 2^51; if not, any integer.
fn scale(value: f64, power: f64) -> (i64, bool) {
    let shifted = value * power + ROUNDER;
    let rounded = shifted - ROUNDER;
    let integer = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed();
    let exact = (rounded / power).to_bits() == value.to_bits();
    (integer, exact && (rounded.abs() < SCALED_END))
}

/// Smallest exponent that makes a decimal integer of `value`.
fn exponent_of(value: f64) -> Option<usize> {
    (0..POWERS_OF_TEN.len())
        .take_while(|exponent| (value * POWERS_OF_TEN[*exponent]).abs() < SCALED_END)
        .find(|exponent| scale(value, POWERS_OF_TEN[*exponent]).1)
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
        let power = POWERS_OF_TEN[exponent];
        let mut sum = 0_i64;
        for &value in values {
            let (integer, exact) = scale(value, power);
            // As part of a sum, -0.0 is as good as 0.
            sum = sum.checked_add(integer).filter(|_| exact || value == 0.0)?;
        }
        // Below 2^53 both are exact, so the division rounds once.
        (sum.unsigned_abs() < 1 << 53).then(|| unscale(sum, power))
    })
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
        let power = POWERS_OF_TEN[exponent];
        let mut integers = vec![0; values.len()];
        let mut exception_count = 0;
        for (integer, &value) in integers.iter_mut().zip(values) {
            let (scaled, exact) = scale(value, power);
            *integer = scaled;
            exception_count += u64::from(!exact);
        }
        let exception_count = usize::try_from(exception_count).unwrap_or(usize::MAX);
        if exception_count > values.len() * 8 / EXCEPTION_LEN / 2 {
            return None;
        }
        let mut exceptions = Vec::with_capacity(exception_count);
        if exception_count > 0 {
            let is_exact = |at: &usize| scale(values[*at], power).1;
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
            let power = read_power(input)?;
            let exceptions =
                if form == PATCHED { read_exceptions(input, count)? } else { Vec::new() };
            let integers = integers::decode(input, count, run_lengths)?;
            let mut values = unscale_all(integers, power);
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
    // Comparisons with NaN fail, so what passes is finite as well.
    let outside = values.iter().filter(|value| !(bounds.min..=bounds.max).contains(*value)).count();
    input.check(outside == 0)?;
    Ok(values)
}

fn read_power(input: &mut Cursor<'_>) -> Result<f64> {
    let exponent = usize::from(input.byte()?);
    POWERS_OF_TEN.get(exponent).copied().ok_or(input.corrupt())
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
pub(super) fn bounds_of(values: &[f64]) -> Option<FloatBounds> {
    // Negative doubles sort the wrong way round until their other bits are turned over.
    let key = |value: f64| {
        let bits = value.to_bits().cast_signed();
        bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
    };
    let value = |key: i64| {
        f64::from_bits((key ^ ((key >> 63).cast_unsigned() >> 1).cast_signed()).cast_unsigned())
    };
    if values.is_empty() {
        return None;
    }
    let (low, high) = values.iter().fold((i64::MAX, i64::MIN), |(low, high), &value| {
        let key = key(value);
        (low.min(key), high.max(key))
    });
    Some(FloatBounds { min: value(low), max: value(high) })
}

/// Appends bounds, scaled with `exponent` if that keeps them exact; says whether it did.
pub(super) fn encode_bounds(
    bounds: FloatBounds,
    exponent: Option<usize>,
    out: &mut Vec<u8>,
) -> bool {
    if let Some(exponent) = exponent {
        let power = POWERS_OF_TEN[exponent];
        let (min, min_exact) = scale(bounds.min, power);
        let (max, max_exact) = scale(bounds.max, power);
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
        let power = read_power(input)?;
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
