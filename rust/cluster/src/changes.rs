//! Changes of a store's records, as a process that keeps a copy follows them.
//!
//! Each change of a followed store leaves a row with the keys that it changed. A copy reads the rows
//! that it lacks, and the records under their keys, in one statement: all of one state of the
//! database. If a row is missing, the copy reads all records. Nodes of an older release leave no
//! rows, and rows are kept only of the last changes.
//!
//! Each row has a random id. After a failover or a recovery, a change can have the number of another
//! change that was lost. By the id of the last change a copy notices that it has another history.

use fleetcast_core::model::error::Result;
use fleetcast_core::storage::records::{Changes, RecordsVersion};
use tokio_postgres::Row;

use crate::cluster::Cluster;
use crate::identity::Id;

pub(crate) const READING: &str = "read records";

/// Most keys of a row, and most keys that a copy reads at once. Example: a new tenant with its first
/// key changes three records.
const KEYS_MAX: usize = 1_024;

/// Most rows of an answer: the last change that the copy has, and a row for each key.
const ROWS_MAX: usize = KEYS_MAX + 1;

/// Counts a change and leaves its row, without keys if there are too many. A store that was put back
/// may have a row with the same number, which is replaced. Only the last 512 rows are kept.
pub(crate) const COUNT_UP: &str = "WITH counted AS (UPDATE records SET version = version + 1 \
        WHERE name = $1 RETURNING version), \
    trimmed AS (DELETE FROM record_change c USING counted \
        WHERE c.store = $1 AND c.version <= counted.version - 512) \
    INSERT INTO record_change SELECT $1, version, gen_random_uuid(), $2, $3 FROM counted \
    ON CONFLICT (store, version) DO UPDATE \
        SET id = excluded.id, spaces = excluded.spaces, keys = excluded.keys";

macro_rules! last {
    () => {
        "WITH last AS (SELECT coalesce((SELECT version FROM records WHERE name = $1), 0) AS version) "
    };
}
const ALL: &str = concat!(
    last!(),
    "SELECT last.version, c.id, r.space, r.key, r.value FROM last \
    LEFT JOIN record_change c ON c.store = $1 AND c.version = last.version \
    LEFT JOIN record r ON r.store = $1"
);
/// The first row is that of the change `$2`, if it is kept.
const CHANGED: &str = concat!(
    last!(),
    "SELECT last.version, c.version, c.id, k.space, k.key, CASE WHEN k.key IS NOT NULL THEN \
        (SELECT value FROM record WHERE store = $1 AND space = k.space AND key = k.key) END \
    FROM last LEFT JOIN record_change c ON c.store = $1 AND c.version BETWEEN $2 AND last.version \
    LEFT JOIN LATERAL unnest(CASE WHEN c.version > $2 THEN c.spaces END, \
        CASE WHEN c.version > $2 THEN c.keys END) AS k(space, key) ON true \
    ORDER BY c.version LIMIT $3"
);

/// The last change that a copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangeMark {
    pub(crate) version: u64,
    /// `None` if the change left no row.
    pub(crate) id: Option<Id>,
}

/// Returns the spaces and keys of records that change, as [`COUNT_UP`] takes them.
pub(crate) fn keys_of(changes: &Changes) -> (Option<Vec<&str>>, Option<Vec<&[u8]>>) {
    let changed = changes
        .iter()
        .flat_map(|(space, changes)| changes.keys().map(|key| (space.as_str(), key.as_slice())));
    let (spaces, keys): (Vec<_>, Vec<_>) = changed.unzip();
    if keys.len() > KEYS_MAX { (None, None) } else { (Some(spaces), Some(keys)) }
}

/// Returns all records of a store, and the id of the last change.
///
/// # Errors
/// Returns an error if the database cannot be used.
pub(crate) fn all(cluster: &Cluster, store: &str) -> Result<(Option<Id>, RecordsVersion)> {
    let rows = cluster.read(READING, ALL, &[&store])?;
    let (mut id, mut found) = (None, RecordsVersion::default());
    for row in &rows {
        (found.version, id) = (row.get::<_, i64>(0).cast_unsigned(), row.get(1));
        if let Some(space) = row.get::<_, Option<String>>(2) {
            found.spaces.entry(space).or_default().insert(row.get(3), row.get(4));
        }
    }
    Ok((id, found))
}

/// Returns the last change of a store, and the records that changed after the change `held`.
/// Returns `None` if all records have to be read.
///
/// # Errors
/// Returns an error if the database cannot be used.
pub(crate) fn after(
    cluster: &Cluster,
    store: &str,
    held: ChangeMark,
) -> Result<Option<(ChangeMark, Changes)>> {
    let limit = i64::try_from(ROWS_MAX + 1).unwrap_or(i64::MAX);
    let rows = cluster.read(READING, CHANGED, &[&store, &held.version.cast_signed(), &limit])?;
    let last = rows.first().map_or(0, |row| row.get::<_, i64>(0)).cast_unsigned();
    let found = rows.first().and_then(mark_of).filter(|mark| mark.version == held.version);
    let is_chain = held.id.is_some() || held.version == 0 || last == held.version;
    if found.and_then(|mark| mark.id) != held.id || !is_chain {
        return Ok(None);
    }
    let (mut mark, mut changes) = (held, Changes::new());
    for row in rows.iter().skip(usize::from(found.is_some())) {
        let Some(next) = mark_of(row).filter(|next| next.version <= mark.version + 1) else {
            break;
        };
        let (space, key): (Option<String>, Option<Vec<u8>>) = (row.get(3), row.get(4));
        let (Some(space), Some(key)) = (space, key) else { return Ok(None) };
        changes.entry(space).or_default().insert(key, row.get(5));
        mark = next;
    }
    Ok((mark.version == last && rows.len() <= ROWS_MAX).then_some((mark, changes)))
}

/// Returns the change whose row an answer has, or `None` if it has no row.
fn mark_of(row: &Row) -> Option<ChangeMark> {
    let version: Option<i64> = row.get(1);
    version.map(|version| ChangeMark { version: version.cast_unsigned(), id: row.get(2) })
}
