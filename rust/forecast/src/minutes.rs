//! The last day of a link minute by minute, and what blocks of five minutes have.

use crate::reduce::{mean, mean_change, newest};
use crate::rows::{LinkRow, averaged};

/// Minutes of a block, aligned to 1970. Windows of hours are computed from blocks.
pub(crate) const BLOCK_MINUTES: usize = 5;
pub(crate) const HOUR_MINUTES: u8 = 60;
/// Whole hours before the hour of the issue time that are used minute by minute.
pub(crate) const HOURS_OF_MINUTES: u8 = 25;
pub(crate) const DAY_MINUTES: usize = 1440;
/// Minutes that the last value is looked for in.
pub(crate) const NEWEST_MINUTES_MAX: usize = 5;
/// Minutes from an issue time to the end of the minute that is forecast.
pub(crate) const HORIZONS_MINUTES: [usize; 4] = [5, 15, 30, 60];

/// A link's minutes, which serve several issue times.
pub(crate) struct MinuteGrid {
    /// The first minute, counted from 1970. An hour begins with it.
    pub(crate) first: i64,
    /// Means of minutes, in dB, of whole blocks.
    pub(crate) snr_db: Vec<f64>,
    /// Means of blocks.
    pub(crate) block_means: Vec<f64>,
    /// Mean changes from minute to minute within blocks.
    pub(crate) block_changes: Vec<f64>,
    /// By horizon: errors of the last value as a forecast issued at the start of each block. The
    /// truth of block b is the last minute before block b + horizon.
    pub(crate) block_errors: [Vec<f64>; HORIZONS_MINUTES.len()],
}

impl MinuteGrid {
    /// Averages rows for issue times from minute `now_min` to `now_max`.
    pub(crate) fn new(rows: &[LinkRow], now_min: i64, now_max: i64) -> Self {
        let first = first_minute(now_min);
        let mut snr_db = averaged(rows, first..now_max, 1, LinkRow::snr_db);
        snr_db.resize(snr_db.len().next_multiple_of(BLOCK_MINUTES), f64::NAN);
        let blocks = || snr_db.chunks_exact(BLOCK_MINUTES);
        let newest_of_block: Vec<f64> = blocks().map(newest).collect();
        let last_of_block: Vec<f64> = blocks().map(|block| block[BLOCK_MINUTES - 1]).collect();
        let block_errors = HORIZONS_MINUTES.map(|horizon| {
            let truths = last_of_block.iter().skip(horizon / BLOCK_MINUTES);
            let errors = truths.zip(&newest_of_block).map(|(truth, last)| truth - last);
            std::iter::once(f64::NAN).chain(errors).collect()
        });
        Self {
            first,
            block_means: blocks().map(|block| mean(block.iter().copied())).collect(),
            block_changes: blocks().map(mean_change).collect(),
            block_errors,
            snr_db,
        }
    }
}

/// The first minute that is used for issue time `now`, as a minute.
pub(crate) fn first_minute(now: i64) -> i64 {
    let hour = i64::from(HOUR_MINUTES);
    (now.div_euclid(hour) - i64::from(HOURS_OF_MINUTES)) * hour
}
