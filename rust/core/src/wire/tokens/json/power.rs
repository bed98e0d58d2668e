//! Finds the double nearest to `mantissa * 10^exponent`, for the numbers that measurements have.
//!
//! Small numbers are one exact multiplication or division of two exact doubles (Clinger, "How to
//! read floating point numbers accurately", 1990). Example: 1.25 is 125 / 100. The rest of the
//! range is a multiplication with 128 bits of the power of ten (Lemire, "Number parsing at a
//! gigabyte per second", 2021).

/// Powers of ten that a double holds exactly.
const EXACT: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Exponents of the table reach from `-POWER_MAX` to `POWER_MAX`. In this range 5^|exponent|
/// fits 64 bits, so Lemire's result is always final, and no result is denormal or infinite.
const POWER_MAX: i64 = 27;

/// Stored bits of a double's significand.
const MANTISSA_BITS: u32 = 52;

/// The 128 leading bits of 5^exponent, or slightly above for negative exponents.
static POWERS: [u128; 55] = powers();

const fn powers() -> [u128; 55] {
    let mut table = [0; 55];
    let mut exponent = 0;
    let mut power: u128 = 1;
    while exponent <= 27 {
        table[27 + exponent] = power << power.leading_zeros();
        if exponent > 0 {
            table[27 - exponent] = reciprocal(power);
        }
        power *= 5;
        exponent += 1;
    }
    table
}

/// Returns `2^b / power`, rounded down, plus one. b is chosen so that the result has 128 bits.
const fn reciprocal(power: u128) -> u128 {
    // 2^z is the smallest power of two that is not below `power`. The quotient of 2^(z + 127) has
    // 128 bits.
    let mut remainder: u128 = power.next_power_of_two();
    let mut quotient: u128 = 0;
    let mut bit = 0;
    while bit < 128 {
        quotient <<= 1;
        if remainder >= power {
            remainder -= power;
            quotient |= 1;
        }
        remainder <<= 1;
        bit += 1;
    }
    quotient + 1
}

/// Returns the nearest double, ties to even. Returns `None` if this function cannot decide.
#[inline]
pub(super) fn nearest(mantissa: u64, exponent: i64) -> Option<f64> {
    if mantissa == 0 {
        return Some(0.0);
    }
    if mantissa <= 1 << 53
        && let Some(power) = EXACT.get(usize::try_from(exponent.abs()).ok()?)
    {
        #[expect(clippy::cast_precision_loss, reason = "below 2^53 nothing is lost")]
        let mantissa = mantissa as f64;
        return Some(if exponent < 0 { mantissa / power } else { mantissa * power });
    }
    if !(-POWER_MAX..=POWER_MAX).contains(&exponent) {
        return None;
    }
    let power = POWERS.get(usize::try_from(exponent + POWER_MAX).ok()?)?;
    Some(multiplied(mantissa, *power, exponent))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "halves of 128 bits are taken apart, and the biased exponent is positive in this range"
)]
fn multiplied(mantissa: u64, power: u128, exponent: i64) -> f64 {
    let shift = mantissa.leading_zeros();
    let normal = mantissa << shift;
    let first = u128::from(normal) * (power >> 64);
    let (mut high, mut low) = ((first >> 64) as u64, first as u64);
    // The lower half of the power matters only if a carry from it could reach the kept bits.
    let mask = u64::MAX >> (MANTISSA_BITS + 3);
    if high & mask == mask {
        let second = ((u128::from(normal) * u128::from(power as u64)) >> 64) as u64;
        let carry;
        (low, carry) = low.overflowing_add(second);
        high += u64::from(carry);
    }
    let upper = (high >> 63) as u32;
    let cut = upper + 64 - MANTISSA_BITS - 3;
    let mut significand = high >> cut;
    // 217706 / 2^16 is slightly above log2(10). It gives exact floors for these exponents.
    let binary = ((exponent * 217_706) >> 16) + 63;
    let mut biased = binary + i64::from(upper) - i64::from(shift) + 1_023;
    // Exactly between two doubles: only small powers of five can get there.
    let tie = low <= 1 && (-4..=23).contains(&exponent) && significand & 0b11 == 0b01;
    if tie && significand << cut == high {
        significand &= !1;
    }
    significand += significand & 1;
    significand >>= 1;
    if significand >= 2 << MANTISSA_BITS {
        significand = 1 << MANTISSA_BITS;
        biased += 1;
    }
    significand &= !(1 << MANTISSA_BITS);
    f64::from_bits((biased as u64) << MANTISSA_BITS | significand)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(mantissa: u64, exponent: i64) {
        let text = format!("{mantissa}e{exponent}");
        let expected: f64 = text.parse().unwrap();
        if let Some(value) = nearest(mantissa, exponent) {
            assert_eq!(value.to_bits(), expected.to_bits(), "{text}");
        } else {
            assert!(exponent.abs() > 22, "{text}");
        }
    }

    #[test]
    fn edges_are_the_nearest_double() {
        let steps = [0_i64, 1, 2, 3, -1, -2, -3];
        for exponent in -30..=30 {
            for bit in 0..64 {
                for step in steps {
                    check((1_u64 << bit).wrapping_add_signed(step), exponent);
                }
            }
            for power in 0..20 {
                for step in steps {
                    check(10_u64.pow(power).wrapping_add_signed(step), exponent);
                }
            }
        }
    }

    #[test]
    fn ties_go_to_even() {
        // Midpoints of neighbouring doubles, written exactly with up to four decimals.
        for significand in (1_u64 << 53..).step_by(3).take(1_000) {
            for (multiplier, exponent) in [(5, -1), (25, -2), (125, -3), (625, -4), (1, 0)] {
                check((2 * significand + 1).wrapping_mul(multiplier), exponent);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn any_number_is_the_nearest_double(mantissa: u64, shift in 0_u32..64, exponent in -30_i64..30) {
            check(mantissa >> shift, exponent);
        }

        #[test]
        fn doubles_as_people_print_them(value in -1e6_f64..1e6) {
            let text = value.abs().to_string();
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            if let Ok(mantissa) = format!("{whole}{fraction}").parse() {
                let read = nearest(mantissa, -i64::try_from(fraction.len()).unwrap());
                prop_assert_eq!(read, Some(value.abs()));
            }
        }
    }
}
