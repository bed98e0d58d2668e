//! Exact sums of decimals.

use super::decimal::{POWERS_OF_TEN, Power, sum_scaled, unscale};
use super::exponent::{choose_exponent, is_chosen_at_least};

/// Integers that are summed at a time: each is below 2^52.
const SUMMED: usize = 512;

/// Exponents that are tried: a sample may have missed the few values with a digit more.
const TRIED: usize = 3;

/// Sums of the parts of a column, most of which are decimals of one exponent.
#[derive(Default)]
pub(crate) struct DecimalSums {
    /// The exponent of an earlier part.
    exponent: Option<usize>,
}

impl DecimalSums {
    /// The sum of `values` as the decimals that they are, rounded once; `None` unless all of them
    /// are decimals of one exponent. It is the same whichever parts were summed before.
    pub(crate) fn sum(&mut self, values: &[f64]) -> Option<f64> {
        if let Some(sum) = self.exponent.and_then(|exponent| sum_as_before(values, exponent)) {
            return Some(sum);
        }
        let chosen = choose_exponent(values)?;
        let tried = (chosen..POWERS_OF_TEN.len()).take(TRIED);
        let (sum, exponent) = tried.into_iter().find_map(|exponent| {
            let sum = exact_sum(values, exponent, |values| {
                // As part of a sum, -0.0 is as good as 0.
                let is_zero = |value: &&f64| value.to_bits() == (-0.0_f64).to_bits();
                values.iter().filter(is_zero).count() as u64
            });
            Some((sum?, exponent))
        })?;
        self.exponent = Some(exponent);
        Some(sum)
    }
}

/// The sum of `values` by an exponent that another part had, where the search for one would find the
/// same: the smallest that all of them have, which is at most two above the one that is chosen.
///
/// All are integers over `10^exponent`, so no larger exponent is chosen; where it is two smaller at
/// most, the search gets to the smallest that all have, if not to this one. Both sums are the same
/// quotient then, rounded once.
fn sum_as_before(values: &[f64], exponent: usize) -> Option<f64> {
    let is_near = is_chosen_at_least(values, (exponent + 1).saturating_sub(TRIED));
    if is_near { exact_sum(values, exponent, |_| 0) } else { None }
}

/// The sum of decimals of an exponent, if all but `others` are.
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
    // Below 2^53 both are exact, so the division rounds once.
    (sum.unsigned_abs() < 1 << 53).then(|| unscale(sum, POWERS_OF_TEN[exponent]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decimals of one exponent, among them up to three others: of another exponent, -0.0, or no
    /// decimals at all.
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

        /// H28: statistics are compared with those of the same rows summed anew, perhaps behind
        /// others, so a sum must not depend on what was summed before it.
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
