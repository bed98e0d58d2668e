//! Collects samples of series as columns of times and values.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::query::{LabelBounds, LabelRefusal};
use crate::model::names::FieldId;
use crate::query::collector::{Collector, ColumnValues, RowRun, SelectedRows};
use crate::query::field_map::FieldMap;

/// Samples of one series in one field.
#[derive(Default)]
pub(crate) struct SampleColumn {
    pub(crate) times_ns: Vec<i64>,
    pub(crate) values: Vec<f64>,
}

/// The columns of one series, by field.
pub(crate) type FieldColumns = Vec<(FieldId, SampleColumn)>;

/// Samples of some series. The "entity" of a row is the index of its series.
pub(crate) struct SampleColumns<'r> {
    /// For each series 0, or the number of its columns in `found`. Most series of a measurement may
    /// lack the wanted fields.
    numbers: Vec<u32>,
    /// The columns of each series with a sample, and the index of the series.
    found: Vec<(u32, FieldMap<SampleColumn>)>,
    /// Samples of the whole read, which all its threads count.
    samples: &'r AtomicUsize,
    keeps_samples: bool,
    bounds: LabelBounds,
}

impl<'r> SampleColumns<'r> {
    pub(crate) fn new(
        series: usize,
        keeps_samples: bool,
        (samples, bounds): (&'r AtomicUsize, LabelBounds),
    ) -> Self {
        let (numbers, found) = (vec![0; series], Vec::new());
        Self { numbers, found, samples, keeps_samples, bounds }
    }

    /// Returns the columns of each series that has some, in order of the series, or the bound that was
    /// passed.
    pub(crate) fn finish(mut self) -> Result<Vec<(u32, FieldColumns)>, LabelRefusal> {
        if self.has_too_many() {
            return Err(LabelRefusal::TooManySamples);
        }
        if Instant::now() > self.bounds.until {
            return Err(LabelRefusal::TooLate);
        }
        self.found.sort_unstable_by_key(|(series, _)| *series);
        let in_order = |(series, columns): (u32, FieldMap<SampleColumn>)| {
            let columns = columns.into_entries().into_iter();
            (series, columns.map(|(field, column)| (field, column.in_order())).collect())
        };
        Ok(self.found.into_iter().map(in_order).collect())
    }

    fn column(&mut self, series: u32, field: FieldId) -> &mut SampleColumn {
        let number = &mut self.numbers[series as usize];
        if *number == 0 {
            self.found.push((series, FieldMap::default()));
            *number = u32::try_from(self.found.len()).expect("fewer than 2^32 series");
        }
        self.found[*number as usize - 1].1.get(field)
    }

    fn has_too_many(&self) -> bool {
        self.samples.load(Ordering::Relaxed) > self.bounds.samples_max
    }
}

impl Collector for SampleColumns<'_> {
    type Targets = ();

    fn records(&mut self, _selected: &SelectedRows<'_>) -> Self::Targets {}

    fn values(
        &mut self,
        selected: &SelectedRows<'_>,
        _targets: &Self::Targets,
        field: FieldId,
        cells: &ColumnValues<'_>,
    ) {
        let mut added = 0;
        cells.for_each_run(&selected.runs, |_, RowRun { entity, .. }, indices| {
            let keeps_samples = self.keeps_samples;
            let column = self.column(*entity, field);
            if !keeps_samples {
                return;
            }
            added += indices.len();
            let times_ns = indices.clone().map(|index| selected.times_ns[cells.row_at(index)]);
            column.times_ns.extend(times_ns);
            column.values.extend_from_slice(cells.values(indices));
        });
        self.samples.fetch_add(added, Ordering::Relaxed);
    }

    fn is_full(&self) -> bool {
        self.has_too_many() || Instant::now() > self.bounds.until
    }
}

impl SampleColumn {
    /// Sorts the samples by time. Of the samples of one instant the sample that was written last
    /// stays.
    fn in_order(self) -> Self {
        if self.times_ns.is_sorted_by(|one, next| one < next) {
            return self;
        }
        let mut samples: Vec<(i64, f64)> = self.times_ns.into_iter().zip(self.values).collect();
        samples.sort_by_key(|(time_ns, _)| *time_ns);
        let mut kept: Vec<(i64, f64)> = Vec::with_capacity(samples.len());
        for sample in samples {
            match kept.last_mut() {
                Some(last) if last.0 == sample.0 => *last = sample,
                _ => kept.push(sample),
            }
        }
        let (times_ns, values) = kept.into_iter().unzip();
        Self { times_ns, values }
    }
}
