//! Aggregated rows: a row for each window with a sample, labelled with the start of the window.
//!
//! Example: with 1 m windows, samples at 10:00:05 and 10:00:50 are one row at 10:00:00.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

use super::collector::{Collector, ColumnValues, RowRange, RowRun, SelectedRows};
use super::field_map::FieldMap;
use super::rows::{Channel, EntityRows};
use crate::model::aggregate::{Aggregation, Interval, Statistic};
use crate::model::batch::RowSet;
use crate::model::fold::Fold;
use crate::model::names::FieldId;

/// Folds records into windows as they arrive. Windows start at multiples of the interval since
/// 1970.
pub struct WindowRows {
    interval_ns: i64,
    /// The only aggregation of the rows. `None` if all statistics are needed.
    aggregation: Option<Aggregation>,
    entities: Vec<FieldMap<Windows>>,
    folds: usize,
    folds_max: usize,
}

/// The folds of an entity's fields. The folds of a field ascend by the number of their window.
pub type EntityFolds = Vec<(FieldId, Vec<(i64, Fold)>)>;

/// The hours of a field of an entity.
#[derive(Clone, Debug)]
pub struct FieldHours {
    /// Name of the field.
    pub name: String,
    /// Folds by ascending hour, the number of hours since 1970.
    pub hours: Vec<(i64, Fold)>,
}

/// The windows of one field. The number of a window is its start divided by the interval.
#[derive(Default)]
struct Windows {
    /// Folds by ascending window.
    folds: Vec<(i64, Fold)>,
    /// Windows whose first sample came after a sample of a later window.
    late: HashMap<i64, Fold, RandomState>,
}

impl WindowRows {
    /// Returns a collector for this many entities. The collector is full if it has more than
    /// `folds_max` folds of several windows. Its rows may then be incomplete.
    #[must_use]
    pub fn new(
        entities: usize,
        interval: Interval,
        aggregation: Aggregation,
        folds_max: usize,
    ) -> Self {
        let (interval_ns, aggregation) = (interval.ns(), Some(aggregation));
        Self { interval_ns, aggregation, folds_max, ..Self::of_hours(entities) }
    }

    /// Returns a collector of hours with all their statistics. It is never full.
    #[must_use]
    pub fn of_hours(entities: usize) -> Self {
        let entities = std::iter::repeat_with(FieldMap::default).take(entities).collect();
        let interval_ns = Interval::OneHour.ns();
        Self { interval_ns, aggregation: None, entities, folds: 0, folds_max: usize::MAX }
    }

    /// Returns the rows of each entity.
    #[must_use]
    pub fn finish(self, aggregation: Aggregation) -> Vec<EntityRows> {
        let interval_ns = self.interval_ns;
        self.entities.into_iter().map(|fields| rows_of(fields, interval_ns, aggregation)).collect()
    }

    /// Returns the folds of each entity.
    #[must_use]
    pub fn into_folds(self) -> Vec<EntityFolds> {
        let of_entity = |fields: FieldMap<Windows>| {
            let fields = fields.into_entries().into_iter();
            fields.map(|(field, windows)| (field, windows.sorted())).collect()
        };
        self.entities.into_iter().map(of_entity).collect()
    }

    fn window_ns(&self, window: i64) -> Range<i64> {
        let start_ns = window.saturating_mul(self.interval_ns);
        start_ns..start_ns.saturating_add(self.interval_ns)
    }

    fn fold(&mut self, entity: u32, field: FieldId, window: i64) -> &mut Fold {
        self.entities[entity as usize].get(field).fold(window, &mut self.folds)
    }
}

/// Consecutive rows of a table that belong to one window of an entity.
pub struct WindowRun {
    entity: u32,
    window: i64,
    rows: Range<usize>,
}

impl RowRange for WindowRun {
    fn rows(&self) -> &Range<usize> {
        &self.rows
    }
}

impl Collector for WindowRows {
    type Targets = Vec<WindowRun>;

    fn records(&mut self, selected: &SelectedRows<'_>) -> Self::Targets {
        let rows = selected.runs.iter().map(|run| run.rows.len()).sum();
        let mut pieces = Vec::with_capacity(rows);
        let mut window = 0;
        for RowRun { entity, rows } in &selected.runs {
            let mut start = rows.start;
            while start < rows.end {
                let time_ns = selected.times_ns[start];
                // Usually the next window follows, and needs no division.
                window += 1;
                let mut window_ns = self.window_ns(window);
                if !window_ns.contains(&time_ns) {
                    window = time_ns.div_euclid(self.interval_ns);
                    window_ns = self.window_ns(window);
                }
                let within = |time_ns: &&i64| window_ns.contains(time_ns);
                let more = selected.times_ns[start + 1..rows.end].iter().take_while(within).count();
                pieces.push(WindowRun { entity: *entity, window, rows: start..start + 1 + more });
                start += 1 + more;
            }
        }
        pieces
    }

