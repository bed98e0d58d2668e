//! Proof that a new primary has all that a handle was shown.
//!
//! A primary that was replaced may show entries that its successor never gets. A batch that is sent
//! again can then have the same place on both, behind other entries. So the id of the last entry
//! proves nothing about the entries before it: each is compared once under each new timeline.

use fleetcast_core::model::error::{Error, Result};
use tokio_postgres::Row;

use super::ClusterStore;
use super::known::{IDS_MAX, ShownEntries, ShownState, Watermarks};
use super::small::{lock, signed, unsigned};
use crate::identity::Id;

const WHAT: &str = "compare the log with the last primary's";

const STATE: &str = "\
    SELECT 0::int8, (SELECT id FROM names n WHERE n.plane = $1 AND n.page = $2), \
        ARRAY[generation, compacted, last], manifest_id FROM plane JOIN head USING (plane) WHERE plane = $1 \
    UNION ALL SELECT seq, id, NULL, NULL FROM ( \
        SELECT seq, id FROM log WHERE plane = $1 AND seq >= $3 ORDER BY seq LIMIT $4) shown";

impl ClusterStore {
    /// Returns the newest timeline, whose history has all that this handle was shown. An answer
    /// continues what was shown if the newest timeline is still the same behind it.
    ///
    /// # Errors
    /// Returns [`Error::Poisoned`] if the history has something else.
    pub(super) fn proven(&self) -> Result<u32> {
        loop {
            let timeline = self.cluster.timeline()?;
            let shown = lock(&self.shown);
            if shown.timeline == timeline {
                return Ok(timeline);
            }
            let first = shown.first;
            drop(shown);
            let known = *lock(&self.known);
            let is_new = known == Watermarks::default();
            let rows = if is_new { Vec::new() } else { self.state_from(first, &known)? };
            let mut shown = lock(&self.shown);
            // An answer of the last primary may have been shown meanwhile.
            if self.cluster.timeline()? != timeline || *lock(&self.known) != known {
                continue;
            }
            if !is_new && !self.has(&rows, &known, &shown)? {
                return Err(self.forked());
            }
            shown.timeline = timeline;
            return Ok(timeline);
        }
    }

    /// Returns the proven timeline as [`timeline!`] has it.
    pub(super) fn timeline_text(&self) -> String {
        format!("{:08X}", lock(&self.shown).timeline)
    }

    fn state_from(&self, first: u64, known: &Watermarks) -> Result<Vec<Row>> {
        let page = known.page.map_or(0, |(page, _)| signed(page));
        let (first, most) = (signed(first), signed(IDS_MAX as u64));
        self.cluster.read(WHAT, STATE, &[&self.plane, &page, &first, &most])
    }

    /// Returns true if the rows of [`STATE`] have all that was shown.
    fn has(&self, rows: &[Row], known: &Watermarks, shown: &ShownEntries) -> Result<bool> {
        let position = |row: &Row| unsigned(row.get(0));
        let numbers = rows.iter().find(|row| position(row) == 0).ok_or_else(|| self.missing())?;
        let all: Vec<i64> = numbers.get(2);
        let [generation, compacted, last] = all[..] else {
            return Err(Error::Corrupt { what: "the store's head record" });
        };
        let [generation, compacted, last] = [generation, compacted, last].map(unsigned);
        let mut log: Vec<(u64, Id)> = rows
            .iter()
            .filter(|row| position(row) > 0)
            .map(|row| (position(row), row.get(1)))
            .collect();
        log.sort_unstable_by_key(|(sequence, _)| *sequence);
        let (page, manifest) = (numbers.get(1), numbers.get(3));
        // The entry that was shown last is the last of `shown`.
        let state =
            ShownState { generation, manifest, page, last, compacted, after: 0, entry: None };
        Ok(state.continues(known) && shown.are_in(&log, compacted))
    }
}
