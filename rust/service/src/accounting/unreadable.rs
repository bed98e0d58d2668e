//! Log lines about records that are stored and that no read shows: at most one line in a minute for
//! each key and reason.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use fleetcast_core::model::json::write_string;
use fleetcast_core::plane::WriteReport;

use super::log_line::{write_line, write_timestamp};

const PAUSE: Duration = Duration::from_mins(1);
/// Bound on the count of keys and reasons whose last line is remembered.
const KNOWN_MAX: usize = 4_096;

/// Instant of the last line about a key and a reason, and the count of records since then.
type LineCounts = HashMap<(String, &'static str), (Instant, u64)>;

static KNOWN: LazyLock<Mutex<LineCounts>> = LazyLock::new(Mutex::default);

/// Writer of unreadable records.
pub struct RecordSource<'t> {
    /// The tenant.
    pub tenant: &'t str,
    /// The id of the key.
    pub key_id: &'t str,
    /// The name of the process.
    pub process: &'t str,
}

/// Logs the records of a batch that no read shows.
pub fn note_unreadable(source: &RecordSource<'_>, written: &WriteReport) {
    let counts = [written.no_entity_count, written.other_measurement_count];
    let names = written.unseen_measurements.iter().flatten();
    let kinds =
        ["no_entity", "measurement"].into_iter().zip(counts).filter(|(_, count)| *count > 0);
    for ((reason, count), measurement) in kinds.zip(names) {
        if let Some(records) = due(source.key_id, reason, count, Instant::now()) {
            write_line(&line(source, reason, records, measurement, SystemTime::now()));
        }
    }
}

/// Returns the count of records to report now, or `None` if a line was written less than a minute
/// ago.
fn due(key_id: &str, reason: &'static str, count: u32, now: Instant) -> Option<u64> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (key_id.to_owned(), reason);
    if known.len() >= KNOWN_MAX && !known.contains_key(&key) {
        known.retain(|_, (at, _)| now.saturating_duration_since(*at) < PAUSE);
        if known.len() >= KNOWN_MAX {
            return None;
        }
    }
    let (at, waiting) = known.entry(key).or_insert((now, 0));
    let is_first = *at == now && *waiting == 0;
    *waiting += u64::from(count);
    if !is_first && now.saturating_duration_since(*at) < PAUSE {
        return None;
    }
    *at = now;
    Some(std::mem::take(waiting))
}

fn line(
    source: &RecordSource<'_>,
    reason: &str,
    records: u64,
    measurement: &str,
    now: SystemTime,
) -> Vec<u8> {
    let mut line = br#"{"event":"records are stored that no read shows""#.to_vec();
    let texts = [
        ("tenant", source.tenant),
        ("key_id", source.key_id),
        ("reason", reason),
        ("measurement", measurement),
        ("level", "warning"),
        ("logger", "fleetcast.unreadable"),
        ("process", source.process),
    ];
    for (name, text) in texts {
        // Writing to memory cannot fail.
        let _ = write!(line, r#","{name}":"#);
        write_string(&mut line, text);
    }
    let _ = write!(line, r#","records":{records},"timestamp":""#);
    write_timestamp(&mut line, now);
    line.extend_from_slice(b"\"}\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_of_at_once_and_then_once_a_minute_with_all_since() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(due("told", "no_entity", 3, at(0)), Some(3));
        assert_eq!(due("told", "no_entity", 4, at(1)), None);
        assert_eq!(due("told", "measurement", 1, at(1)), Some(1));
        assert_eq!(due("told", "no_entity", 5, at(59)), None);
        assert_eq!(due("told", "no_entity", 6, at(60)), Some(15));
        assert_eq!(due("told", "no_entity", 1, at(61)), None);
    }
}
