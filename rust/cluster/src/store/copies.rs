//! Whole planes, for backups and restores.

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::store::{
    Cursor, FirstIds, LogEntry, NamesPage, StoreCounts, StoreSnapshot, decode_cursors,
    encode_cursors, encode_names,
};
use tokio_postgres::types::ToSql;

use super::ClusterStore;
use super::small::{lock, signed, unsigned};
use crate::identity::Id;
use crate::partitions;

const READING: &str = "read the plane";
const LOADING: &str = "load a plane";

const WHOLE: &str = "\
    SELECT last, pages, rows, vals, rejected, batches, log_bytes, compacted, generation, retention_seconds, \
        series, fields, manifest, \
        ARRAY(SELECT key FROM import i WHERE i.plane = $1 ORDER BY moved), \
        ARRAY(SELECT position FROM import i WHERE i.plane = $1 ORDER BY moved) \
    FROM plane JOIN head USING (plane) WHERE plane = $1";

/// A plane that is being loaded has no key yet, and no other process knows it.
const PUT_PAGES: &str = "\
    INSERT INTO names SELECT $1, u.page, u.id, u.bytes FROM plane, \
    unnest($2::int8[], $3::uuid[], $4::bytea[]) AS u(page, id, bytes) WHERE plane = $1 AND wrapped_key IS NULL";
const PUT_ENTRIES: &str = "\
    INSERT INTO log SELECT $2, $1, u.seq, u.id, u.sealed FROM plane, \
    unnest($3::int8[], $4::uuid[], $5::bytea[]) AS u(seq, id, sealed) WHERE plane = $1 AND wrapped_key IS NULL";
const PUT_WHOLE: &str = "\
    WITH p AS (UPDATE plane SET pages = $2, series = $3, fields = $4, generation = $5, compacted = $6, \
            retention_seconds = $7, manifest = $8, manifest_id = $17, \
            page_id = (SELECT id FROM names n WHERE n.plane = $1 AND n.page = $2) WHERE plane = $1 AND wrapped_key IS NULL RETURNING plane), \
        i AS (INSERT INTO import SELECT p.plane, u.key, u.position, u.n FROM p, \
            unnest($15::uuid[], $16::bytea[]) WITH ORDINALITY AS u(key, position, n)) \
    UPDATE head SET last = $9, rows = $10, vals = $11, rejected = $12, batches = $13, log_bytes = $14, \
        last_id = (SELECT id FROM log l WHERE l.plane = $1 AND l.seq = $9) \
    FROM p WHERE head.plane = p.plane RETURNING 1";

const LOOK: &str = "\
    SELECT pages, compacted, last, \
        (SELECT count(*) FROM log l WHERE l.plane = $1 AND l.seq > compacted AND l.seq <= last), \
        (SELECT coalesce(sum(octet_length(sealed)), 0)::int8 FROM log l WHERE l.plane = $1 AND l.seq > compacted), \
        log_bytes, generation, manifest IS NOT NULL \
    FROM plane JOIN head USING (plane) WHERE plane = $1";

impl ClusterStore {
    pub(super) fn whole(&self) -> Result<StoreSnapshot> {
        let rows = self.cluster.read(READING, WHOLE, &[&self.plane])?;
        let row = rows.first().ok_or_else(|| self.missing())?;
        let number = |at: usize| unsigned(row.get(at));
        let counts = StoreCounts {
            rows: number(2),
            values: number(3),
            rejected: number(4),
            batches: number(5),
            log_bytes: number(6),
        };
        let next = |at: usize| u32::try_from(row.get::<_, i64>(at)).ok();
        let next_ids = next(10).zip(next(11)).map(|(series, field)| FirstIds { series, field });
        let (keys, positions): (Vec<Id>, Vec<Vec<u8>>) = (row.get(13), row.get(14));
        let cursors = keys.into_iter().zip(positions);
        let cursors = cursors.map(|(key, position)| Cursor { key: key.0, position }).collect();
        Ok(StoreSnapshot {
            log_last: number(0),
            names_last: number(1),
            counts,
            compacted: number(7),
            generation: number(8),
            retention_seconds: number(9),
            next_ids: next_ids.ok_or(Error::Corrupt { what: "the store's head record" })?,
            cursors: encode_cursors(cursors),
            manifest: row.get(12),
        })
    }

