//! Smallest and largest value of a column of doubles.

use super::decimal::{POWERS_OF_TEN, scale, unscale};
use crate::codec::bytes::{ByteReader, put_varint, put_zigzag};
use crate::codec::simd::multiversioned;
use crate::model::error::Result;

/// Smallest and largest value of a float column in the total order, in which -0.0 is below 0.0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatBounds {
    /// Smallest value, which is finite.
    pub min: f64,
    /// Largest value, which is finite.
    pub max: f64,
}

impl FloatBounds {
    /// Returns the bounds of `values`, or `None` if there are no values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let value = |key: i64| f64::from_bits(order_key(key).cast_unsigned());
        if values.is_empty() {
            return None;
        }
        let (min, max) = key_range(values);
        Some(Self { min: value(min), max: value(max) })
    }

    /// Returns 1 for a value outside the bounds, else 0. Comparisons with NaN fail, so NaN is
    /// outside.
    #[inline]
    pub(super) fn excludes(self, value: f64) -> u64 {
        u64::from(!(self.min..=self.max).contains(&value))
    }

    /// Appends the bounds, scaled with `exponent` if the scaled bounds are exact. Returns true if
    /// the bounds were scaled.
    pub(crate) fn encode(self, exponent: Option<usize>, out: &mut Vec<u8>) -> bool {
        if let Some(exponent) = exponent {
            let (min, min_exact) = scale(self.min, exponent);
            let (max, max_exact) = scale(self.max, exponent);
            if min_exact && max_exact {
                out.push(exponent.to_le_bytes()[0]);
                put_zigzag(out, min);
                put_varint(out, max.wrapping_sub(min).cast_unsigned());
                return true;
            }
        }
        out.extend_from_slice(&self.min.to_le_bytes());
        out.extend_from_slice(&self.max.to_le_bytes());
        false
    }

    /// Reads bounds that [`Self::encode`] wrote.
    pub(crate) fn decode(input: &mut ByteReader<'_>, scaled: bool) -> Result<Self> {
        let (min, max) = if scaled {
            let power = POWERS_OF_TEN[read_exponent(input)?];
            let min = input.zigzag()?;
            let max = min.checked_add_unsigned(input.varint()?).ok_or_else(|| input.corrupt())?;
            (unscale(min, power), unscale(max, power))
        } else {
            (f64::from_le_bytes(input.array()?), f64::from_le_bytes(input.array()?))
        };
        input.check(min.is_finite() && max.is_finite() && min.total_cmp(&max).is_le())?;
        Ok(Self { min, max })
    }
}

pub(super) fn read_exponent(input: &mut ByteReader<'_>) -> Result<usize> {
    let exponent = usize::from(input.byte()?);
    input.check(exponent < POWERS_OF_TEN.len())?;
    Ok(exponent)
}

/// Converts the bits of a double to a number that sorts as the double does, or the number back to
/// the bits. If the sign bit is set, all other bits are inverted.
#[inline]
const fn order_key(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

multiversioned! {
    /// Smallest and largest of the [`order_key`]s of the values.
    fn key_range(values: &[f64]) -> (i64, i64) {
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        for value in values {
            let key = order_key(value.to_bits().cast_signed());
            min = min.min(key);
            max = max.max(key);
        }
        (min, max)
    }
}
