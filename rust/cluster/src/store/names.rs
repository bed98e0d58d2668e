//! Pages of names: appended by compare-and-swap, and read after a known page.

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::store::{FirstIds, NamesPage, NewNames, decode_names, encode_names};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::ClusterStore;
use super::small::{lock, signed, unsigned};
use crate::failure::StatementFailure;
use crate::identity::Id;

const READING: &str = "read names";
const WRITING: &str = "append names";

/// Appends a page, if `$2` is still the last page and the next ids are still `$3` and `$4`. The last
/// page must have the id that this handle knows, if it knows one. So an id proves all pages before it.
const APPEND: &str = "\
    WITH p AS (UPDATE plane SET pages = pages + 1, page_id = $7, series = series + $5, fields = fields + $6 \
        WHERE plane = $1 AND pages = $2 AND series = $3 AND fields = $4 \
        AND ($9::uuid IS NULL OR page_id = $9) \
        AND (open_keys IS NULL OR $10::uuid = ANY (open_keys)) \
        AND EXISTS (SELECT FROM head WHERE head.plane = $1) RETURNING pages) \
    INSERT INTO names SELECT $1, p.pages, $7, $8 FROM p RETURNING page";
const STATE: &str = "SELECT pages, series, fields, (SELECT id FROM names n WHERE n.plane = $1 AND n.page = $2), \
    (SELECT id FROM names n WHERE n.plane = $1 AND n.page = $2 + 1), \
    coalesce($3::uuid = ANY (plane.open_keys), true) FROM plane JOIN head USING (plane) WHERE plane = $1";
const AFTER: &str = "\
    SELECT page, id, page_bytes FROM ( \
        SELECT *, sum(octet_length(page_bytes)) OVER (ORDER BY page) - octet_length(page_bytes) AS before FROM ( \
            SELECT page, id, page_bytes FROM names WHERE plane = $1 AND page >= $2 ORDER BY page LIMIT 1024 \
        ) first) counted WHERE before < 4194304 ORDER BY page";

/// The state of names in the database.
struct NamesState {
    pages: u64,
    next: FirstIds,
    /// Ids of the requested page and of the next page.
    ids: [Option<Id>; 2],
    is_key_open: bool,
}

impl ClusterStore {
    pub(super) fn append_page(&self, after: u64, names: &NewNames) -> Result<Option<FirstIds>> {
        let known = lock(&self.known).next_ids;
        let key = self.keys.id_of(&names.sealed_names);
        let first = match known {
            Some((page, next)) if page == after => next,
            _ => {
                let state = self.names_state(after, key)?;
                if state.pages != after {
                    return Ok(None);
                }
                state.next
            }
        };
        let next = first.after(names)?;
        let id = Id::of_sealed(&names.sealed_names, "a sealed name")?;
        let page = encode_names(&NamesPage::new(after + 1, first, names));
        let [series, fields] = [first.series, first.field].map(i64::from);
        let counts = [next.series - first.series, next.field - first.field].map(i64::from);
        let at = signed(after);
        let last = lock(&self.known).page.filter(|(page, _)| *page == after).map(|(_, id)| id);
        let parameters: [&(dyn ToSql + Sync); 10] =
            [&self.plane, &at, &series, &fields, &counts[0], &counts[1], &id, &page, &last, &key];
        let rows = self.cluster.change_surely(WRITING, APPEND, &parameters)?;
        let is_stored = match rows {
            Ok(rows) if !rows.is_empty() => true,
            // If no row was stored, an earlier attempt whose answer was lost may have stored the
            // page.
            Ok(_) | Err(StatementFailure::Duplicate) => {
                let state = self.names_state(after, key)?;
                let is_stored = state.ids[1] == Some(id);
                if !is_stored && !state.is_key_open {
                    return Err(self.refused_key(WRITING));
                }
                is_stored
            }
            Err(failure) => return Err(failure.of_change(WRITING)),
        };
        let mut known = lock(&self.known);
        known.next_ids = None;
        if !is_stored {
            return Ok(None);
        }
        known.next_ids = Some((after + 1, next));
        known.note_page(after + 1, id);
        Ok(Some(first))
    }

    /// # Errors
    /// Returns [`Error::Poisoned`] if the database has another page at the handle's position.
    fn names_state(&self, page: u64, key: Id) -> Result<NamesState> {
        let rows = self.cluster.read(READING, STATE, &[&self.plane, &signed(page), &key])?;
        let row = rows.first().ok_or_else(|| self.missing())?;
        let id = |at: usize| row.get::<_, Option<Id>>(at);
        let next = |at: usize| u32::try_from(row.get::<_, i64>(at));
        let (series, field) =
            next(1).ok().zip(next(2).ok()).ok_or(Error::Corrupt { what: "the names" })?;
        let known = lock(&self.known).page;
        if known.is_some_and(|(known, own)| known == page && id(3) != Some(own)) {
            return Err(self.forked());
        }
        let next = FirstIds { series, field };
        let (pages, ids) = (unsigned(row.get(0)), [id(3), id(4)]);
        Ok(NamesState { pages, next, ids, is_key_open: row.get(5) })
    }

    pub(super) fn pages_after(&self, after: u64) -> Result<Vec<NamesPage>> {
        let rows = self.cluster.read(READING, AFTER, &[&self.plane, &signed(after.max(1))])?;
        let known = lock(&self.known).page;
        let mut pages = Vec::new();
        for row in &rows {
            let (page, id) = (unsigned(row.get(0)), row.get(1));
            if known.is_some_and(|(known, own)| known == page && own != id) {
                return Err(self.forked());
            }
            if page > after {
                pages.push(decode_names(page, row.get(2))?);
                lock(&self.known).note_page(page, id);
            }
        }
        // The handle's page is gone.
        let has_own = |own: u64| rows.iter().any(|row: &Row| unsigned(row.get(0)) == own);
        if known.is_some_and(|(known, _)| known == after && !has_own(known)) {
            return Err(self.forked());
        }
        Ok(pages)
    }
}