    pub(super) fn put_pages(&self, pages: &[NamesPage]) -> Result<()> {
        let numbers: Vec<i64> = pages.iter().map(|page| signed(page.sequence)).collect();
        let ids = pages.iter().map(|page| Id::of_sealed(&page.sealed_names, "a sealed name"));
        let ids: Vec<Id> = ids.collect::<Result<_>>()?;
        let bytes: Vec<Vec<u8>> = pages.iter().map(encode_names).collect();
        let parameters: [&(dyn ToSql + Sync); 4] = [&self.plane, &numbers, &ids, &bytes];
        self.cluster.change(LOADING, PUT_PAGES, &parameters).map(drop)
    }

    pub(super) fn put_entries(&self, entries: &[LogEntry]) -> Result<()> {
        let sequences: Vec<i64> = entries.iter().map(|entry| signed(entry.sequence)).collect();
        let ids = entries.iter().map(|entry| Id::of_sealed(&entry.sealed, "a sealed block"));
        let ids: Vec<Id> = ids.collect::<Result<_>>()?;
        let sealed: Vec<&[u8]> = entries.iter().map(|entry| &entry.sealed[..]).collect();
        let slot = self.cluster.wait(|pool| async move {
            let connection = pool.own().await?;
            let slot = partitions::slot_of(pool.seen.database_now_us());
            partitions::make(&connection, slot).await?;
            connection.keep();
            Ok(slot)
        })?;
        let parameters: [&(dyn ToSql + Sync); 5] = [&self.plane, &slot, &sequences, &ids, &sealed];
        self.cluster.change(LOADING, PUT_ENTRIES, &parameters).map(drop)
    }

    pub(super) fn put_whole(&self, snapshot: &StoreSnapshot) -> Result<()> {
        let StoreSnapshot { counts, next_ids, .. } = snapshot;
        let cursors = decode_cursors(&snapshot.cursors)?;
        let keys: Vec<Id> = cursors.iter().map(|cursor| Id(cursor.key)).collect();
        let positions: Vec<&[u8]> = cursors.iter().map(|cursor| &cursor.position[..]).collect();
        let [pages, generation] = [snapshot.names_last, snapshot.generation].map(signed);
        let [series, fields] = [next_ids.series, next_ids.field].map(i64::from);
        let [compacted, retention] = [snapshot.compacted, snapshot.retention_seconds].map(signed);
        let last = signed(snapshot.log_last);
        let [rows, values, rejected] = [counts.rows, counts.values, counts.rejected].map(signed);
        let [batches, log_bytes] = [counts.batches, counts.log_bytes].map(signed);
        let manifest = snapshot.manifest.as_deref();
        let manifest_id = manifest.map(|sealed| Id::of_sealed(sealed, "the sealed manifest"));
        let manifest_id = manifest_id.transpose()?;
        let parameters: [&(dyn ToSql + Sync); 17] = [
            &self.plane,
            &pages,
            &series,
            &fields,
            &generation,
            &compacted,
            &retention,
            &snapshot.manifest,
            &last,
            &rows,
            &values,
            &rejected,
            &batches,
            &log_bytes,
            &keys,
            &positions,
            &manifest_id,
        ];
        let loaded = self.cluster.change(LOADING, PUT_WHOLE, &parameters)?;
        if loaded.is_empty() { Err(self.missing()) } else { Ok(()) }
    }

    pub(super) fn look_at_all(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let rows = self.cluster.read(READING, LOOK, &[&self.plane])?;
        let row = rows.first().ok_or_else(|| self.missing())?;
        let number = |at: usize| unsigned(row.get(at));
        let (pages, compacted, last) = (number(0), number(1), number(2));
        if last.saturating_sub(compacted) != number(3) {
            found.push(format!("the log has {} of the entries {compacted} to {last}", number(3)));
        }
        if number(4) != number(5) {
            found.push(format!("the log has {} bytes and counts {}", number(4), number(5)));
        }
        if (number(6) > 0) != row.get::<_, bool>(7) {
            found.push("the manifest and its generation contradict each other".to_owned());
        }
        let mut after = 0;
        while after < pages {
            let some = match self.pages_after(after) {
                Ok(some) => some,
                Err(Error::Corrupt { what }) => {
                    found.push(format!("{what} after page {after} are damaged"));
                    break;
                }
                Err(error) => return Err(error),
            };
            let Some(end) = some.last().map(|page| page.sequence) else { break };
            if end != after + some.len() as u64 {
                found.push(format!("pages of names are missing between {after} and {end}"));
            }
            after = end;
        }
        if after < pages && found.is_empty() {
            found.push(format!("there are {after} pages of names instead of {pages}"));
        }
        lock(&self.known).next_ids = None;
        Ok(found)
    }
}
