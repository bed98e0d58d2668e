//! Reads. Each answer comes from one statement, and therefore from one snapshot.
//!
//! If the last read of a handle found no news, the next read first asks if there is news. That
//! question reads two rows. Only the full statement reads the hours of the log.

use std::sync::atomic::Ordering;

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::store::{LogEntry, LogView, Space, StoreCounts};
use tokio_postgres::Row;

use super::ClusterStore;
use super::known::ShownState;
use super::small::{lock, signed, unsigned};
use crate::identity::Id;

const WHAT: &str = "read the log";

/// The numbers, and the ids of the last entry, page and manifest.
const NEWS: &str = "SELECT generation, compacted, retention_seconds, pages, last, last_id, page_id, manifest_id \
    FROM plane JOIN head USING (plane) WHERE plane = $1";

/// The first row has the numbers, a manifest that is new to the reader, and the ids of the data that
/// the reader was shown. Entries follow from the reader's own position on; the entry at that position
/// is read only for its id. Bytes are bounded by `READ_BYTES_MAX`, which the planner need not know.
const VIEW: &str = "\
    WITH p AS (SELECT generation, compacted, retention_seconds, pages, last, manifest, \
        (SELECT id FROM names n WHERE n.plane = $1 AND n.page = $4) AS page_id \
        FROM plane JOIN head USING (plane) WHERE plane = $1) \
    SELECT 0::int8, page_id, CASE WHEN generation <> $3 THEN manifest END, \
        ARRAY[generation, compacted, retention_seconds, pages, last], \
        encode(substr(manifest, 3, 16), 'hex')::uuid FROM p \
    UNION ALL SELECT seq, id, CASE WHEN seq > $2 THEN sealed END, NULL, NULL FROM ( \
        SELECT *, sum(octet_length(sealed)) OVER (ORDER BY seq) - octet_length(sealed) AS before FROM ( \
            SELECT seq, id, sealed FROM log WHERE plane = $1 \
            AND seq >= greatest($2, (SELECT CASE WHEN compacted > $2 THEN compacted + 1 ELSE 0 END FROM p)) \
            ORDER BY seq LIMIT 1024) first) counted WHERE before < 4194304";

const GET: &str = "\
    SELECT 0::int8, NULL, ARRAY[compacted, last] FROM plane JOIN head USING (plane) WHERE plane = $1 \
    UNION ALL SELECT seq, sealed, NULL FROM log WHERE plane = $1 AND seq = ANY ($2::int8[])";

const NUMBERS: &str = "SELECT last, rows, vals, rejected, batches, log_bytes, \
    coalesce((SELECT sum(octet_length(page_bytes)) FROM names n WHERE n.plane = $1), 0)::int8 \
        + coalesce(octet_length(manifest), 0), \
    coalesce((SELECT sum(bytes) FROM segment s WHERE s.plane = $1 AND removed_at IS NULL), 0)::int8, \
    (SELECT count(*) FROM segment s WHERE s.plane = $1 AND removed_at IS NULL), generation, series \
    FROM plane JOIN head USING (plane) WHERE plane = $1";

const IMPORT: &str = "SELECT position FROM import WHERE plane = $1 AND key = $2";

/// Numbers of a plane.
pub(crate) struct PlaneNumbers {
    pub(crate) last: u64,
    pub(crate) counts: StoreCounts,
    pub(crate) space: Space,
    pub(crate) segments: u64,
    pub(crate) generation: u64,
    pub(crate) series: u64,
}

impl ClusterStore {
    pub(super) fn look(&self, after: u64, generation: u64) -> Result<LogView> {
        let timeline = self.proven()?;
        if !self.expects_news.load(Ordering::Relaxed)
            && let Some(view) = self.nothing_new(after, generation)?
            && self.cluster.timeline()? == timeline
        {
            return Ok(view);
        }
        let Some(view) = self.news(after, generation, timeline)? else {
            return self.look(after, generation);
        };
        let is_news = view.manifest.is_some() || view.last > after;
        self.expects_news.store(is_news, Ordering::Relaxed);
        Ok(view)
    }

    /// Returns the view of a reader that has seen everything, or `None` if there is news.
    fn nothing_new(&self, after: u64, generation: u64) -> Result<Option<LogView>> {
        let known = *lock(&self.known);
        let rows = self.cluster.read(WHAT, NEWS, &[&self.plane])?;
        let row = rows.first().ok_or_else(|| self.missing())?;
        let number = |at: usize| unsigned(row.get(at));
        let (found, compacted, pages, last) = (number(0), number(1), number(3), number(4));
        let has_pages = known.page.is_none_or(|(page, _)| page == pages);
        if (found, last) != (generation, after) || !has_pages {
            return Ok(None);
        }
        let (entry, page, manifest) = (row.get(5), row.get(6), row.get(7));
        let shown = ShownState { generation, manifest, page, last, compacted, after, entry };
        if !shown.continues(&known) {
            return Err(self.forked());
        }
        let retention_seconds = number(2);
        Ok(Some(LogView { generation, compacted, retention_seconds, last, ..LogView::default() }))
    }

