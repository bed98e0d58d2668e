//! Rows of a link, and their means in cells of time.

use std::ops::Range;

use fleetcast_core::model::time::SECOND_NS;

pub(crate) const MINUTE_NS: i64 = 60 * SECOND_NS;

/// A row of the measurement `link`. NaN stands for a field without a number.
#[derive(Clone, Copy, Debug)]
pub struct LinkRow {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub time_ns: i64,
    /// Signal to noise, in dB.
    pub snr_db: f64,
    /// Angle of the other end above the horizon.
    pub elevation_deg: f64,
    /// Direction of the other end, clockwise from north.
    pub azimuth_deg: f64,
    /// Distance of the other end.
    pub slant_range_km: f64,
}

impl LinkRow {
    /// A row without numbers.
    #[must_use]
    pub fn empty(time_ns: i64) -> Self {
        let none = f64::NAN;
        Self { time_ns, snr_db: none, elevation_deg: none, azimuth_deg: none, slant_range_km: none }
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
        LinkRow { snr_db, ..LinkRow::empty(time_ns) }
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
        let means = averaged(&rows, 0..3, 1, |row| row.snr_db);
        assert_eq!((means[0], means[2]), (2.0, 7.0));
        assert!(means[1].is_nan());
        assert_eq!(averaged(&rows, -1..1, 60, |row| row.snr_db), [9.0, 5.0]);
    }
}