    fn values(
        &mut self,
        selected: &SelectedRows<'_>,
        targets: &Self::Targets,
        field: FieldId,
        cells: &ColumnValues<'_>,
    ) {
        let aggregation = self.aggregation;
        let add = |fold: &mut Fold, indices: Range<usize>| {
            let time_ns = |at: usize| selected.times_ns[cells.row_at(indices.start + at)];
            let values = cells.values(indices.clone());
            match aggregation {
                Some(aggregation) => fold.add_for(aggregation, values, time_ns),
                None => fold.add_all(values, time_ns),
            }
        };
        if !cells.is_dense() {
            return cells.for_each_run(targets, |_, piece, indices| {
                add(self.fold(piece.entity, field, piece.window), indices);
            });
        }
        for of_entity in targets.chunk_by(|a, b| a.entity == b.entity) {
            let windows = self.entities[of_entity[0].entity as usize].get(field);
            windows.folds.reserve(of_entity.len());
            for piece in of_entity {
                add(windows.fold(piece.window, &mut self.folds), piece.rows.clone());
            }
        }
    }

    fn is_full(&self) -> bool {
        if self.folds <= self.folds_max {
            return false;
        }
        let fields = self.entities.iter().flat_map(FieldMap::entries);
        let mut windows = fields.flat_map(|(_, windows)| windows.numbers());
        let first = windows.next();
        windows.any(|other| Some(other) != first)
    }

    fn hourly_statistics(&self) -> Option<&'static [Statistic]> {
        let of_rows = || self.aggregation.map_or(Statistic::ALL.as_slice(), Statistic::of);
        (self.interval_ns == Interval::OneHour.ns()).then(of_rows)
    }

    fn add_hour(&mut self, entity: u32, start_ns: i64, field: FieldId, fold: &Fold) {
        let window = start_ns.div_euclid(self.interval_ns);
        let aggregation = self.aggregation;
        let known = self.fold(entity, field, window);
        match aggregation {
            Some(aggregation) => known.merge_for(aggregation, fold),
            None => known.merge(fold),
        }
    }

    fn set_hour(&mut self, entity: u32, start_ns: i64, field: FieldId, fold: &Fold) {
        let window = start_ns.div_euclid(self.interval_ns);
        *self.fold(entity, field, window) = *fold;
    }
}

impl Windows {
    /// Returns the fold of a window. Increments `count` if the window is new.
    fn fold(&mut self, window: i64, count: &mut usize) -> &mut Fold {
        let newest = self.folds.len().wrapping_sub(1);
        let at = match self.folds.get(newest) {
            Some((last, _)) if *last == window => newest,
            Some((last, _)) if *last > window => {
                match self.folds.binary_search_by_key(&window, |(window, _)| *window) {
                    Ok(at) => at,
                    Err(_) => {
                        return self.late.entry(window).or_insert_with(|| {
                            *count += 1;
                            Fold::default()
                        });
                    }
                }
            }
            _ => {
                *count += 1;
                self.folds.push((window, Fold::default()));
                newest.wrapping_add(1)
            }
        };
        &mut self.folds[at].1
    }

    /// Returns the windows and their folds, ascending.
    fn sorted(self) -> Vec<(i64, Fold)> {
        let mut folds = self.folds;
        if !self.late.is_empty() {
            folds.extend(self.late);
            folds.sort_unstable_by_key(|(window, _)| *window);
        }
        folds
    }

    fn numbers(&self) -> impl Iterator<Item = i64> {
        self.folds.iter().map(|(window, _)| *window).chain(self.late.keys().copied())
    }

    /// Returns the windows that have a result, ascending, and the results.
    fn results(self, aggregation: Aggregation) -> (Vec<i64>, Vec<f64>) {
        let folds = self.sorted();
        let count = folds.len();
        let (mut windows, mut results) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (window, fold) in folds {
            if let Some(result) = fold.result(aggregation) {
                windows.push(window);
                results.push(result);
            }
        }
        (windows, results)
    }
}

