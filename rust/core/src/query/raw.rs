//! Raw rows: records of one instant share a row while their channels are disjoint (F4, H11).

use super::answer::EntityRows;
use super::collector::{Cells, Collector, Picked, Run};

/// Collects records as they are.
pub struct RawRows {
    entities: Vec<Records>,
}

/// Records of one entity in write order.
struct Records {
    times_ns: Vec<i64>,
    /// By channel: a value per record, NaN where it has none; may be shorter than `times_ns`.
    channels: Vec<Vec<f64>>,
    /// Whether the record has a value in any channel.
    has_value: Vec<bool>,
}

impl RawRows {
    /// A collector for this many entities and channels.
    #[must_use]
    pub fn new(entities: usize, channels: usize) -> Self {
        let records = || Records {
            times_ns: Vec::new(),
            channels: vec![Vec::new(); channels],
            has_value: Vec::new(),
        };
        Self { entities: std::iter::repeat_with(records).take(entities).collect() }
    }

    /// The rows of each entity.
    #[must_use]
    pub fn finish(self) -> Vec<EntityRows> {
        self.entities.into_iter().map(Records::into_rows).collect()
    }
}

impl Collector for RawRows {
    /// By run: the index of its first record among those of its entity.
    type Marks = Vec<usize>;

    fn records(&mut self, picked: &Picked<'_>) -> Self::Marks {
        let mut first_records = Vec::with_capacity(picked.runs.len());
        for Run { entity, rows } in &picked.runs {
            let records = &mut self.entities[*entity as usize];
            first_records.push(records.times_ns.len());
            records.times_ns.extend_from_slice(&picked.times_ns[rows.clone()]);
            records.has_value.resize(records.times_ns.len(), false);
        }
        first_records
    }

    fn values(
        &mut self,
        picked: &Picked<'_>,
        marks: &Self::Marks,
        channel: usize,
        cells: &Cells<'_>,
    ) {
        for (Run { entity, rows }, first) in picked.runs.iter().zip(marks) {
            let (values, row_of) = cells.within(rows);
            if values.is_empty() {
                continue;
            }
            let records = &mut self.entities[*entity as usize];
            let column = &mut records.channels[channel];
            if values.len() == rows.len() {
                column.resize(*first, f64::NAN);
                column.extend_from_slice(values);
                records.has_value[*first..first + rows.len()].fill(true);
                continue;
            }
            column.resize(first + rows.len(), f64::NAN);
            for (at, value) in values.iter().enumerate() {
                let record = first + row_of(at) - rows.start;
                column[record] = *value;
                records.has_value[record] = true;
            }
        }
    }
}

impl Records {
    fn into_rows(mut self) -> EntityRows {
        let records = self.times_ns.len();
        for column in &mut self.channels {
            if !column.is_empty() {
                column.resize(records, f64::NAN);
            }
        }
        let ascending = self.times_ns.is_sorted_by(|a, b| a < b);
        if ascending && self.has_value.iter().all(|has_value| *has_value) {
            return EntityRows { times_ns: self.times_ns, channels: self.channels };
        }
        self.merge()
    }

    /// Sorts by (time, write order) and lets records join the rows of their instant.
    fn merge(self) -> EntityRows {
        let mut order: Vec<usize> =
            (0..self.times_ns.len()).filter(|record| self.has_value[*record]).collect();
        order.sort_by_key(|record| self.times_ns[*record]);
        let mut rows =
            EntityRows { times_ns: Vec::new(), channels: vec![Vec::new(); self.channels.len()] };
        let columns: Vec<usize> =
            (0..self.channels.len()).filter(|at| !self.channels[*at].is_empty()).collect();
        for record in order {
            let time_ns = self.times_ns[record];
            let has = |column: &usize| !self.channels[*column][record].is_nan();
            let newest_row = rows.times_ns.len().wrapping_sub(1);
            let joins = rows.times_ns.last() == Some(&time_ns)
                && columns.iter().all(|at| !has(at) || rows.channels[*at][newest_row].is_nan());
            if !joins {
                rows.times_ns.push(time_ns);
                for at in &columns {
                    rows.channels[*at].push(f64::NAN);
                }
            }
            for at in columns.iter().filter(|at| has(at)) {
                if let Some(cell) = rows.channels[*at].last_mut() {
                    *cell = self.channels[*at][record];
                }
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::collector::offer;

    fn rows(records: &[(i64, [Option<f64>; 2])]) -> EntityRows {
        let mut raw = RawRows::new(1, 2);
        for record in records {
            offer(&mut raw, &[*record]);
        }
        let apart = raw.finish().remove(0);
        let mut raw = RawRows::new(1, 2);
        offer(&mut raw, records);
        let together = raw.finish().remove(0);
        for channel in 0..2 {
            assert_eq!(cells(&together, channel), cells(&apart, channel));
        }
        assert_eq!(together.times_ns, apart.times_ns);
        together
    }

    fn cells(rows: &EntityRows, channel: usize) -> Vec<Option<f64>> {
        rows.channels[channel].iter().map(|value| (!value.is_nan()).then_some(*value)).collect()
    }

    #[test]
    fn f4_disjoint_records_of_an_instant_share_a_row() {
        let rows = rows(&[(7, [Some(1.0), None]), (7, [None, Some(2.0)])]);
        assert_eq!(rows.times_ns, [7]);
        assert_eq!((cells(&rows, 0), cells(&rows, 1)), (vec![Some(1.0)], vec![Some(2.0)]));
    }

    #[test]
    fn f4_a_repeated_channel_opens_a_row_and_later_records_join_the_newest() {
        let rows = rows(&[
            (7, [Some(1.0), None]),
            (7, [Some(2.0), None]),
            (7, [None, Some(3.0)]),
            (7, [None, Some(4.0)]),
        ]);
        assert_eq!(rows.times_ns, [7, 7, 7]);
        assert_eq!(cells(&rows, 0), [Some(1.0), Some(2.0), None]);
        assert_eq!(cells(&rows, 1), [None, Some(3.0), Some(4.0)]);
    }

    #[test]
    fn f4_a_record_without_a_returned_channel_opens_no_row() {
        let rows = rows(&[(7, [None, None]), (8, [Some(1.0), None])]);
        assert_eq!(rows.times_ns, [8]);
        assert!(rows.channels[1].is_empty());
    }

    #[test]
    fn d13_late_records_take_their_place_in_time() {
        let rows = rows(&[(9, [Some(9.0), None]), (3, [Some(3.0), None])]);
        assert_eq!(rows.times_ns, [3, 9]);
        assert_eq!(cells(&rows, 0), [Some(3.0), Some(9.0)]);
    }
}
