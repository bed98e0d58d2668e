//! Samples that a question reads.

use std::cell::Cell;
use std::collections::BTreeSet;

use fleetcast_core::model::clock::CallTime;
use fleetcast_core::plane::{Failure, Plane};
use fleetcast_core::query::labelled::{
    LabelBounds, LabelMatcher, LabelQuery, LabelledSeries, Labels,
};

use crate::refusal::EvaluationResult;

const NS_PER_MS: i64 = 1_000_000;

/// Samples of one series.
#[derive(Clone, Debug)]
pub(crate) struct SampledSeries {
    /// Labels with the name of the metric.
    pub(crate) labels: Labels,
    /// Times in milliseconds since 1970, strictly ascending.
    pub(crate) times_ms: Vec<i64>,
    /// Values. The NaN that marks the end of a series is among them.
    pub(crate) values: Vec<f64>,
}

/// A store of samples.
pub(crate) trait Source {
    /// Returns the samples from `start_ms` to `end_ms` inclusive of all series that meet every
    /// condition, sorted by labels. No labels occur twice.
    ///
    /// # Errors
    /// Returns the refusal of a question that passed a bound, or a fault of the store.
    fn select(
        &self,
        matchers: &[LabelMatcher],
        start_ms: i64,
        end_ms: i64,
        bounds: LabelBounds,
    ) -> EvaluationResult<Vec<SampledSeries>>;
}

/// A plane at an instant. The instant decides which rows retention hides.
pub(crate) struct PlaneSource<'p> {
    /// The plane.
    pub(crate) plane: &'p Plane,
    /// The instant.
    pub(crate) now: CallTime,
    /// The first instant of which samples were read, in milliseconds since 1970.
    first_ms: Cell<i64>,
}

impl<'p> PlaneSource<'p> {
    pub(crate) const fn new(plane: &'p Plane, now: CallTime) -> Self {
        Self { plane, now, first_ms: Cell::new(i64::MAX) }
    }

    /// Returns the instant at which samples begin if hours outlive samples that were asked for.
    pub(crate) fn rows_from_ns(&self) -> Option<i64> {
        self.plane.rows_from_ns(self.first_ms.get().saturating_mul(NS_PER_MS), self.now)
    }

    /// Returns the labels of all series that meet every condition and have a sample from `start_ms`
    /// to `end_ms` inclusive.
    ///
    /// # Errors
    /// Returns the errors of [`Source::select`].
    pub(crate) fn present(
        &self,
        matchers: &[LabelMatcher],
        start_ms: i64,
        end_ms: i64,
        bounds: LabelBounds,
    ) -> EvaluationResult<Vec<Labels>> {
        let found = self.read(matchers, (start_ms, end_ms), bounds, false)?;
        Ok(found.into_iter().map(|series| series.labels).collect())
    }

    /// Returns all names of labels, or all values of one label, of all series that were ever
    /// written.
    ///
    /// # Errors
    /// Returns a fault of the store.
    pub(crate) fn texts(&self, label: Option<&str>) -> EvaluationResult<BTreeSet<String>> {
        Ok(self.plane.label_texts(label)?)
    }

    fn read(
        &self,
        matchers: &[LabelMatcher],
        (start_ms, end_ms): (i64, i64),
        bounds: LabelBounds,
        keeps_samples: bool,
    ) -> EvaluationResult<Vec<LabelledSeries>> {
        self.first_ms.set(self.first_ms.get().min(start_ms));
        let query = LabelQuery {
            matchers: matchers.to_vec(),
            start_ns: start_ms.saturating_mul(NS_PER_MS),
            end_ns: end_ms.saturating_add(1).saturating_mul(NS_PER_MS),
            keeps_samples,
        };
        self.plane.labelled(&query, bounds, self.now).map_err(Failure::refused_as)
    }
}

impl Source for PlaneSource<'_> {
    fn select(
        &self,
        matchers: &[LabelMatcher],
        start_ms: i64,
        end_ms: i64,
        bounds: LabelBounds,
    ) -> EvaluationResult<Vec<SampledSeries>> {
        let found = self.read(matchers, (start_ms, end_ms), bounds, true)?;
        let mut all: Vec<SampledSeries> = Vec::with_capacity(found.len());
        for series in found {
            if let Some(last) = all.last_mut().filter(|last| last.labels == series.labels) {
                // Two fields, or two series, whose names become the same labels.
                last.mix(series.times_ns.into_iter().zip(series.values));
            } else {
                all.push(SampledSeries::cut(series));
            }
        }
        Ok(all)
    }
}

impl SampledSeries {
    /// Cuts times to milliseconds, in place. Of the samples of one millisecond the last one stays.
    fn cut(series: LabelledSeries) -> Self {
        let LabelledSeries { labels, times_ns: mut times_ms, mut values } = series;
        for time in &mut times_ms {
            *time = time.div_euclid(NS_PER_MS);
        }
        if !times_ms.is_sorted_by(|one, next| one < next) {
            let mut is_last = times_ms.windows(2).map(|pair| pair[0] < pair[1]).chain([true]);
            values.retain(|_| is_last.next().unwrap_or(true));
            times_ms.dedup();
        }
        Self { labels, times_ms, values }
    }

    /// Adds samples in any order.
    fn mix(&mut self, samples: impl Iterator<Item = (i64, f64)>) {
        let times_ns = std::mem::take(&mut self.times_ms).into_iter();
        let values = std::mem::take(&mut self.values);
        let known = times_ns.map(|time_ms| time_ms.saturating_mul(NS_PER_MS)).zip(values);
        let mut all: Vec<(i64, f64)> = known.chain(samples).collect();
        all.sort_by_key(|(time_ns, _)| *time_ns);
        let labels = std::mem::take(&mut self.labels);
        let (times_ns, values) = all.into_iter().unzip();
        *self = Self::cut(LabelledSeries { labels, times_ns, values });
    }
}
