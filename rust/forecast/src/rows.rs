//! Rows of a link, and their means in cells of time.

use std::ops::Range;

use fleetcast_core::model::time::SECOND_NS;

pub(crate) const MINUTE_NS: i64 = 60 * SECOND_NS;

/// A row of the measurement `link`.
#[derive(Clone, Copy, Debug)]
pub struct LinkRow {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub time_ns: i64,
    /// Numbers in the order of [`Self::FIELDS`]. NaN stands for a field without a number.
    pub numbers: [f64; 4],
}

impl LinkRow {
    /// Signal to noise, the angle of the other end above the horizon, its direction clockwise from
    /// north, and its distance.
    pub const FIELDS: [&str; 4] = ["snr_db", "elevation_deg", "azimuth_deg", "slant_range_km"];

    /// A row without numbers.
    #[must_use]
    pub fn empty(time_ns: i64) -> Self {
        Self { time_ns, numbers: [f64::NAN; 4] }
    }

    pub(crate) fn snr_db(&self) -> f64 {
        self.numbers[0]
    }

    pub(crate) fn elevation_deg(&self) -> f64 {
        self.numbers[1]
    }

    pub(crate) fn azimuth_deg(&self) -> f64 {
        self.numbers[2]
    }

    pub(crate) fn range_km(&self) -> f64 {
        self.numbers[3]
    }
}

/// Means of a number of each row in `cells` of `minutes` minutes, counted from 1970. NaN if no row
/// of the cell has a finite number. `rows` are in order of time.
///
/// Example: with 60 minutes, cell 1 covers 01:00 to 02:00 on 1970-01-01.
pub(crate) fn averaged(
    rows: &[LinkRow],
    cells: Range<i64>,
    minutes: u8,
    number: impl Fn(&LinkRow) -> f64,
) -> Vec<f64> {
    let cell_ns = i64::from(minutes) * MINUTE_NS;
    let start = rows.partition_point(|row| row.time_ns < cells.start * cell_ns);
    let mut rows = rows[start..].iter().peekable();
    let mean = |cell: i64| {
        let (end_ns, mut total, mut count) = ((cell + 1) * cell_ns, 0.0, 0_u32);
        while let Some(row) = rows.next_if(|row| row.time_ns < end_ns) {
            let number = number(row);
            if number.is_finite() {
                total += number;
                count += 1;
            }
        }
        if count == 0 { f64::NAN } else { total / f64::from(count) }
    };
    cells.map(mean).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(minute: f64, snr_db: f64) -> LinkRow {
        #[expect(clippy::cast_possible_truncation, reason = "tests use few minutes")]
        let time_ns = (minute * 60e9) as i64;
        let mut row = LinkRow::empty(time_ns);
        row.numbers[0] = snr_db;
        row
    }

    #[test]
    fn a_cell_has_the_mean_of_its_finite_numbers() {
        let rows = [
            row(-0.5, 9.0),
            row(0.0, 1.0),
            row(0.9, 3.0),
            row(0.9, f64::INFINITY),
            row(2.0, 7.0),
            row(3.0, 9.0),
        ];
        let means = averaged(&rows, 0..3, 1, LinkRow::snr_db);
        assert_eq!((means[0], means[2]), (2.0, 7.0));
        assert!(means[1].is_nan());
        assert_eq!(averaged(&rows, -1..1, 60, LinkRow::snr_db), [9.0, 5.0]);
    }
}
