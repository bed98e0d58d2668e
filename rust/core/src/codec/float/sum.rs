//! Exact sums of decimals.

use super::decimal::{POWERS_OF_TEN, Power, scale_all, unscale};
use super::exponent::choose_exponent;

/// Integers that are summed at a time.
const SUMMED: usize = 512;

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

/// The sum of decimal integers; `None` where there is an exception or the sum overflows.
fn sum_scaled(values: &[f64], power: Power) -> Option<i64> {
    let mut integers = [0; SUMMED];
    let mut sum = 0_i64;
    for values in values.chunks(SUMMED) {
        let integers = &mut integers[..values.len()];
        let exceptions = scale_all(values, power, integers);
        // As part of a sum, -0.0 is as good as 0.
        let zeros = || values.iter().filter(|value| value.to_bits() == (-0.0_f64).to_bits());
        if exceptions > 0 && exceptions != zeros().count() as u64 {
            return None;
        }
        // Each is below 2^52, so some hundreds fit.
        let part = integers.iter().fold(0_i64, |sum, integer| sum.wrapping_add(*integer));
        sum = sum.checked_add(part)?;
    }
    Some(sum)
}
