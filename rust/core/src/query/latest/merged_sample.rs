//! Merges several rows that an entity has at its newest instant (F6, N5).
//!
//! Example: row 1 has the fields `a` and `b`, row 2 of the same instant has `b` and `c`. The sample
//! has `a` from row 1, and `b` and `c` from row 2.

use std::collections::{BTreeMap, VecDeque};

use super::value::{Value, ValueRef};
use crate::model::names::{FieldId, SeriesId};

/// Bytes of values and tags from which a sample takes no earlier row.
pub(super) const SAMPLE_BYTES_MAX: usize = 1 << 20;

/// Number of dead rows, and of replaced fields in a row, that may remain before a clean-up pass.
const DEAD_MIN: usize = 8;

/// The rows that make up an entity's newest sample, from the last written row back to
/// [`SAMPLE_BYTES_MAX`] bytes. Each row has only the parts that no later row replaced, so all rows
/// together are no larger than the sample. A row that is dropped stays dropped, even if later rows
/// shrink.
#[derive(Clone, Default)]
pub(super) struct MergedSample {
    /// Rows in write order, so their numbers ascend.
    rows: VecDeque<MergedRow>,
    /// The newest value of each field, and the number of its row.
    fields: BTreeMap<FieldId, (u64, Value)>,
    /// The number of the last row of each tag set, and the bytes of its tags.
    tag_sets: BTreeMap<SeriesId, (u64, usize)>,
    /// Bytes of all rows.
    bytes: usize,
    /// Number of the next row.
    next: u64,
    /// Number of dead rows: later rows have replaced all their parts.
    dead: usize,
}

#[derive(Clone)]
struct MergedRow {
    number: u64,
    series: SeriesId,
    /// Fields of the row. The values of some may be replaced.
    fields: Box<[FieldId]>,
    /// Number of live parts: values that are the newest of their field, and the tags unless a later
    /// row replaced them.
    live: usize,
    /// Bytes of the live parts.
    bytes: usize,
}

impl MergedSample {
    /// Adds the row that was written last. `tags_bytes` are the bytes of its tags.
    pub(super) fn add(
        &mut self,
        series: SeriesId,
        tags_bytes: usize,
        cells: impl IntoIterator<Item = (FieldId, Value)>,
    ) {
        let number = self.next;
        self.next += 1;
        let mut bytes = tags_bytes;
        if let Some((row, bytes)) = self.tag_sets.insert(series, (number, tags_bytes)) {
            self.release(row, bytes);
        }
        let mut fields = Vec::new();
        for (field, value) in cells {
            bytes += value.as_ref().bytes();
            fields.push(field);
            if let Some((row, replaced)) = self.fields.insert(field, (number, value)) {
                self.release(row, replaced.as_ref().bytes());
            }
        }
        self.bytes += bytes;
        let live = fields.len() + 1;
        self.rows.push_back(MergedRow { number, series, fields: fields.into(), live, bytes });
        while self.rows.front().is_some_and(|row| self.bytes - row.bytes >= SAMPLE_BYTES_MAX) {
            self.drop_oldest();
        }
        if self.dead >= DEAD_MIN && self.dead > self.rows.len() / 2 {
            self.rows.retain(|row| row.live > 0);
            self.dead = 0;
        }
    }

    /// Removes a part with this many bytes from a row.
    fn release(&mut self, number: u64, bytes: usize) {
        let at = self.rows.binary_search_by_key(&number, |row| row.number);
        let row = &mut self.rows[at.expect("a row stays while something is its own")];
        row.live -= 1;
        row.bytes -= bytes;
        self.bytes -= bytes;
        self.dead += usize::from(row.live == 0);
        if row.fields.len() > 4 * row.live + DEAD_MIN {
            let is_own = |field: &&FieldId| self.fields.get(field).is_some_and(|of| of.0 == number);
            row.fields = row.fields.iter().filter(is_own).copied().collect();
        }
    }

    fn drop_oldest(&mut self) {
        let Some(row) = self.rows.pop_front() else { return };
        self.bytes -= row.bytes;
        self.dead -= usize::from(row.live == 0);
        for field in &row.fields {
            if self.fields.get(field).is_some_and(|(of, _)| *of == row.number) {
                self.fields.remove(field);
            }
        }
        if self.tag_sets.get(&row.series).is_some_and(|(of, _)| *of == row.number) {
            self.tag_sets.remove(&row.series);
        }
    }

    /// Returns the values of the sample by field.
    pub(super) fn values(&self) -> impl Iterator<Item = (FieldId, ValueRef<'_>)> {
        self.fields.iter().map(|(field, (_, value))| (*field, value.as_ref()))
    }

    /// Returns the tag sets of the sample in write order. Tags of a later set win.
    pub(super) fn tag_sets(&self) -> impl Iterator<Item = SeriesId> {
        let is_last =
            |row: &&MergedRow| self.tag_sets.get(&row.series).is_some_and(|of| of.0 == row.number);
        self.rows.iter().filter(is_last).map(|row| row.series)
    }

    pub(super) fn tag_set_count(&self) -> usize {
        self.tag_sets.len()
    }

