//! Features of links that a plane stores.

use fleetcast_core::model::aggregate::{Aggregation, Interval};
use fleetcast_core::model::batch::RowSet;
use fleetcast_core::model::clock::CallTime;
use fleetcast_core::model::error::Result;
use fleetcast_core::plane::{Plane, reading_on_one};
use fleetcast_core::query::{AnswerBounds, SeriesQuery};

use crate::features::LinkFeatures;
use crate::minutes::first_minute;
use crate::path::LOOK_BACK_MINUTES;
use crate::rows::{LinkRow, MINUTE_NS};

const MEASUREMENT: &str = "link";
/// Links whose rows are in memory at once.
const LINKS_AT_ONCE: usize = 8;

/// A week, and an hour because hours are whole.
const HISTORY_NS: i64 = (7 * 24 + 1) * 60 * MINUTE_NS;

/// Features of distinct links for forecasts issued at `issued_ns`.
///
/// # Errors
/// Returns the error of the store.
pub fn stored_features(
    plane: &Plane,
    entity_ids: &[String],
    issued_ns: i64,
    now: CallTime,
) -> Result<LinkFeatures> {
    let mut features = LinkFeatures::with_capacity(entity_ids.len());
    for some in entity_ids.chunks(LINKS_AT_ONCE) {
        let links = || stored_rows(plane, some, (issued_ns, issued_ns), now);
        for rows in reading_on_one(true, links)? {
            features.push(&rows, &[issued_ns], None);
        }
    }
    Ok(features)
}

/// The rows that forecasts of distinct links use, issued from the first to the last of `issued_ns`.
///
/// The signal is means of minutes, and earlier means of hours. The elevation is means of minutes,
/// and for the last half hour as it was sent, like the other fields. A week of minutes would add
/// little information and cost seven times as much to read.
///
/// # Errors
/// Returns the error of the store.
pub fn stored_rows(
    plane: &Plane,
    entity_ids: &[String],
    issued_ns: (i64, i64),
    now: CallTime,
) -> Result<Vec<Vec<LinkRow>>> {
    let (first_ns, last_ns) = issued_ns;
    let by_minute_ns = first_minute(first_ns.div_euclid(MINUTE_NS)) * MINUTE_NS;
    let path_ns = first_ns - i64::from(LOOK_BACK_MINUTES) * MINUTE_NS;
    let mut links = vec![Vec::new(); entity_ids.len()];
    let mut read = |(start_ns, end_ns), fields: &[&str], interval: Option<Interval>| {
        let query = SeriesQuery {
            entity_ids: entity_ids.to_vec(),
            start_ns,
            end_ns,
            measurement: MEASUREMENT.to_owned(),
            fields: fields.iter().map(|name| (*name).to_owned()).collect(),
            windows: interval.map(|interval| (interval, Aggregation::Mean)),
        };
        append(&mut links, plane, query, now)
    };
    let [snr, elevation, azimuth, range] = LinkRow::FIELDS;
    read((first_ns - HISTORY_NS, by_minute_ns), &[snr], Some(Interval::OneHour))?;
    read((by_minute_ns, last_ns), &[snr, elevation], Some(Interval::OneMinute))?;
    read((path_ns, last_ns), &[elevation, azimuth, range], None)?;
    for rows in &mut links {
        rows.sort_by_key(|row| row.time_ns);
    }
    Ok(links)
}

/// Appends the rows of an answer to those of its links.
fn append(
    links: &mut [Vec<LinkRow>],
    plane: &Plane,
    query: SeriesQuery,
    now: CallTime,
) -> Result<()> {
    let answer = plane.series(query, AnswerBounds::NONE, now)?;
    for (rows, entity) in links.iter_mut().zip(&answer.entities) {
        let first = rows.len();
        rows.extend(entity.times_ns.iter().map(|time_ns| LinkRow::empty(*time_ns)));
        let rows = &mut rows[first..];
        for channel in &entity.channels {
            let name = &*answer.names[&channel.field];
            let Some(number) = LinkRow::FIELDS.iter().position(|field| *field == name) else {
                continue;
            };
            match &channel.rows {
                RowSet::All => {
                    for (row, value) in rows.iter_mut().zip(&channel.values) {
                        row.numbers[number] = *value;
                    }
                }
                RowSet::Some(present) => {
                    for (row, value) in present.iter().zip(&channel.values) {
                        rows[*row as usize].numbers[number] = *value;
                    }
                }
            }
        }
    }
    Ok(())
}
