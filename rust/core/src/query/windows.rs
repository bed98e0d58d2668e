//! Aggregated rows: one per window that has a sample, labelled by its start (H12, H15).

use std::collections::HashMap;

use super::answer::EntityRows;
use super::select::{Collector, PickedRow};
use crate::aggregate::{Aggregation, Fold, Interval};

/// Folds records into epoch windows as they come.
pub struct WindowRows {
    interval_ns: i64,
    aggregation: Aggregation,
    entities: Vec<Windows>,
}

/// Windows of one entity, in the order they were first touched.
struct Windows {
    index_of: HashMap<i64, u32>,
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

impl Collector for WindowRows {
    fn record(&mut self, entity: u32, time_ns: i64) -> u32 {
        let windows = &mut self.entities[entity as usize];
        let number = time_ns.div_euclid(self.interval_ns);
        let newest = windows.numbers.len().checked_sub(1);
        if let Some(newest) = newest.filter(|at| windows.numbers[*at] == number) {
            return index(newest);
        }
        let fresh = index(windows.numbers.len());
        let at = *windows.index_of.entry(number).or_insert(fresh);
        if at == fresh {
            windows.numbers.push(number);
        }
        at
    }

    fn value(&mut self, row: &PickedRow, channel: usize, value: f64) {
        let window = row.record as usize;
        self.fold(row.entity, channel, window).add(row.time_ns, value);
    }

    fn takes_hours(&self) -> Option<Aggregation> {
        (self.interval_ns == Interval::OneHour.ns()).then_some(self.aggregation)
    }

    fn hour(&mut self, entity: u32, start_ns: i64, channel: usize, fold: &Fold) {
        let window = self.record(entity, start_ns) as usize;
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

fn index(length: usize) -> u32 {
    u32::try_from(length).expect("fewer than 2^32 windows fit in memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    fn rows(aggregation: Aggregation, samples: &[(i64, f64)]) -> EntityRows {
        let mut windows = WindowRows::new(1, 1, Interval::OneMinute, aggregation);
        for (seconds, value) in samples {
            let time_ns = seconds * SECOND_NS;
            let record = windows.record(0, time_ns);
            windows.value(&PickedRow { entity: 0, time_ns, record }, 0, *value);
        }
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
        windows.record(0, SECOND_NS);
        assert!(windows.finish()[0].times_ns.is_empty());
    }
}
