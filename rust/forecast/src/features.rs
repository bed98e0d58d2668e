//! Features of a link: a line of columns for each issue time.

use crate::curve::{self, CurveGrid};
use crate::hours::{HourGrid, push_week, same_time};
use crate::minutes::{DAY_MINUTES, HOUR_MINUTES, MinuteGrid, NEWEST_MINUTES_MAX};
use crate::path::{LinkPath, PathGrid};
use crate::recent::{push_day, push_errors, push_hour, yesterday};
use crate::reduce::{before, distance};
use crate::rows::{LinkRow, MINUTE_NS};

/// Columns of a line.
const COLUMNS: usize = 92;
const WINDOW_MINUTES: usize = 15;
const NEEDED_MINUTES: usize = 10;

/// Amount of telemetry for a forecast.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Telemetry {
    /// A forecast can be issued.
    Enough,
    /// Less than 10 of the last 15 minutes have a value, or none of the last 5.
    Insufficient,
    /// None of the last 15 minutes has a value.
    Missing,
}

/// Features of links, each at the same issue times, link after link.
#[derive(Clone, Debug, Default)]
pub struct LinkFeatures {
    /// Columns of each issue time in the order of `features/snr.py`. NaN if no row gives a column.
    pub columns: Vec<f64>,
    /// One for each issue time.
    pub telemetry: Vec<Telemetry>,
    /// The means of the 1,440 minutes before each issue time, for models of raw values.
    pub context: Vec<f64>,
}

impl LinkFeatures {
    /// No features yet, with room for this many lines.
    #[must_use]
    pub fn with_capacity(lines: usize) -> Self {
        Self { context: Vec::with_capacity(lines * DAY_MINUTES), ..Self::default() }
    }

    /// Appends the features of a link with `rows` in order of time. `issued_ns` are whole minutes.
    /// Only rows before an issue time count for it. `orbit` has the link's path at each issue time
    /// if its orbit is known.
    ///
    /// # Panics
    /// Panics if `orbit` has another length than `issued_ns`.
    pub fn push(&mut self, rows: &[LinkRow], issued_ns: &[i64], orbit: Option<&[LinkPath]>) {
        let minutes = || issued_ns.iter().map(|at| at.div_euclid(MINUTE_NS));
        let (Some(min), Some(max)) = (minutes().min(), minutes().max()) else { return };
        if rows.is_empty() {
            return self.push_missing(issued_ns.len());
        }
        let link = LinkGrids {
            minutes: MinuteGrid::new(rows, min, max),
            hours: HourGrid::new(rows, min, max),
        };
        let moved = PathGrid::new(rows, min, max);
        let mut curves = None;
        for (index, now) in minutes().enumerate() {
            let path = moved.as_ref().map_or(LinkPath::UNKNOWN, |moved| moved.carried_on(now));
            let path = orbit.map_or(path, |orbit| path.or_by_orbit(&orbit[index]));
            let curves = (!path.elevation_deg[0].is_nan())
                .then(|| &*curves.get_or_insert_with(|| CurveGrid::new(rows, &link.minutes, max)));
            self.push_line(&link, now, &path, curves);
        }
    }

    /// Appends lines of a link without rows.
    fn push_missing(&mut self, lines: usize) {
        self.columns.resize(self.columns.len() + lines * COLUMNS, f64::NAN);
        self.context.resize(self.context.len() + lines * DAY_MINUTES, f64::NAN);
        self.telemetry.resize(self.telemetry.len() + lines, Telemetry::Missing);
    }

    fn push_line(
        &mut self,
        link: &LinkGrids,
        now: i64,
        path: &LinkPath,
        curves: Option<&CurveGrid>,
    ) {
        let LinkGrids { minutes: grid, hours } = link;
        let hours = hours.before(now);
        let now = distance(grid.first, now);
        let curve = curves.map(|curves| curves.curve(&grid.snr_db, now, path));
        push_hour(&mut self.columns, &grid.snr_db, now);
        push_day(&mut self.columns, grid, now);
        push_week(&mut self.columns, hours);
        // The grid begins with an hour.
        let usual = same_time(hours, now % usize::from(HOUR_MINUTES));
        for (horizon, usual) in usual.into_iter().enumerate() {
            push_errors(&mut self.columns, grid, now, horizon);
            self.columns.push(yesterday(grid, now, horizon));
            self.columns.push(usual);
            self.columns.push(path.elevation_deg[horizon + 1]);
            self.columns.push(20.0 * (path.range_km[horizon + 1] / path.range_km[0]).log10());
            let of_curve =
                curve.as_ref().map_or([f64::NAN; curve::COLUMNS], |curve| curve.columns(horizon));
            self.columns.extend(of_curve);
        }
        self.columns.push(path.elevation_deg[0]);
        self.columns.push(curve.map_or(f64::NAN, |curve| curve.offset));
        self.telemetry.push(telemetry(&grid.snr_db, now));
        self.context.extend_from_slice(before(&grid.snr_db, now, DAY_MINUTES));
    }
}

/// Means of a link's rows, which serve all its issue times.
struct LinkGrids {
    minutes: MinuteGrid,
    hours: HourGrid,
}

fn telemetry(snr_db: &[f64], now: usize) -> Telemetry {
    let present = |minutes| before(snr_db, now, minutes).iter().filter(|at| !at.is_nan()).count();
    match (present(WINDOW_MINUTES), present(NEWEST_MINUTES_MAX)) {
        (0, _) => Telemetry::Missing,
        (..NEEDED_MINUTES, _) | (_, 0) => Telemetry::Insufficient,
        _ => Telemetry::Enough,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::row;

    #[test]
    fn a_link_without_rows_has_lines_without_numbers() {
        let mut features = LinkFeatures::default();
        features.push(&[row(-1.0, 10.0)], &[0, MINUTE_NS], None);
        features.push(&[], &[0, MINUTE_NS], None);
        assert_eq!(features.columns.len(), 4 * COLUMNS);
        assert!(features.columns[2 * COLUMNS..].iter().all(|column| column.is_nan()));
        let expected = [Telemetry::Insufficient, Telemetry::Insufficient];
        assert_eq!(features.telemetry[..2], expected);
        assert_eq!(features.telemetry[2..], [Telemetry::Missing; 2]);
        assert_eq!(features.context.len(), 4 * DAY_MINUTES);
    }
}
