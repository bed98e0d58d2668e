//! Reading doubles.

use super::bounds::{FloatBounds, read_exponent};
use super::decimal::{Power, ROUNDER, unscale};
use super::encode::{BITS, RATIOS, REPEATED, SCALED, SCALED_WITH_EXCEPTIONS};
use super::ratio;
use crate::codec::bytes::ByteReader;
use crate::codec::integer;
use crate::codec::integer::number::SignedNumbers;
use crate::codec::simd::{mapped, multiversioned};
use crate::model::error::Result;

/// [`ROUNDER`] converts integers below this, 2^51, to doubles.
const ROUNDER_END: i64 = 1 << 51;

/// Reads `count` doubles within `bounds`. The bounds are absent only if there are no values.
pub(crate) fn decode(
    input: &mut ByteReader<'_>,
    count: usize,
    run_lengths: &[u32],
    bounds: Option<FloatBounds>,
) -> Result<Vec<f64>> {
    let Some(bounds) = bounds.filter(|_| count > 0) else {
        return Ok(Vec::new());
    };
    let form = input.byte()?;
    if form != REPEATED {
        return decode_all(form, input, (count, run_lengths), bounds);
    }
    // Each value has a rank, so the dictionary has at most as many entries as there are values.
    let entry_count = input.len(count)?;
    let end = u32::try_from(entry_count).ok().filter(|end| *end > 0);
    let end = end.ok_or_else(|| input.corrupt())?;
    let entries_form = input.byte()?;
    let entries = decode_all(entries_form, input, (entry_count, &[end]), bounds)?;
    let ranks = integer::decode(input, count, run_lengths)?.below(end);
    let ranks = ranks.ok_or_else(|| input.corrupt())?;
    Ok(ranks.into_iter().map(|rank| entries[rank as usize]).collect())
}

/// Reads `count` doubles in a form that stores each value separately.
fn decode_all(
    form: u8,
    input: &mut ByteReader<'_>,
    (count, run_lengths): (usize, &[u32]),
    bounds: FloatBounds,
) -> Result<Vec<f64>> {
    let values = match form {
        SCALED | SCALED_WITH_EXCEPTIONS => {
            let power = Power::of(read_exponent(input)?);
            let has_exceptions = form == SCALED_WITH_EXCEPTIONS;
            let exceptions =
                if has_exceptions { read_exceptions(input, count)? } else { Vec::new() };
            let integers = integer::decode(input, count, run_lengths)?;
            let (mut values, is_within) = unscale_all(integers, power, bounds);
            let mut outside = u64::from(!is_within);
            for &(position, value) in &exceptions {
                outside |= bounds.excludes(value);
                values[position as usize] = value;
            }
            // The integer at the position of an exception is arbitrary, so it may be outside the
            // bounds.
            if outside == 0 || exceptions.is_empty() {
                input.check(outside == 0)?;
                return Ok(values);
            }
            values
        }
        BITS => {
            let bits = integer::decode(input, count, run_lengths)?;
            bits.widen().into_iter().map(|bits| f64::from_bits(bits.cast_unsigned())).collect()
        }
        RATIOS => read_ratios(input, count, run_lengths)?,
        _ => return Err(input.corrupt()),
    };
    input.check(all_within(&values, bounds))?;
    Ok(values)
}

/// Reads integers and divisors: a divisor for each run, or one divisor for all runs.
fn read_ratios(input: &mut ByteReader<'_>, count: usize, run_lengths: &[u32]) -> Result<Vec<f64>> {
    let divisor_count = input.len(run_lengths.len())?;
    let has_one = divisor_count == 1;
    input.check(has_one || divisor_count == run_lengths.len())?;
    let divisors = integer::decode_long_run(input, divisor_count)?;
    input.check(divisors.iter().all(|divisor| *divisor > 0))?;
    let integers = integer::decode(input, count, run_lengths)?.widen();
    let ulps = integer::decode(input, count, run_lengths)?.widen();
    let all = [u32::try_from(count).map_err(|_| input.corrupt())?];
    let lengths = if has_one { &all } else { run_lengths };
    let mut values = Vec::with_capacity(count);
    let mut parts = integers.into_iter().zip(ulps);
    for (divisor, length) in divisors.into_iter().zip(lengths) {
        let run = parts.by_ref().take(*length as usize);
        values.extend(run.map(|(integer, ulps)| ratio::join(integer, ulps, divisor)));
    }
    Ok(values)
}

