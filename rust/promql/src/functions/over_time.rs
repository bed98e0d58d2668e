//! Functions of all values of a window.

use super::quantile::quantile;
use super::sums::CompensatedSum;
use crate::window::Window;

#[expect(clippy::unnecessary_wraps, reason = "a range function")]
pub(crate) fn sum(window: &Window<'_>) -> Option<f64> {
    let mut sum = CompensatedSum::default();
    window.values.iter().for_each(|value| sum.add(*value));
    Some(if sum.sum.is_infinite() { sum.sum } else { sum.total() })
}

#[expect(clippy::unnecessary_wraps, reason = "a range function")]
pub(crate) fn avg(window: &Window<'_>) -> Option<f64> {
    let mut mean = CompensatedSum::default();
    let mut count = 0.0;
    for value in window.values {
        count += 1.0;
        if mean.sum.is_infinite() {
            let is_same = value.is_infinite() && (mean.sum > 0.0) == (*value > 0.0);
            // An infinite mean stays, unless an opposite infinity or NaN joins it.
            if is_same || value.is_finite() {
                continue;
            }
        }
        mean.add(value / count - mean.sum / count);
    }
    Some(if mean.sum.is_infinite() { mean.sum } else { mean.total() })
}

#[expect(clippy::cast_precision_loss, reason = "samples in memory are fewer than 2^53")]
#[expect(clippy::unnecessary_wraps, reason = "a range function")]
pub(crate) fn count(window: &Window<'_>) -> Option<f64> {
    Some(window.values.len() as f64)
}

pub(crate) fn last(window: &Window<'_>) -> Option<f64> {
    window.values.last().copied()
}

pub(crate) fn max(window: &Window<'_>) -> Option<f64> {
    let larger = |max: f64, value: f64| if value > max || max.is_nan() { value } else { max };
    window.values.iter().copied().reduce(larger)
}

pub(crate) fn min(window: &Window<'_>) -> Option<f64> {
    let smaller = |min: f64, value: f64| if value < min || min.is_nan() { value } else { min };
    window.values.iter().copied().reduce(smaller)
}

#[expect(clippy::unnecessary_wraps, reason = "a range function")]
pub(crate) fn stdvar(window: &Window<'_>) -> Option<f64> {
    let (mut mean, mut squares) = (CompensatedSum::default(), CompensatedSum::default());
    let mut count = 0.0;
    for value in window.values {
        count += 1.0;
        let delta = value - mean.total();
        mean.add(delta / count);
        squares.add(delta * (value - mean.total()));
    }
    Some(squares.total() / count)
}

pub(crate) fn stddev(window: &Window<'_>) -> Option<f64> {
    stdvar(window).map(f64::sqrt)
}

#[expect(clippy::unnecessary_wraps, reason = "a range function")]
pub(crate) fn quantile_of(window: &Window<'_>) -> Option<f64> {
    Some(quantile(window.parameter, &mut window.values.to_vec()))
}

#[expect(clippy::unnecessary_wraps, reason = "a range function")]
pub(crate) fn present(_window: &Window<'_>) -> Option<f64> {
    Some(1.0)
}

#[expect(clippy::cast_precision_loss, reason = "samples in memory are fewer than 2^53")]
#[expect(clippy::unnecessary_wraps, reason = "a range function")]
pub(crate) fn resets(window: &Window<'_>) -> Option<f64> {
    Some(window.resets.len() as f64)
}

#[expect(clippy::cast_precision_loss, reason = "samples in memory are fewer than 2^53")]
#[expect(clippy::unnecessary_wraps, reason = "a range function")]
#[expect(clippy::float_cmp, reason = "a change of any size counts")]
pub(crate) fn changes(window: &Window<'_>) -> Option<f64> {
    let is_change = |pair: &&[f64]| pair[0] != pair[1] && !(pair[0].is_nan() && pair[1].is_nan());
    Some(window.values.windows(2).filter(is_change).count() as f64)
}
