//! Columns of the last hour minute by minute, of the last day block by block, and of the errors
//! that the last value made.

use crate::minutes::{
    BLOCK_MINUTES, DAY_MINUTES, HORIZONS_MINUTES, MinuteGrid, NEWEST_MINUTES_MAX,
};
use crate::reduce::{as_float, before, mean, mean_change, newest, quantiles, spread};

const LAGS_MINUTES: [usize; 7] = [2, 3, 5, 8, 15, 30, 60];
/// Minutes by which the value of a lag may be older.
const STALE_MINUTES_MAX: usize = 15;
const SPANS_MINUTES: [usize; 2] = [15, 60];
/// Blocks of 6 and of 24 hours.
const SPANS_BLOCKS: [usize; 2] = [72, 288];
/// Levels of the quantiles of a day, and of a forecast.
const LEVELS: [f64; 3] = [0.1, 0.5, 0.9];

/// Appends the columns of the minutes before index `now`.
pub(crate) fn push_hour(columns: &mut Vec<f64>, snr_db: &[f64], now: usize) {
    let latest = before(snr_db, now, NEWEST_MINUTES_MAX);
    let age = latest.iter().rev().position(|value| !value.is_nan());
    columns.push(newest(latest));
    columns.push(age.map_or(f64::NAN, |age| as_float(age + 1)));
    for lag in LAGS_MINUTES {
        columns.push(newest(before(snr_db, now + 1 - lag, STALE_MINUTES_MAX + 1)));
    }
    for minutes in SPANS_MINUTES {
        let span = before(snr_db, now, minutes);
        columns.push(mean(span.iter().copied()));
        columns.push(span.iter().copied().fold(f64::NAN, f64::min));
        columns.push(span.iter().copied().fold(f64::NAN, f64::max));
        columns.push(spread(span));
        columns.push(mean_change(span));
    }
}

/// Appends the columns of the blocks that end before index `now`.
pub(crate) fn push_day(columns: &mut Vec<f64>, grid: &MinuteGrid, now: usize) {
    let end = now / BLOCK_MINUTES;
    for blocks in SPANS_BLOCKS {
        let means = before(&grid.block_means, end, blocks);
        columns.push(mean(means.iter().copied()));
        columns.push(spread(means));
        columns.push(mean(before(&grid.block_changes, end, blocks).iter().copied()));
    }
    let day = before(&grid.block_means, end, SPANS_BLOCKS[1]);
    columns.extend(quantiles(day.iter().copied(), LEVELS));
}

/// Appends quantiles and sizes of the errors of the last value whose truth is known at index `now`.
pub(crate) fn push_errors(columns: &mut Vec<f64>, grid: &MinuteGrid, now: usize, horizon: usize) {
    let minutes = HORIZONS_MINUTES[horizon];
    let known = (now - minutes) / BLOCK_MINUTES + 1;
    let blocks = (DAY_MINUTES - minutes) / BLOCK_MINUTES;
    let errors = before(&grid.block_errors[horizon], known, blocks);
    columns.extend(quantiles(errors.iter().copied(), LEVELS));
    for blocks in SPANS_BLOCKS {
        let errors = before(errors, errors.len(), blocks);
        columns.push(mean(errors.iter().map(|error| error.abs())));
    }
}

/// The change of blocks to a horizon at the same time on the day before.
pub(crate) fn yesterday(grid: &MinuteGrid, now: usize, horizon: usize) -> f64 {
    let then = now - 1 - DAY_MINUTES;
    let at = |minute: usize| grid.block_means[minute / BLOCK_MINUTES];
    at(then + HORIZONS_MINUTES[horizon]) - at(then)
}
