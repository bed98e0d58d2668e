//! Rates and differences over windows, extrapolated as Prometheus does (`extrapolatedRate` in its
//! `promql/functions.go`).

use crate::selector::seconds;
use crate::window::Window;

/// Share of the mean distance of samples within which the end of a window counts as reached.
const NEAR: f64 = 1.1;

/// Growth of a counter per second.
pub(crate) fn rate(window: &Window<'_>) -> Option<f64> {
    extrapolated(window, true)
        .map(|(growth, factor)| growth * (factor / seconds(window.end_ms - window.start_ms)))
}

/// Growth of a counter.
pub(crate) fn increase(window: &Window<'_>) -> Option<f64> {
    extrapolated(window, true).map(|(growth, factor)| growth * factor)
}

/// Difference of a gauge.
pub(crate) fn delta(window: &Window<'_>) -> Option<f64> {
    extrapolated(window, false).map(|(growth, factor)| growth * factor)
}

/// Returns the growth between the first and the last sample, and the factor for the whole window.
#[expect(clippy::cast_precision_loss, reason = "samples in memory are fewer than 2^53")]
fn extrapolated(window: &Window<'_>, is_counter: bool) -> Option<(f64, f64)> {
    let (times_ms, values) = (window.times_ms, window.values);
    let (first_ms, last_ms) = (*times_ms.first()?, *times_ms.last()?);
    let (first, last) = (*values.first()?, *values.last()?);
    if values.len() < 2 {
        return None;
    }
    let mut growth = last - first;
    if is_counter {
        window.resets.iter().for_each(|before| growth += before);
    }
    let mut to_start = seconds(first_ms - window.start_ms);
    let to_end = seconds(window.end_ms - last_ms);
    let sampled = seconds(last_ms - first_ms);
    let distance = sampled / (values.len() - 1) as f64;
    if is_counter && growth > 0.0 && first >= 0.0 {
        // A counter is not negative, so its line back in time ends at zero.
        let to_zero = sampled * (first / growth);
        if to_zero < to_start {
            to_start = to_zero;
        }
    }
    let reached = |to: f64| if to < distance * NEAR { to } else { distance / 2.0 };
    Some((growth, (sampled + reached(to_start) + reached(to_end)) / sampled))
}

/// Growth of a counter per second between the last two samples.
pub(crate) fn irate(window: &Window<'_>) -> Option<f64> {
    let ([before, last], elapsed_ms) = last_two(window)?;
    let growth = if last < before { last } else { last - before };
    Some(growth / seconds(elapsed_ms))
}

/// Difference between the last two samples.
pub(crate) fn idelta(window: &Window<'_>) -> Option<f64> {
    last_two(window).map(|([before, last], _)| last - before)
}

fn last_two(window: &Window<'_>) -> Option<([f64; 2], i64)> {
    let [.., before_ms, last_ms] = window.times_ms else { return None };
    let [.., before, last] = window.values else { return None };
    Some(([*before, *last], last_ms - before_ms))
}
