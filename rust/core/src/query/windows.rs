//! Aggregated rows: one per window that has a sample, labelled by its start (H12, H15).

use std::collections::HashMap;
use std::ops::Range;

use super::answer::EntityRows;
use super::collector::{Cells, Collector, Picked, Run};
use crate::aggregate::{Aggregation, Fold, Interval};

/// Folds records into epoch windows as they come.
pub struct WindowRows {
    interval_ns: i64,
    aggregation: Aggregation,
    entities: Vec<Windows>,
}

/// Windows of one entity, in the order they were first touched.
struct Windows {
    index_of: HashMap<i64, usize>,
    numbers: Vec<i64>,
    /// By channel, then window; may be shorter than `numbers`.
    folds: Vec<Vec<Fold>>,
}

impl WindowRows {
    /// A collector for this many entities and channels.
    #[must_use]
    pub fn new(
        entities: usize,
        channels: usize,
        interval: Interval,
        aggregation: Aggregation,
    ) -> Self {
        let windows = || Windows {
            index_of: HashMap::new(),
            numbers: Vec::new(),
            folds: vec![Vec::new(); channels],
        };
        Self {
            interval_ns: interval.ns(),
            aggregation,
            entities: std::iter::repeat_with(windows).take(entities).collect(),
        }
    }

    /// The rows of each entity.
    #[must_use]
    pub fn finish(self) -> Vec<EntityRows> {
        let rows = |windows: &Windows| windows.rows(self.interval_ns, self.aggregation);
        self.entities.iter().map(rows).collect()
    }
}

/// Consecutive rows of a table that fall into one window of an entity.
pub struct Piece {
    entity: u32,
    window: usize,
    rows: Range<usize>,
}

impl Collector for WindowRows {
    type Marks = Vec<Piece>;

    fn records(&mut self, picked: &Picked<'_>) -> Self::Marks {
        let mut pieces = Vec::with_capacity(picked.runs.len());
        for Run { entity, rows } in &picked.runs {
            let mut start = rows.start;
            while start < rows.end {
                let number = picked.times_ns[start].div_euclid(self.interval_ns);
                let start_ns = number.saturating_mul(self.interval_ns);
                let window_ns = start_ns..start_ns.saturating_add(self.interval_ns);
                let within = |time_ns: &&i64| window_ns.contains(time_ns);
                let more = picked.times_ns[start + 1..rows.end].iter().take_while(within).count();
                let window = self.entities[*entity as usize].window(number);
                pieces.push(Piece { entity: *entity, window, rows: start..start + 1 + more });
                start += 1 + more;
            }
        }
        pieces
    }

    fn values(
        &mut self,
        picked: &Picked<'_>,
        marks: &Self::Marks,
        channel: usize,
        cells: &Cells<'_>,
    ) {
        let aggregation = self.aggregation;
        for Piece { entity, window, rows } in marks {
            let (values, row_of) = cells.within(rows);
            if !values.is_empty() {
                let fold = self.fold(*entity, channel, *window);
                fold.add_for(aggregation, values, |at| picked.times_ns[row_of(at)]);
            }
        }
    }

    fn takes_hours(&self) -> Option<Aggregation> {
        (self.interval_ns == Interval::OneHour.ns()).then_some(self.aggregation)
    }

    fn hour(&mut self, entity: u32, start_ns: i64, channel: usize, fold: &Fold) {
        let number = start_ns.div_euclid(self.interval_ns);
        let window = self.entities[entity as usize].window(number);
        self.fold(entity, channel, window).merge(fold);
    }
}

impl WindowRows {
    fn fold(&mut self, entity: u32, channel: usize, window: usize) -> &mut Fold {
        let folds = &mut self.entities[entity as usize].folds[channel];
        if folds.len() <= window {
            folds.resize(window + 1, Fold::default());
        }
        &mut folds[window]
    }
}

impl Windows {
    /// Index of a window by its number, which is its start over the interval.
    fn window(&mut self, number: i64) -> usize {
        let fresh = self.numbers.len();
        if fresh > 0 && self.numbers[fresh - 1] == number {
            return fresh - 1;
        }
        let at = *self.index_of.entry(number).or_insert(fresh);
        if at == fresh {
            self.numbers.push(number);
        }
        at
    }

    fn rows(&self, interval_ns: i64, aggregation: Aggregation) -> EntityRows {
        let result = |channel: &Vec<Fold>, at: usize| {
            channel.get(at).and_then(|fold| fold.result(aggregation)).unwrap_or(f64::NAN)
        };
        let touched = |at: usize| self.folds.iter().any(|channel| !result(channel, at).is_nan());
        let mut order: Vec<usize> = (0..self.numbers.len()).filter(|at| touched(*at)).collect();
        order.sort_unstable_by_key(|at| self.numbers[*at]);
        let channel = |channel: &Vec<Fold>| {
            let values: Vec<f64> = order.iter().map(|at| result(channel, *at)).collect();
            if values.iter().all(|value| value.is_nan()) { Vec::new() } else { values }
        };
        EntityRows {
            times_ns: order.iter().map(|at| self.numbers[*at] * interval_ns).collect(),
            channels: self.folds.iter().map(channel).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::collector::offer;

    const SECOND_NS: i64 = 1_000_000_000;

    fn rows(aggregation: Aggregation, samples: &[(i64, f64)]) -> EntityRows {
        let mut windows = WindowRows::new(1, 1, Interval::OneMinute, aggregation);
        let rows = samples.iter().map(|(seconds, value)| (seconds * SECOND_NS, [Some(*value)]));
        offer(&mut windows, &rows.collect::<Vec<_>>());
        windows.finish().remove(0)
    }

    #[test]
    fn windows_are_epoch_aligned_labelled_by_their_start_and_ascending() {
        let rows = rows(Aggregation::Mean, &[(125, 4.0), (59, 1.0), (60, 2.0), (61, 4.0)]);
        assert_eq!(rows.times_ns, [0, 60 * SECOND_NS, 120 * SECOND_NS]);
        assert_eq!(rows.channels[0], [1.0, 3.0, 4.0]);
    }

    #[test]
    fn f5_every_stored_value_is_a_sample() {
        let rows = rows(Aggregation::Mean, &[(1, 1.0), (1, 1.0), (1, 4.0)]);
        assert_eq!(rows.channels[0], [2.0]);
    }

    #[test]
    fn h12_a_window_touched_only_by_records_without_a_channel_is_no_row() {
        let mut windows = WindowRows::new(1, 1, Interval::OneMinute, Aggregation::Min);
        offer(&mut windows, &[(SECOND_NS, [None])]);
        assert!(windows.finish()[0].times_ns.is_empty());
    }
}
