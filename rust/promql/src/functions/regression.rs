//! Straight lines through the samples of a window, by least squares.

use super::sums::CompensatedSum;
use crate::selector::seconds;
use crate::window::Window;

/// Slope of the line per second.
pub(crate) fn deriv(window: &Window<'_>) -> Option<f64> {
    line(window, *window.times_ms.first()?).map(|(slope, _)| slope)
}

/// Value of the line the parameter's number of seconds after the step.
pub(crate) fn predict_linear(window: &Window<'_>) -> Option<f64> {
    line(window, window.step_ms).map(|(slope, value)| slope * window.parameter + value)
}

/// Returns the slope of the line, and its value at an instant. The instant should be near the
/// samples, so that their distances in time keep their digits.
#[expect(clippy::cast_precision_loss, reason = "samples in memory are fewer than 2^53")]
#[expect(clippy::float_cmp, reason = "only equal values make a level line")]
fn line(window: &Window<'_>, at_ms: i64) -> Option<(f64, f64)> {
    let (times_ms, values) = (window.times_ms, window.values);
    let first = *values.first()?;
    if values.len() < 2 {
        return None;
    }
    if values.iter().all(|value| *value == first) {
        return Some(if first.is_infinite() { (f64::NAN, f64::NAN) } else { (0.0, first) });
    }
    let [mut x, mut y, mut xy, mut xx] = [CompensatedSum::default(); 4];
    for (time_ms, value) in times_ms.iter().zip(values) {
        let distance = seconds(time_ms.saturating_sub(at_ms));
        x.add(distance);
        y.add(*value);
        xy.add(distance * value);
        xx.add(distance * distance);
    }
    let count = values.len() as f64;
    let [x, y, xy, xx] = [x, y, xy, xx].map(CompensatedSum::total);
    let slope = (xy - x * y / count) / (xx - x * x / count);
    Some((slope, y / count - slope * x / count))
}