    /// Returns `None` if the primary was replaced meanwhile: its successor's history is not proven.
    fn news(&self, after: u64, generation: u64, timeline: u32) -> Result<Option<LogView>> {
        let known = *lock(&self.known);
        let page = known.page.map_or(0, |(page, _)| signed(page));
        let (at, of) = (signed(after), signed(generation));
        let rows = self.cluster.read(WHAT, VIEW, &[&self.plane, &at, &of, &page])?;
        let first = rows.first().filter(|row| is_numbers(row)).ok_or_else(|| self.missing())?;
        let numbers: Vec<i64> = first.get(3);
        let [found, compacted, retention_seconds, pages, last] = numbers[..] else {
            return Err(Error::Corrupt { what: "the store's head record" });
        };
        let [found, compacted, pages, last] = [found, compacted, pages, last].map(unsigned);
        let manifest: Option<Vec<u8>> = first.get(2);
        let mut entries: Vec<(LogEntry, Id)> = rows[1..].iter().map(entry_of).collect();
        entries.sort_unstable_by_key(|(entry, _)| entry.sequence);
        let at = entries.iter().find(|(entry, _)| entry.sequence == after);
        let (entry, page, manifest_id) = (at.map(|(_, id)| *id), first.get(1), first.get(4));
        let shown = ShownState {
            generation: found,
            manifest: manifest_id,
            page,
            last,
            compacted,
            after,
            entry,
        };
        let mut proven = lock(&self.shown);
        if self.cluster.timeline()? != timeline {
            return Ok(None);
        }
        if !shown.continues(&known) {
            return Err(self.forked());
        }
        entries.retain(|(entry, _)| entry.sequence > after);
        for (entry, id) in &entries {
            proven.note(entry.sequence, *id);
        }
        proven.forget_until(compacted);
        self.note(&entries, manifest.as_deref(), found)?;
        let entries: Vec<_> = entries.into_iter().map(|(entry, _)| entry).collect();
        let is_news = manifest.is_some() || last > after;
        Ok(Some(LogView {
            generation: found,
            manifest,
            compacted,
            retention_seconds: unsigned(retention_seconds),
            pages: if is_news { pages } else { 0 },
            last,
            entries,
        }))
    }

    fn note(
        &self,
        entries: &[(LogEntry, Id)],
        manifest: Option<&[u8]>,
        generation: u64,
    ) -> Result<()> {
        let mut known = lock(&self.known);
        if let Some((entry, id)) = entries.last() {
            known.note_entry(entry.sequence, *id);
        }
        if let Some(manifest) = manifest {
            known.note_manifest(generation, Id::of_sealed(manifest, "the sealed manifest")?);
        }
        Ok(())
    }

    pub(super) fn entries_after(&self, after: u64) -> Result<Vec<LogEntry>> {
        let generation = lock(&self.known).manifest.map_or(0, |(generation, _)| generation);
        Ok(self.look(after, generation)?.entries)
    }

    pub(super) fn entries_at(&self, sequences: &[u64]) -> Result<Vec<LogEntry>> {
        let wanted: Vec<i64> = sequences.iter().copied().map(signed).collect();
        let rows = self.cluster.read(WHAT, GET, &[&self.plane, &wanted])?;
        let first = rows.first().filter(|row| is_numbers(row)).ok_or_else(|| self.missing())?;
        let numbers: Vec<i64> = first.get(2);
        let compacted = numbers.first().copied().map_or(0, unsigned);
        if sequences.iter().any(|sequence| (1..=compacted).contains(sequence)) {
            return Err(Error::Stale);
        }
        let entry = |row: &Row| LogEntry { sequence: unsigned(row.get(0)), sealed: row.get(1) };
        let mut entries: Vec<LogEntry> = rows[1..].iter().map(entry).collect();
        entries.sort_unstable_by_key(|entry| entry.sequence);
        if entries.iter().map(|entry| &entry.sequence).eq(sequences) {
            return Ok(entries);
        }
        Err(Error::Corrupt { what: "the log" })
    }

    pub(crate) fn numbers(&self) -> Result<PlaneNumbers> {
        let rows = self.cluster.read("read the counts", NUMBERS, &[&self.plane])?;
        let row = rows.first().ok_or_else(|| self.missing())?;
        let number = |at: usize| unsigned(row.get(at));
        let log_bytes = number(5);
        let counts = StoreCounts {
            rows: number(1),
            values: number(2),
            rejected: number(3),
            batches: number(4),
            log_bytes,
        };
        let space = Space { log: log_bytes, tables: number(6), segments: number(7), free: 0 };
        let (generation, series) = (number(9), number(10));
        Ok(PlaneNumbers { last: number(0), counts, space, segments: number(8), generation, series })
    }

    pub(super) fn import_position(&self, key: [u8; 16]) -> Result<Option<Vec<u8>>> {
        let rows = self.cluster.read("read an import", IMPORT, &[&self.plane, &Id(key)])?;
        Ok(rows.first().map(|row| row.get(0)))
    }
}

/// Returns true for the row of numbers. After a plane is destroyed, its entries may remain, but its
/// numbers are gone.
fn is_numbers(row: &Row) -> bool {
    row.get::<_, i64>(0) == 0
}

fn entry_of(row: &Row) -> (LogEntry, Id) {
    let sealed: Option<Vec<u8>> = row.get(2);
    (LogEntry { sequence: unsigned(row.get(0)), sealed: sealed.unwrap_or_default() }, row.get(1))
}