fn rows_of(fields: FieldMap<Windows>, interval_ns: i64, aggregation: Aggregation) -> EntityRows {
    let fields = fields.into_entries().into_iter();
    let fields: Vec<_> = fields.map(|(field, folds)| (field, folds.results(aggregation))).collect();
    let mut windows: Vec<i64> = Vec::new();
    for (at, (_, (of_field, _))) in fields.iter().enumerate() {
        // Usually all fields have the same windows.
        if at == 0 || *of_field != fields[0].1.0 {
            windows.extend_from_slice(of_field);
        }
    }
    windows.sort_unstable();
    windows.dedup();
    let channel = |(field, (of_field, values)): (FieldId, (Vec<i64>, Vec<f64>))| {
        let row = |window: &i64| {
            let row = windows.binary_search(window).expect("windows are those of all fields");
            u32::try_from(row).expect("windows of one entity that fit in memory")
        };
        let is_dense = of_field.len() == windows.len();
        let rows =
            if is_dense { RowSet::All } else { RowSet::Some(of_field.iter().map(row).collect()) };
        Channel { field, rows, values }
    };
    let channels = fields.into_iter().filter(|(_, (windows, _))| !windows.is_empty());
    let channels = channels.map(channel).collect();
    let times_ns = windows.iter().map(|window| window.saturating_mul(interval_ns)).collect();
    EntityRows { times_ns, channels }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::SECOND_NS;
    use crate::query::collector::offer;

    fn rows(aggregation: Aggregation, samples: &[(i64, f64)]) -> EntityRows {
        let mut windows = WindowRows::new(1, Interval::OneMinute, aggregation, usize::MAX);
        let rows = samples.iter().map(|(seconds, value)| (seconds * SECOND_NS, [Some(*value)]));
        offer(&mut windows, &rows.collect::<Vec<_>>());
        windows.finish(aggregation).remove(0)
    }

    #[test]
    fn samples_at_the_ends_of_64_bits_have_windows() {
        let mut windows = WindowRows::new(1, Interval::OneMinute, Aggregation::Mean, usize::MAX);
        let last_ns = i64::MAX - 1; // before the end of a selection, which is exclusive
        offer(&mut windows, &[(i64::MIN, [Some(1.0)]), (0, [Some(2.0)]), (last_ns, [Some(3.0)])]);
        let rows = windows.finish(Aggregation::Mean).remove(0);
        assert_eq!((rows.times_ns[0], rows.times_ns[1]), (i64::MIN, 0));
        assert_eq!(rows.cells(0), [1.0, 2.0, 3.0].map(Some));
    }

    #[test]
    fn windows_are_epoch_aligned_labelled_by_their_start_and_ascending() {
        let rows = rows(Aggregation::Mean, &[(125, 4.0), (59, 1.0), (60, 2.0), (61, 4.0)]);
        assert_eq!(rows.times_ns, [0, 60 * SECOND_NS, 120 * SECOND_NS]);
        assert_eq!(rows.cells(0), [1.0, 3.0, 4.0].map(Some));
    }

    #[test]
    fn f5_every_stored_value_is_a_sample() {
        let rows = rows(Aggregation::Mean, &[(1, 1.0), (1, 1.0), (1, 4.0)]);
        assert_eq!(rows.cells(0), [Some(2.0)]);
    }

    #[test]
    fn h12_a_window_touched_only_by_records_without_a_channel_is_no_row() {
        let mut windows = WindowRows::new(1, Interval::OneMinute, Aggregation::Min, usize::MAX);
        offer(&mut windows, &[(SECOND_NS, [None])]);
        assert!(windows.finish(Aggregation::Min)[0].times_ns.is_empty());
    }
    #[test]
    fn h11_fields_with_windows_of_their_own_share_the_rows_of_all() {
        let mut windows = WindowRows::new(1, Interval::OneMinute, Aggregation::Last, usize::MAX);
        let minute = |minute: i64| minute * 60 * SECOND_NS;
        offer(&mut windows, &[(minute(5), [Some(5.0), None]), (minute(7), [None, Some(7.0)])]);
        // Late samples: the first is in an earlier window, the second in a window that exists
        // already.
        offer(&mut windows, &[(minute(3), [Some(3.0), Some(3.5)]), (minute(7), [Some(7.5), None])]);
        let rows = windows.finish(Aggregation::Last).remove(0);
        assert_eq!(rows.times_ns, [3, 5, 7].map(minute));
        assert_eq!(rows.cells(0), [Some(3.0), Some(5.0), Some(7.5)]);
        assert_eq!(rows.cells(1), [Some(3.5), None, Some(7.0)]);
    }

    #[test]
    fn n4_a_collector_is_full_of_values_of_several_windows() {
        let mut windows = WindowRows::new(1, Interval::OneMinute, Aggregation::Max, 2);
        offer(&mut windows, &[(0, [Some(1.0); 3])]);
        assert!(!windows.is_full());
        offer(&mut windows, &[(60 * SECOND_NS, [Some(1.0); 3])]);
        assert!(windows.is_full());
    }
}