/// Reads positions below `count`, and the value at each position.
fn read_exceptions(input: &mut ByteReader<'_>, count: usize) -> Result<Vec<(u32, f64)>> {
    let end = u32::try_from(count).map_err(|_| input.corrupt())?;
    // Each exception takes eight bytes for its value.
    let exception_count = input.len(count.min(input.remaining() / 8))?;
    let positions = integer::decode_run(input, exception_count, end)?;
    input.check(positions.is_sorted_by(|a, b| a < b))?;
    let mut value = || Ok(f64::from_le_bytes(input.array()?));
    positions.into_iter().map(|position| Ok((position, value()?))).collect()
}

multiversioned! {
    fn all_within(values: &[f64], bounds: FloatBounds) -> bool {
        let mut outside = 0_u64;
        for value in values {
            outside |= bounds.excludes(*value);
        }
        outside == 0
    }
}

/// Applies [`unscale`] to all integers. Also returns true if all values are within `bounds`.
pub(super) fn unscale_all(
    integers: SignedNumbers,
    power: Power,
    bounds: FloatBounds,
) -> (Vec<f64>, bool) {
    let mut integers = match integers {
        SignedNumbers::Narrow(integers) => {
            let (values, min, max) = unscale_narrow(&integers, power);
            // A smaller integer never becomes a larger double, so the two ends decide.
            let excludes = |integer: i32| bounds.excludes(unscale(integer.into(), power.of_ten));
            return (values, excludes(min) | excludes(max) == 0);
        }
        SignedNumbers::Wide(integers) => integers,
    };
    // Integers below `ROUNDER_END`, such as the writer's always are, need only steps that AVX2 has
    // vector forms of. AVX2 has no conversion of 64-bit numbers to doubles.
    let is_within = if magnitude_bits(&integers) < ROUNDER_END {
        unscale_small(&mut integers, power, bounds)
    } else {
        let mut outside = 0;
        for integer in &mut integers {
            let value = unscale(*integer, power.of_ten);
            outside |= bounds.excludes(value);
            *integer = value.to_bits().cast_signed();
        }
        outside == 0
    };
    // Reinterprets the same memory as doubles.
    (integers.into_iter().map(|bits| f64::from_bits(bits.cast_unsigned())).collect(), is_within)
}

multiversioned! {
    /// Applies [`unscale`] to all integers. Also returns the smallest and the largest integer.
    fn unscale_narrow(integers: &[i32], power: Power) -> (Vec<f64>, i32, i32) {
        let (mut min, mut max) = (i32::MAX, i32::MIN);
        let values = mapped(integers, |integer| {
            min = min.min(integer);
            max = max.max(integer);
            power.divide::<FUSED>(integer.into())
        });
        (values, min, max)
    }
}

multiversioned! {
    /// The union of the bits in which each number differs from its sign.
    fn magnitude_bits(integers: &[i64]) -> i64 {
        integers.iter().fold(0, |bits, &integer| bits | (integer ^ (integer >> 63)))
    }
}

multiversioned! {
    /// Turns integers below 2^51 into the bits of doubles. Returns true if all doubles are within
    /// `bounds`.
    fn unscale_small(integers: &mut [i64], power: Power, bounds: FloatBounds) -> bool {
        let mut outside = 0_u64;
        for integer in integers {
            let double = ROUNDER.to_bits().wrapping_add(integer.cast_unsigned());
            let value = power.divide::<FUSED>(f64::from_bits(double) - ROUNDER);
            outside |= bounds.excludes(value);
            *integer = value.to_bits().cast_signed();
        }
        outside == 0
    }
}
