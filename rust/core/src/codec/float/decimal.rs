//! Decimals: doubles that are integers over a power of ten.

use crate::codec::integer::number::SignedNumber;
use crate::codec::simd::{mapped, multiversioned};

/// Powers of ten that a double holds exactly.
pub(super) const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Adding this to a double below 2^51 rounds the double to an integer, which fills the low bits of
/// the sum.
pub(super) const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Decimal integers are smaller than this, 2^51, so that [`ROUNDER`] works.
pub(super) const SCALED_END: f64 = 2_251_799_813_685_248.0;

/// Integers below this, 2^30, are scaled to 32 bits.
const NARROW_END: f64 = 1_073_741_824.0;

/// Marks a value that is no decimal with an integer below [`NARROW_END`].
pub(super) const EXCEPTION: i32 = i32::MIN;

/// Largest exponent for which [`Power::divide`] may multiply instead of dividing.
const FUSED_EXPONENT_MAX: usize = 15;

/// Returns `integer / power`, rounded once.
///
/// Example: 215 with the power 10 is 21.5.
#[expect(clippy::cast_precision_loss, reason = "the writer stays below 2^51; others lose nothing")]
pub(super) fn unscale(integer: i64, power: f64) -> f64 {
    integer as f64 / power
}

/// A power of ten to multiply by and to divide by.
#[derive(Clone, Copy)]
pub(super) struct Power {
    pub(super) of_ten: f64,
    /// The double nearest to `1 / of_ten`.
    inverse: f64,
    /// The difference between `1 / of_ten` and `inverse`.
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

    /// Returns `integer / of_ten`, rounded once, for an integer below 2^51.
    ///
    /// A division takes several times as long as two multiplications. Before its last rounding, the
    /// product differs from the quotient by less than one part in 2^104. The rounded results could
    /// differ only if a number halfway between two doubles lay between product and quotient. Such a
    /// number is `m * 2^k` with an odd `m` of 54 bits.
    ///
    /// The quotient `integer / 10^e` is no such number, because `m * 5^e` has more bits than
    /// `integer`. Moreover, `integer` and `m * 2^k * 10^e` are different multiples of one power of
    /// two. The second multiple is at most `2^54 * 5^15 < 2^89`, so the two are at least one part
    /// in 2^89 apart.
    #[inline]
    pub(super) fn divide<const FUSED: bool>(self, integer: f64) -> f64 {
        if FUSED && self.is_small {
            integer.mul_add(self.inverse, integer * self.inverse_rest)
        } else {
            integer / self.of_ten
        }
    }

    /// Returns the integer below 2^51 that gives `value` when divided by the power, and true.
    /// Returns any integer and false if there is no such integer.
    #[inline]
    fn scale<const FUSED: bool>(self, value: f64) -> (i64, bool) {
        let shifted = value * self.of_ten + ROUNDER;
        let rounded = shifted - ROUNDER;
        let integer = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed();
        let exact = self.divide::<FUSED>(rounded).to_bits() == value.to_bits();
        (integer, exact & (rounded.abs() < SCALED_END))
    }

    /// Does the same as [`Self::scale`], for integers below 2^30.
    #[inline]
    fn scale_narrow<const FUSED: bool>(self, value: f64) -> (i32, bool) {
        let shifted = value * self.of_ten + ROUNDER;
        let rounded = shifted - ROUNDER;
        let exact = self.divide::<FUSED>(rounded).to_bits() == value.to_bits();
        (i32::of(shifted.to_bits().cast_signed()), exact & (rounded.abs() < NARROW_END))
    }
}

/// Scales one value as [`Power::scale`] does.
pub(super) fn scale(value: f64, exponent: usize) -> (i64, bool) {
    let of_ten = POWERS_OF_TEN[exponent];
    let power = Power { of_ten, inverse: 0.0, inverse_rest: 0.0, is_small: false };
    power.scale::<false>(value)
}

multiversioned! {
    /// Scales all values. Returns the number of exceptions.
    pub(super) fn scale_all(values: &[f64], power: Power, integers: &mut [i64]) -> u64 {
        let mut exceptions = 0_u64;
        for (integer, &value) in integers.iter_mut().zip(values) {
            let (scaled, exact) = power.scale::<FUSED>(value);
            *integer = scaled;
            exceptions = exceptions.wrapping_add(u64::from(!exact));
        }
        exceptions
    }
}

multiversioned! {
    /// Returns the sum of the integers that [`scale_all`] would compute, and the number of
    /// exceptions. The caller passes a few hundred values, so the sum fits.
    pub(super) fn sum_scaled(values: &[f64], power: Power) -> (i64, u64) {
        let (mut sum, mut exceptions) = (0_i64, 0_u64);
        for &value in values {
            let (scaled, exact) = power.scale::<FUSED>(value);
            sum = sum.wrapping_add(scaled);
            exceptions = exceptions.wrapping_add(u64::from(!exact));
        }
        (sum, exceptions)
    }
}

multiversioned! {
    /// The number of exceptions that [`scale_narrow`] would find.
    pub(super) fn narrow_exceptions(values: &[f64], power: Power) -> u64 {
        let mut exceptions = 0_u64;
        for &value in values {
            exceptions = exceptions.wrapping_add(u64::from(!power.scale_narrow::<FUSED>(value).1));
        }
        exceptions
    }
}

multiversioned! {
    /// Scales all values to integers below 2^30, so that their differences also fit 32 bits. A
    /// value that has no such integer becomes [`EXCEPTION`]. Returns the integers and the number of
    /// exceptions.
    pub(super) fn scale_narrow(values: &[f64], power: Power) -> (Vec<i32>, u64) {
        let mut exceptions = 0_u64;
        let integers = mapped(values, |value| {
            let (integer, fits) = power.scale_narrow::<FUSED>(value);
            exceptions = exceptions.wrapping_add(u64::from(!fits));
            if fits { integer } else { EXCEPTION }
        });
        (integers, exceptions)
    }
}
