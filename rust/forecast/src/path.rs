//! Path of the other end of a link, now and ahead, from its past motion.

use crate::minutes::HORIZONS_MINUTES;
use crate::reduce::{as_float, distance};
use crate::rows::{LinkRow, averaged};

/// Instants of a path: the issue time, and the horizons.
pub const INSTANTS: usize = 1 + HORIZONS_MINUTES.len();

/// Minutes from an issue time to the instants of a path.
const AHEAD_MINUTES: [usize; INSTANTS] = {
    let [first, second, third, last] = HORIZONS_MINUTES;
    [0, first, second, third, last]
};
/// Minutes before an issue time whose motion is carried on.
pub(crate) const LOOK_BACK_MINUTES: u8 = 30;
const NEEDED_MINUTES: usize = 5;
/// Keeps a fit of few minutes solvable, and changes a fit of many minutes very little.
const RIDGE: f64 = 1e-6;

/// The path at an issue time and at each horizon. NaN if it is unknown.
#[derive(Clone, Copy, Debug)]
pub struct LinkPath {
    /// Angles of the other end above the horizon.
    pub elevation_deg: [f64; INSTANTS],
    /// Distances of the other end.
    pub range_km: [f64; INSTANTS],
}

impl LinkPath {
    pub(crate) const UNKNOWN: Self =
        Self { elevation_deg: [f64::NAN; INSTANTS], range_km: [f64::NAN; INSTANTS] };

    /// The path by its orbit, and `self` where the orbit does not tell.
    pub(crate) fn or_by_orbit(mut self, orbit: &Self) -> Self {
        let fill = |ours: &mut [f64], theirs: &[f64]| {
            for (mine, known) in ours.iter_mut().zip(theirs).filter(|(_, known)| !known.is_nan()) {
                *mine = *known;
            }
        };
        fill(&mut self.elevation_deg, &orbit.elevation_deg);
        fill(&mut self.range_km, &orbit.range_km);
        self
    }
}

type Vector = [f64; 3];

/// Place of the other end in a minute: east, north, up.
#[derive(Clone, Copy)]
struct Place {
    /// In km if the range was measured, else a direction of length 1. NaN if it is unknown.
    position: Vector,
    is_measured: bool,
}

/// Places of a link's other end by minutes, which serve several issue times.
pub(crate) struct PathGrid {
    first: i64,
    places: Vec<Place>,
}

impl PathGrid {
    /// Averages rows for issue times from minute `now_min` to `now_max`. `None` for a link that
    /// reports no direction.
    pub(crate) fn new(rows: &[LinkRow], now_min: i64, now_max: i64) -> Option<Self> {
        let first = now_min - i64::from(LOOK_BACK_MINUTES);
        let minutes = first..now_max;
        let is_directed =
            |row: &LinkRow| !row.elevation_deg().is_nan() && !row.azimuth_deg().is_nan();
        if !rows.iter().any(is_directed) {
            return None;
        }
        let component = |of: fn(&LinkRow) -> f64| averaged(rows, minutes.clone(), 1, of);
        let (east, north, up) = (component(east), component(north), component(up));
        let range_km = component(LinkRow::range_km);
        let places = (0..east.len()).map(|minute| {
            let direction = [east[minute], north[minute], up[minute]];
            let range_km = range_km[minute];
            let is_measured = !range_km.is_nan();
            let scale = if is_measured { range_km } else { 1.0 } / norm(direction);
            Place { position: direction.map(|part| part * scale), is_measured }
        });
        Some(Self { first, places: places.collect() })
    }

