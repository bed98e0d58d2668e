//! A link's curve: its values of the last day over the elevation that it had.
//!
//! A satellite passes again at another time, and the link then sees much the same at the same
//! elevation. Example: with 40 dB at 20 degrees yesterday and 45 dB at 30, a link at 20 degrees that
//! will be at 30 in half an hour can expect 5 dB more.

use std::iter::zip;

use crate::minutes::{HORIZONS_MINUTES, HOUR_MINUTES, MinuteGrid};
use crate::path::LinkPath;
use crate::reduce::{as_float, as_index, before, mean};
use crate::rows::{LinkRow, averaged};

/// Whole hours before the hour of the issue time. The newest two are left out, as the same pass.
const OLDEST_HOURS: usize = 25;
const NEWEST_HOURS: usize = 3;
const BIN_DEG: f64 = 2.0;
const BINS: usize = 45;
/// Deviation of the kernel by which neighbouring elevations count.
const KERNEL_DEG: f64 = 1.5;
/// Minutes, weighted by the kernel, from which a curve is known at an elevation.
const MINUTES_MIN: f64 = 1.0;
/// Minutes that are a support of one half.
const MINUTES_MANY: f64 = 10.0;
const RECENT_MINUTES: usize = 15;
/// Columns of a horizon.
pub(crate) const COLUMNS: usize = 5;

/// Minutes at like elevation.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    total: f64,
    square: f64,
}

impl Moments {
    fn add(&mut self, other: &Self, weight: f64) {
        self.count += weight * other.count;
        self.total += weight * other.total;
        self.square += weight * other.square;
    }

    fn mean(&self) -> f64 {
        if self.count >= MINUTES_MIN { self.total / self.count } else { f64::NAN }
    }

    fn spread(&self) -> f64 {
        let mean = self.mean();
        let variance = self.square / self.count - mean * mean;
        if variance < 0.0 { 0.0 } else { variance.sqrt() }
    }

    fn support(&self) -> f64 {
        self.count / (self.count + MINUTES_MANY)
    }
}

type Bins = [Moments; BINS];

/// A link's elevations and its minutes at each, hour by hour, which serve several issue times.
pub(crate) struct CurveGrid {
    elevation_deg: Vec<f64>,
    by_hour: Vec<Bins>,
}

impl CurveGrid {
    /// Sorts the minutes of `grid`, which ends with `now_max`, by elevation.
    pub(crate) fn new(rows: &[LinkRow], grid: &MinuteGrid, now_max: i64) -> Self {
        let elevation_deg = averaged(rows, grid.first..now_max, 1, LinkRow::elevation_deg);
        let mut by_hour = Vec::new();
        for (snr_db, elevation_deg) in zip(hours(&grid.snr_db), hours(&elevation_deg)) {
            let mut bins = [Moments::default(); BINS];
            for (snr_db, elevation_deg) in zip(snr_db, elevation_deg) {
                if *elevation_deg > 0.0 && !snr_db.is_nan() {
                    let bin = as_index(elevation_deg / BIN_DEG).min(BINS - 1);
                    let minute = Moments { count: 1.0, total: *snr_db, square: snr_db * snr_db };
                    bins[bin].add(&minute, 1.0);
                }
            }
            by_hour.push(bins);
        }
        Self { elevation_deg, by_hour }
    }

    /// The curve that is known at minute index `now`.
    pub(crate) fn curve(&self, snr_db: &[f64], now: usize, path: &LinkPath) -> Curve {
        let hour = now / usize::from(HOUR_MINUTES);
        let mut bins = [Moments::default(); BINS];
        for of_hour in &self.by_hour[hour - OLDEST_HOURS..=hour - NEWEST_HOURS] {
            for (bin, more) in bins.iter_mut().zip(of_hour) {
                bin.add(more, 1.0);
            }
        }
        let recent = zip(
            before(snr_db, now, RECENT_MINUTES),
            before(&self.elevation_deg, now, RECENT_MINUTES),
        );
        let offset = mean(recent.map(|(snr_db, at)| snr_db - smoothed(&bins, *at).mean()));
        let [here, ahead @ ..] = path.elevation_deg.map(|at| smoothed(&bins, at));
        Curve { here, ahead, offset }
    }
}

fn hours(minutes: &[f64]) -> impl Iterator<Item = &[f64]> {
    minutes.chunks(usize::from(HOUR_MINUTES))
}

/// The minutes around an elevation.
fn smoothed(bins: &Bins, elevation_deg: f64) -> Moments {
    let mut found = Moments::default();
    for (index, bin) in bins.iter().enumerate() {
        let apart = (elevation_deg - (as_float(index) + 0.5) * BIN_DEG) / KERNEL_DEG;
        found.add(bin, (-0.5 * apart * apart).exp());
    }
    found
}

/// A link's curve at the elevations of its path.
pub(crate) struct Curve {
    here: Moments,
    ahead: [Moments; HORIZONS_MINUTES.len()],
    /// Newest minutes less the curve at their elevations.
    pub(crate) offset: f64,
}

impl Curve {
    /// Columns of a horizon.
    pub(crate) fn columns(&self, horizon: usize) -> [f64; COLUMNS] {
        let later = &self.ahead[horizon];
        let level = later.mean();
        [level, level + self.offset, level - self.here.mean(), later.spread(), later.support()]
    }
}
