//! Reductions that skip missing values. NaN stands for a missing value, and for a result of no
//! value.

/// Mean of the values.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut total, mut count) = (0.0, 0_u32);
    for value in values {
        if !value.is_nan() {
            total += value;
            count += 1;
        }
    }
    if count == 0 { f64::NAN } else { total / f64::from(count) }
}

/// Standard deviation of the values.
pub(crate) fn spread(values: &[f64]) -> f64 {
    let centre = mean(values.iter().copied());
    mean(values.iter().map(|value| (value - centre).powi(2))).sqrt()
}

/// Mean of the changes from each value to the next, without their signs.
///
/// Example: 1.0, 1.5, 0.5 have the changes 0.5 and 1.0, so 0.75.
pub(crate) fn mean_change(values: &[f64]) -> f64 {
    mean(values.windows(2).map(|pair| (pair[1] - pair[0]).abs()))
}

/// The last value.
pub(crate) fn newest(values: &[f64]) -> f64 {
    values.iter().rev().copied().find(|value| !value.is_nan()).unwrap_or(f64::NAN)
}

/// Quantiles of the values at ascending levels, linear between neighbours.
///
/// Example: the median of 1.0 and 2.0 is 1.5.
pub(crate) fn quantiles<const N: usize>(
    values: impl IntoIterator<Item = f64>,
    levels: [f64; N],
) -> [f64; N] {
    let mut values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
    let Some(last) = values.len().checked_sub(1) else { return [f64::NAN; N] };
    let mut first = 0; // no value before it is greater than any value from it on
    levels.map(|level| {
        let position = as_float(last) * level;
        let low = as_index(position).min(last);
        let rest = &mut values[first..];
        let (_, below, greater) = rest.select_nth_unstable_by(low - first, f64::total_cmp);
        first = low;
        let weight = position - as_float(low);
        if weight > 0.0 {
            let above = greater.iter().copied().fold(f64::INFINITY, f64::min);
            *below + (above - *below) * weight
        } else {
            *below
        }
    })
}

/// The `length` values before `end`, without the values that would be before the first.
pub(crate) fn before(values: &[f64], end: usize, length: usize) -> &[f64] {
    &values[end.saturating_sub(length)..end]
}

/// The count of minutes or hours from one to another.
///
/// # Panics
/// Panics if `to` is before `from`.
pub(crate) fn distance(from: i64, to: i64) -> usize {
    usize::try_from(to - from).expect("windows end after they begin")
}

/// A count as a float, which is exact below 2^53.
#[expect(clippy::cast_precision_loss, reason = "counts of minutes are far below 2^53")]
pub(crate) fn as_float(count: usize) -> f64 {
    count as f64
}

/// The index at or below a position; 0 for NaN.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
pub(crate) fn as_index(position: f64) -> usize {
    position as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;

    #[test]
    fn reductions_skip_what_is_missing() {
        let values = [NAN, 1.0, 3.0, NAN, 5.0, NAN];
        assert!((mean(values) - 3.0).abs() < 1e-12);
        assert!((spread(&values) - (8.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((mean_change(&values) - 2.0).abs() < 1e-12);
        assert!((newest(&values) - 5.0).abs() < 1e-12);
        let found = quantiles(values, [0.0, 0.25, 0.5, 1.0]);
        assert!(
            found.iter().zip([1.0, 2.0, 3.0, 5.0]).all(|(found, due)| (found - due).abs() < 1e-12)
        );
    }

    #[test]
    fn nothing_has_no_reduction() {
        for values in [&[][..], &[NAN], &[NAN, NAN]] {
            assert!(mean(values.iter().copied()).is_nan());
            assert!(spread(values).is_nan() && newest(values).is_nan());
            assert!(quantiles(values.iter().copied(), [0.5])[0].is_nan());
        }
        assert!(mean_change(&[1.0, NAN, 2.0]).is_nan());
    }

    #[test]
    fn a_window_at_the_beginning_is_shorter() {
        let values = [1.0, 2.0, 3.0];
        assert_eq!(before(&values, 2, 3), [1.0, 2.0]);
        assert_eq!(before(&values, 0, 3), []);
    }
}
