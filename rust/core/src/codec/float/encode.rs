//! Doubles: as decimal integers where telemetry was made of decimals, else as bits.

use super::decimal::{
    POWERS_OF_TEN, Power, STRANGER, choose_exponent, is_outside, scale, scale_all, scale_narrow,
    unscale, unscale_all,
};
use crate::codec::FloatBounds;
use crate::codec::bytes::{Cursor, put_len, put_varint, put_zigzag};
use crate::codec::integer;
use crate::codec::integer::bit_packing::GROUP;
use crate::codec::integer::number::{self, Number};
use crate::codec::simd::multiversioned;
use crate::model::error::Result;

const SCALED: u8 = 0;
const PATCHED: u8 = 1;
const BITS: u8 = 2;

/// Bytes that an exception takes: its bits, and a guess at its position.
const EXCEPTION_LEN: usize = 10;

/// Appends `values` and gives their bounds, and the exponent that served, if one did.
pub(crate) fn encode(
    values: &[f64],
    run_lengths: &[u32],
    out: &mut Vec<u8>,
) -> Option<(FloatBounds, Option<usize>)> {
    if values.is_empty() {
        return None;
    }
    let start = out.len();
    if let Some(exponent) = choose_exponent(values)
        && let Some(bounds) = encode_scaled(values, exponent, run_lengths, out)
    {
        if out.len() - start < values.len() * 8 {
            return Some((bounds, Some(exponent)));
        }
        out.truncate(start);
    }
    out.push(BITS);
    let bits: Vec<i64> = values.iter().map(|value| value.to_bits().cast_signed()).collect();
    integer::encode(&bits, run_lengths, out);
    bounds_of(values).map(|bounds| (bounds, None))
}

/// Appends `values` as decimal integers and gives their bounds, unless there are too many exceptions.
fn encode_scaled(
    values: &[f64],
    exponent: usize,
    run_lengths: &[u32],
    out: &mut Vec<u8>,
) -> Option<FloatBounds> {
    let power = Power::of(exponent);
    let (integers, others) = scale_narrow(values, power);
    if others == 0 {
        let (low, high) = number::range(&integers);
        Scaled { exponent, integers, exceptions: Vec::new() }.write(values, run_lengths, out);
        // Decimals that come back exactly are in the order of their integers.
        let value = |integer: i32| unscale(integer.into(), power.of_ten);
        return Some(FloatBounds { min: value(low), max: value(high) });
    }
    match Scaled::of_narrow(values, integers, others, exponent) {
        Some(scaled) => scaled.write(values, run_lengths, out),
        None => Scaled::of(values, exponent)?.write(values, run_lengths, out),
    }
    bounds_of(values)
}

/// So many exceptions take half of what the values would.
const fn exceptions_max(count: usize) -> u64 {
    (count * 8 / EXCEPTION_LEN / 2) as u64
}

/// Values as decimal integers.
struct Scaled<T> {
    exponent: usize,
    integers: Vec<T>,
    /// Positions of values that are no decimals of this exponent, ascending.
    exceptions: Vec<i64>,
}

impl Scaled<i32> {
    /// The values as [`scale_narrow`] gives them, unless some need more bits or too many are exceptions.
    fn of_narrow(
        values: &[f64],
        mut integers: Vec<i32>,
        others: u64,
        exponent: usize,
    ) -> Option<Self> {
        if others > exceptions_max(values.len()) {
            return None;
        }
        // A stand-in that costs nothing: the value before, or the first that is no exception.
        let mut stand_in = integers.iter().copied().find(|integer| *integer != STRANGER)?;
        let mut exceptions = Vec::new();
        for (group, first) in integers.chunks_mut(GROUP).zip((0..).step_by(GROUP)) {
            if group.contains(&STRANGER) {
                for (integer, at) in group.iter_mut().zip(first..) {
                    if *integer == STRANGER {
                        if scale(values[at], exponent).1 {
                            return None;
                        }
                        *integer = stand_in;
                        exceptions.push(i64::try_from(at).expect("a block has fewer rows"));
                    }
                    stand_in = *integer;
                }
            }
            stand_in = group.last().copied().unwrap_or(stand_in);
        }
        Some(Self { exponent, integers, exceptions })
    }
}

impl Scaled<i64> {
    /// The values as decimal integers, unless exceptions alone would take too much.
    fn of(values: &[f64], exponent: usize) -> Option<Self> {
        let mut integers = vec![0; values.len()];
        let exception_count = scale_all(values, Power::of(exponent), &mut integers);
        if exception_count > exceptions_max(values.len()) {
            return None;
        }
        let mut exceptions = Vec::new();
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
}

impl<T: Number> Scaled<T> {
    fn write(&self, values: &[f64], run_lengths: &[u32], out: &mut Vec<u8>) {
        out.push(if self.exceptions.is_empty() { SCALED } else { PATCHED });
        out.push(self.exponent.to_le_bytes()[0]);
        if !self.exceptions.is_empty() {
            put_len(out, self.exceptions.len());
            integer::encode_run(&self.exceptions, out);
            for &position in &self.exceptions {
                let at = usize::try_from(position).expect("positions are indices");
                out.extend_from_slice(&values[at].to_le_bytes());
            }
        }
        integer::encode(&self.integers, run_lengths, out);
    }
}

/// Reads `count` doubles that lie within `bounds`, which are there if there is a value.
pub(crate) fn decode(
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
            let integers = integer::decode(input, count, run_lengths)?;
            let (mut values, is_within) = unscale_all(integers, power, bounds);
            let mut outside = u64::from(!is_within);
            for &(at, value) in &exceptions {
                outside |= is_outside(value, bounds);
                values[at as usize] = value;
            }
            // The integer of an exception may be any, so it may have been that which is outside.
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
    let positions = integer::decode_run(input, exception_count, end)?;
    input.check(positions.is_sorted_by(|a, b| a < b))?;
    positions.into_iter().map(|at| Ok((at, f64::from_le_bytes(input.array()?)))).collect()
}

multiversioned! {
    fn all_within(values: &[f64], bounds: FloatBounds) -> bool {
        let mut outside = 0_u64;
        for value in values {
            outside |= is_outside(*value, bounds);
        }
        outside == 0
    }
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

multiversioned! {
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
pub(crate) fn encode_bounds(
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
pub(crate) fn decode_bounds(input: &mut Cursor<'_>, scaled: bool) -> Result<FloatBounds> {
    let (min, max) = if scaled {
        let power = POWERS_OF_TEN[read_exponent(input)?];
        let min = input.zigzag()?;
        let max = min.checked_add_unsigned(input.varint()?).ok_or_else(|| input.corrupt())?;
        (unscale(min, power), unscale(max, power))
    } else {
        (f64::from_le_bytes(input.array()?), f64::from_le_bytes(input.array()?))
    };
    input.check(min.is_finite() && max.is_finite() && min.total_cmp(&max).is_le())?;
    Ok(FloatBounds { min, max })
}

#[cfg(test)]
mod tests {
    use super::super::decimal::SCALED_END;
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
