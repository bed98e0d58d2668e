//! Quantiles of some values.

/// Returns the quantile of values, between neighbours in proportion to its distance from each. NaN
/// counts as the smallest value.
pub(crate) fn quantile(fraction: f64, values: &mut [f64]) -> f64 {
    if values.is_empty() || fraction.is_nan() {
        return f64::NAN;
    }
    if fraction < 0.0 {
        return f64::NEG_INFINITY;
    }
    if fraction > 1.0 {
        return f64::INFINITY;
    }
    values.sort_by(|one, other| {
        let by_value = one.partial_cmp(other);
        by_value.unwrap_or_else(|| other.is_nan().cmp(&one.is_nan()))
    });
    #[expect(clippy::cast_precision_loss, reason = "values in memory are fewer than 2^53")]
    let rank = fraction * (values.len() - 1) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index of `values`"
    )]
    let lower = rank.floor() as usize;
    let upper = (lower + 1).min(values.len() - 1);
    let weight = rank - rank.floor();
    values[lower] * (1.0 - weight) + values[upper] * weight
}