    /// The last half hour before the issue time at minute `now`, each component carried on as a
    /// parabola in time.
    pub(crate) fn carried_on(&self, now: i64) -> LinkPath {
        let end = distance(self.first, now);
        let places = &self.places[end - usize::from(LOOK_BACK_MINUTES)..end];
        let is_seen = |place: &Place| !place.position[0].is_nan();
        let ranged = places.iter().filter(|place| is_seen(place) && place.is_measured).count();
        // Minutes with and without a range do not mix.
        let is_ranged = ranged >= NEEDED_MINUTES;
        let is_used = |place: &Place| is_seen(place) && place.is_measured == is_ranged;
        if places.iter().filter(|place| is_used(place)).count() < NEEDED_MINUTES {
            return LinkPath::UNKNOWN;
        }
        let (mut normal, mut right) = ([[0.0; 3]; 3], [[0.0; 3]; 3]);
        for (minute, place) in places.iter().enumerate().filter(|(_, place)| is_used(place)) {
            let time = powers((as_float(minute) + 0.5) / f64::from(LOOK_BACK_MINUTES) - 1.0);
            for (row, weight) in time.into_iter().enumerate() {
                for column in 0..3 {
                    normal[row][column] += weight * time[column];
                    right[row][column] += weight * place.position[column];
                }
            }
        }
        for (index, row) in normal.iter_mut().enumerate() {
            row[index] += RIDGE;
        }
        let fitted = solved(normal, right);
        let positions = AHEAD_MINUTES.map(|ahead| {
            let time = powers(as_float(ahead) / f64::from(LOOK_BACK_MINUTES));
            [0, 1, 2].map(|part| (0..3).map(|power| time[power] * fitted[power][part]).sum())
        });
        LinkPath {
            elevation_deg: positions.map(|position: Vector| {
                (position[2] / norm(position).max(1e-12)).clamp(-1.0, 1.0).asin().to_degrees()
            }),
            range_km: if is_ranged { positions.map(norm) } else { [f64::NAN; INSTANTS] },
        }
    }
}

fn east(row: &LinkRow) -> f64 {
    row.elevation_deg().to_radians().cos() * row.azimuth_deg().to_radians().sin()
}

fn north(row: &LinkRow) -> f64 {
    row.elevation_deg().to_radians().cos() * row.azimuth_deg().to_radians().cos()
}

fn up(row: &LinkRow) -> f64 {
    if row.azimuth_deg().is_nan() { f64::NAN } else { row.elevation_deg().to_radians().sin() }
}

fn powers(time: f64) -> Vector {
    [1.0, time, time * time]
}

fn norm(vector: Vector) -> f64 {
    vector.iter().map(|part| part * part).sum::<f64>().sqrt()
}

/// Solves `matrix * x = right` by Gaussian elimination; each column of `right` is a system of its
/// own. Rows with the largest number come first.
fn solved(mut matrix: [Vector; 3], mut right: [Vector; 3]) -> [Vector; 3] {
    for pivot in 0..3 {
        let size = |row: &usize| matrix[*row][pivot].abs();
        let largest = (pivot..3).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(pivot);
        matrix.swap(pivot, largest);
        right.swap(pivot, largest);
        for row in pivot + 1..3 {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            subtract(&mut matrix, row, pivot, factor);
            subtract(&mut right, row, pivot, factor);
        }
    }
    for pivot in (0..3).rev() {
        right[pivot] = right[pivot].map(|part| part / matrix[pivot][pivot]);
        for (row, of_row) in matrix[..pivot].iter().enumerate() {
            subtract(&mut right, row, pivot, of_row[pivot]);
        }
    }
    right
}

fn subtract(rows: &mut [Vector; 3], row: usize, other: usize, factor: f64) {
    let others = rows[other];
    for (number, other) in rows[row].iter_mut().zip(others) {
        *number -= factor * other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved() {
        let matrix = [[0.0, 2.0, 1.0], [1.0, -1.0, 0.5], [4.0, 1.0, 3.0]];
        let known = [[1.0, -2.0, 0.0], [3.0, 0.5, 1.0], [-1.0, 2.0, 7.0]];
        let right = matrix.map(|row| {
            [0, 1, 2].map(|column| (0..3).map(|k| row[k] * known[k][column]).sum::<f64>())
        });
        for (found, known) in solved(matrix, right).as_flattened().iter().zip(known.as_flattened())
        {
            assert!((found - known).abs() < 1e-12);
        }
    }
}
