//! Columns of the hours before the minutes of a link: six days.

use crate::minutes::{DAY_MINUTES, HORIZONS_MINUTES, HOUR_MINUTES, HOURS_OF_MINUTES};
use crate::reduce::{as_float, before, distance, mean, mean_change, quantiles, spread};
use crate::rows::{LinkRow, averaged};

const DAYS: usize = 7;
/// Hours of a week that are used hour by hour.
const HOURS: u8 = 7 * 24 - HOURS_OF_MINUTES - 1;
const CHANGE_LEVELS: [f64; 2] = [0.1, 0.9];

/// A link's hours, which serve several issue times.
pub(crate) struct HourGrid {
    first: i64,
    snr_db: Vec<f64>,
}

impl HourGrid {
    /// Averages rows for issue times from minute `now_min` to `now_max`.
    pub(crate) fn new(rows: &[LinkRow], now_min: i64, now_max: i64) -> Self {
        let first = end_hour(now_min) - i64::from(HOURS);
        let hours = first..end_hour(now_max);
        let snr_db = averaged(rows, hours, HOUR_MINUTES, LinkRow::snr_db);
        Self { first, snr_db }
    }

    /// The hours before the issue time at minute `now`.
    pub(crate) fn before(&self, now: i64) -> &[f64] {
        before(&self.snr_db, distance(self.first, end_hour(now)), usize::from(HOURS))
    }
}

fn end_hour(now: i64) -> i64 {
    now.div_euclid(i64::from(HOUR_MINUTES)) - i64::from(HOURS_OF_MINUTES)
}

/// Appends the columns of all hours together.
pub(crate) fn push_week(columns: &mut Vec<f64>, hours: &[f64]) {
    columns.push(mean(hours.iter().copied()));
    columns.push(spread(hours));
    columns.push(mean_change(hours));
    let changes = hours.windows(2).map(|pair| pair[1] - pair[0]);
    columns.extend(quantiles(changes, CHANGE_LEVELS));
    let present = hours.iter().filter(|hour| !hour.is_nan()).count();
    columns.push(as_float(present) / f64::from(HOURS));
}

/// Mean change to each horizon at the same time on the days 2 to 6 before, between the middles of
/// hours. `minute` is that of the issue time within its hour.
pub(crate) fn same_time(hours: &[f64], minute: usize) -> [f64; HORIZONS_MINUTES.len()] {
    let hour = usize::from(HOUR_MINUTES);
    let now = usize::from(HOURS + HOURS_OF_MINUTES) * hour + minute;
    let level = |minutes: usize| {
        let from_middle = minutes - hour / 2;
        let (index, rest) = (from_middle / hour, from_middle % hour);
        let (below, above) = (hours[index], hours[index + 1]);
        below + (above - below) * (as_float(rest) / as_float(hour))
    };
    HORIZONS_MINUTES.map(|horizon| {
        mean((2..DAYS).map(|days| {
            let then = now - days * DAY_MINUTES;
            level(then + horizon) - level(then)
        }))
    })
}