    /// Returns the rows in write order, each with its live values. The rows rebuild the sample if
    /// they are added to an empty sample.
    pub(super) fn rows(
        &self,
    ) -> impl Iterator<Item = (SeriesId, impl Iterator<Item = (FieldId, ValueRef<'_>)>)> {
        self.rows.iter().filter(|row| row.live > 0).map(|row| {
            let own = |field: &FieldId| {
                let (number, value) = self.fields.get(field)?;
                (*number == row.number).then(|| (*field, value.as_ref()))
            };
            (row.series, row.fields.iter().filter_map(own))
        })
    }

    /// Returns the approximate bytes of memory that the sample takes.
    pub(super) fn held_bytes(&self) -> usize {
        let fields: usize = self.rows.iter().map(|row| row.fields.len()).sum();
        let of_field = size_of::<(FieldId, (u64, Value))>();
        self.bytes + self.fields.len() * of_field + fields * size_of::<FieldId>()
    }

    /// Returns the bytes of the sample.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: usize) -> Value {
        Value::Text("x".repeat(bytes).into())
    }

    fn fields(sample: &MergedSample) -> Vec<FieldId> {
        sample.values().map(|(field, _)| field).collect()
    }

    fn rows(sample: &MergedSample) -> Vec<(SeriesId, Vec<FieldId>)> {
        let rows = sample.rows();
        rows.map(|(series, own)| (series, own.map(|(field, _)| field).collect())).collect()
    }

    #[test]
    fn f6_the_later_write_wins_each_field_and_tag_set() {
        let mut sample = MergedSample::default();
        sample.add(1, 5, [(1, Value::Float(1.0)), (2, Value::Bool(true))]);
        sample.add(2, 5, [(2, Value::Bool(false)), (3, text(3))]);
        assert_eq!(rows(&sample), [(1, vec![1]), (2, vec![2, 3])]);
        assert!(sample.values().eq([
            (1, ValueRef::Float(1.0)),
            (2, ValueRef::Bool(false)),
            (3, ValueRef::Text("xxx")),
        ]));
        sample.add(1, 5, []);
        assert!(sample.tag_sets().eq([2, 1]));
        assert_eq!(rows(&sample), [(1, vec![1]), (2, vec![2, 3]), (1, vec![])]);
        assert_eq!(sample.bytes(), 5 + 5 + 8 + 1 + 3);
    }

    #[test]
    fn n5_rows_join_until_the_sample_has_its_bytes_and_no_further() {
        let mut sample = MergedSample::default();
        let whole = SAMPLE_BYTES_MAX;
        sample.add(1, 0, [(1, text(10))]);
        sample.add(1, 0, [(2, text(whole - 1))]);
        assert_eq!(fields(&sample), [1, 2], "it had less than all before it took the first");
        sample.add(1, 0, [(3, text(1))]);
        assert_eq!(fields(&sample), [2, 3]);
        sample.add(1, 0, [(4, text(3 * whole))]);
        assert_eq!(fields(&sample), [4], "the last row is taken whole");
        sample.add(1, 0, [(4, text(1))]);
        assert_eq!(fields(&sample), [4], "what was left out does not come back");
    }

    #[test]
    fn n5_tags_count_so_tag_sets_without_end_stay_within_the_bound() {
        let mut sample = MergedSample::default();
        for series in 0..40_000 {
            sample.add(series, 100, [(1, Value::Float(0.0))]);
            assert!(sample.bytes() < SAMPLE_BYTES_MAX + 108);
        }
        assert!(sample.rows.len() <= SAMPLE_BYTES_MAX / 100 + 1, "{}", sample.rows.len());
        assert_eq!(sample.tag_sets().last(), Some(39_999));
    }

    #[test]
    fn tag_sets_in_turns_do_not_grow_it() {
        let mut sample = MergedSample::default();
        sample.add(9, 10, [(9, Value::Bool(true))]);
        for turn in 0..10_000 {
            sample.add(turn % 3, 10, [(turn % 2, Value::Float(1.0))]);
        }
        assert_eq!(sample.rows().count(), 4);
        assert!(sample.rows.len() <= 4 + DEAD_MIN, "{}", sample.rows.len());
    }

    #[test]
    fn n3_rows_that_share_nearly_all_fields_take_what_is_their_own() {
        let mut sample = MergedSample::default();
        for row in 0..500 {
            let shared = (0..400).map(|field| (field, Value::Float(0.0)));
            sample.add(1, 0, shared.chain([(1_000 + row, Value::Float(1.0))]));
        }
        assert_eq!(sample.values().count(), 900);
        let kept: usize = sample.rows.iter().map(|row| row.fields.len()).sum();
        assert!(kept < 500 * (4 + DEAD_MIN) + 400, "{kept}");
    }

    #[test]
    fn its_rows_added_to_nothing_give_it_again() {
        let mut sample = MergedSample::default();
        let mut seed = 1_u32;
        for _ in 0..500 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let cells = (0..seed >> 30).map(|at| {
                let field = (seed >> (5 * at)) % 16;
                (field, text((seed >> (7 * at)) as usize % 300_000))
            });
            let cells: BTreeMap<FieldId, Value> = cells.collect();
            sample.add(seed >> 20 & 3, 7, cells);
            let mut again = MergedSample::default();
            for (series, own) in sample.rows() {
                let own = own.map(|(field, value)| match value {
                    ValueRef::Text(value) => (field, Value::Text(value.into())),
                    _ => unreachable!("texts only"),
                });
                again.add(series, 7, own.collect::<Vec<_>>());
            }
            assert!(again.values().eq(sample.values()));
            assert!(again.tag_sets().eq(sample.tag_sets()));
        }
    }
}
