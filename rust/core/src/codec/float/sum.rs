//! Exact sums of decimals.

use super::decimal::{POWERS_OF_TEN, Power, sum_scaled, unscale};
use super::exponent::{choose_exponent, is_chosen_at_least};

/// Number of integers that are summed at a time. Each is below 2^52, so the sum fits 64 bits.
const SUMMED: usize = 512;

/// Number of exponents that are tried. A sample may have missed the few values with one digit more.
const TRIED: usize = 3;

/// Sums the parts of a column. Most parts are decimals of one exponent.
#[derive(Default)]
pub(crate) struct DecimalSums {
    /// The exponent of an earlier part.
    exponent: Option<usize>,
}

impl DecimalSums {
    /// Returns the exact sum of `values` as decimals, rounded once. Returns `None` unless all
    /// values are decimals of one exponent. The result does not depend on the parts summed before.
    ///
    /// Example: the sum of ten times 0.1 is 1.0, but adding doubles gives 0.9999999999999999.
    pub(crate) fn sum(&mut self, values: &[f64]) -> Option<f64> {
        if let Some(sum) = self.exponent.and_then(|exponent| sum_as_before(values, exponent)) {
            return Some(sum);
        }
        let chosen = choose_exponent(values)?;
        let tried = (chosen..POWERS_OF_TEN.len()).take(TRIED);
        let (sum, exponent) = tried.into_iter().find_map(|exponent| {
            let sum = exact_sum(values, exponent, |values| {
                // In a sum, -0.0 counts as 0.
                let is_zero = |value: &&f64| value.to_bits() == (-0.0_f64).to_bits();
                values.iter().filter(is_zero).count() as u64
            });
            Some((sum?, exponent))
        })?;
        self.exponent = Some(exponent);
        Some(sum)
    }
}

/// Sums `values` with the exponent of an earlier part, if a search would give the same sum. The
/// search takes the smallest exponent that all values have, at most two above the chosen exponent.
///
/// All values are integers over `10^exponent`, so the chosen exponent is not larger. If it is at
/// most two smaller, the search ends at the smallest exponent that all values have. That exponent
/// may differ from this one, but both sums are the same quotient, rounded once.
fn sum_as_before(values: &[f64], exponent: usize) -> Option<f64> {
    let is_near = is_chosen_at_least(values, (exponent + 1).saturating_sub(TRIED));
    if is_near { exact_sum(values, exponent, |_| 0) } else { None }
}

/// Returns the sum of `values` as decimals of an exponent. Returns `None` if a chunk has exceptions
/// that `others` does not count.
fn exact_sum(values: &[f64], exponent: usize, others: impl Fn(&[f64]) -> u64) -> Option<f64> {
    let power = Power::of(exponent);
    let mut sum = 0_i64;
    for values in values.chunks(SUMMED) {
        let (part, exceptions) = sum_scaled(values, power);
        if exceptions > 0 && exceptions != others(values) {
            return None;
        }
        sum = sum.checked_add(part)?;
    }
    // Below 2^53 both operands are exact, so the division rounds once.
    (sum.unsigned_abs() < 1 << 53).then(|| unscale(sum, POWERS_OF_TEN[exponent]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decimals of one exponent, with up to three other values among them: decimals of another
    /// exponent, -0.0, or no decimals at all.
    fn part() -> impl Strategy<Value = Vec<f64>> {
        let other = (any::<prop::sample::Index>(), 0..7_usize, -999_i64..999, 0..8_u8);
        let others = prop::collection::vec(other, 0..4);
        let integers = (0..5_u32, prop::collection::vec(-9_999_i64..9_999, 1..70));
        (0..7_usize, integers, others).prop_map(|(exponent, (larger, integers), others)| {
            let value =
                |integer: &i64| unscale(integer * 1_000_i64.pow(larger), POWERS_OF_TEN[exponent]);
            let mut values: Vec<f64> = integers.iter().map(value).collect();
            for (at, exponent, integer, kind) in others {
                let other = unscale(integer, POWERS_OF_TEN[exponent]);
                *at.get_mut(&mut values) = match kind {
                    0 => -0.0,
                    1 => other / 3.0,
                    _ => other,
                };
            }
            values
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// H28: statistics are compared with the statistics of the same rows summed again, perhaps
        /// after other rows. A sum must therefore not depend on the rows summed before it.
        #[test]
        fn a_sum_is_the_same_whatever_was_summed_before(
            parts in prop::collection::vec(part(), 1..8),
        ) {
            let mut sums = DecimalSums::default();
            for values in parts {
                let alone = DecimalSums::default().sum(&values).map(f64::to_bits);
                prop_assert_eq!(sums.sum(&values).map(f64::to_bits), alone, "{:?}", values);
            }
        }
    }
}
