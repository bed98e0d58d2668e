//! Folding: the samples of a window become one value.

use crate::model::aggregate::{Aggregation, Statistic};

/// Scale of the second sum of a mean, 2^-63. It is so small that no sum of finite doubles
/// overflows.
const SCALE: f64 = 1.0 / 9_223_372_036_854_775_808.0;

/// The samples of one channel in one window, added in write order.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    count: u64,
    sum: f64,
    /// The sum times [`SCALE`]. It is kept only if `sum` is not finite.
    scaled_sum: f64,
    min: f64,
    max: f64,
    last_ns: i64,
    last: f64,
}

impl Default for Fold {
    fn default() -> Self {
        Self {
            count: 0,
            sum: 0.0,
            scaled_sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            last_ns: i64::MIN,
            last: 0.0,
        }
    }
}

impl Fold {
    /// Folds finite samples that are ordered by time, then by write order. `last_ns` is the time of
    /// the last sample. The caller knows the smallest and the largest sample, and perhaps the sum.
    #[must_use]
    pub fn of(samples: &[f64], (min, max): (f64, f64), sum: Option<f64>, last_ns: i64) -> Self {
        let mut fold = Self { count: samples.len() as u64, min, max, ..Self::default() };
        match sum {
            Some(sum) => fold.sum = sum,
            None => fold.add_to_sum(samples),
        }
        if let Some(last) = samples.last() {
            fold.see(last_ns, *last);
        }
        fold
    }

    /// Adds one finite sample.
    pub fn add(&mut self, time_ns: i64, value: f64) {
        self.count += 1;
        self.add_to_sum(&[value]);
        self.min = smaller(self.min, value);
        self.max = larger(self.max, value);
        self.see(time_ns, value);
    }

    /// Adds finite samples in write order, but only to the statistics that `aggregation` needs.
    /// `time_ns` returns the time of the sample at an index.
    pub fn add_for(
        &mut self,
        aggregation: Aggregation,
        values: &[f64],
        time_ns: impl Fn(usize) -> i64,
    ) {
        self.count += values.len() as u64;
        match aggregation {
            Aggregation::Mean => self.add_to_sum(values),
            Aggregation::Min => self.min = values.iter().copied().fold(self.min, smaller),
            Aggregation::Max => self.max = values.iter().copied().fold(self.max, larger),
            Aggregation::Last => {
                for (at, value) in values.iter().enumerate() {
                    self.see(time_ns(at), *value);
                }
            }
        }
    }

    /// Adds finite samples in write order to all statistics, as [`Self::add_for`] does.
    pub fn add_all(&mut self, values: &[f64], time_ns: impl Fn(usize) -> i64) {
        self.count += values.len() as u64;
        self.add_to_sum(values);
        for (at, value) in values.iter().enumerate() {
            self.min = smaller(self.min, *value);
            self.max = larger(self.max, *value);
            self.see(time_ns(at), *value);
        }
    }

    /// Adds the samples of a fold that were written later.
    pub fn merge(&mut self, later: &Self) {
        self.count += later.count;
        self.merge_sum(later);
        self.min = smaller(self.min, later.min);
        self.max = larger(self.max, later.max);
        self.merge_last(later);
    }

    /// Adds another fold as [`Self::merge`] does, but only to the statistics that `aggregation`
    /// needs.
    pub fn merge_for(&mut self, aggregation: Aggregation, later: &Self) {
        self.count += later.count;
        match aggregation {
            Aggregation::Mean => self.merge_sum(later),
            Aggregation::Min => self.min = smaller(self.min, later.min),
            Aggregation::Max => self.max = larger(self.max, later.max),
            Aggregation::Last => self.merge_last(later),
        }
    }

    fn merge_sum(&mut self, later: &Self) {
        let sum = self.sum + later.sum;
        if sum.is_finite() {
            self.sum = sum;
        } else {
            self.scaled_sum = self.scaled() + later.scaled();
            self.sum = f64::INFINITY;
        }
    }

    fn merge_last(&mut self, later: &Self) {
        if later.count > 0 {
            self.see(later.last_ns, later.last);
        }
    }

    fn see(&mut self, time_ns: i64, value: f64) {
        if time_ns >= self.last_ns {
            self.last_ns = time_ns;
            self.last = value;
        }
    }

    fn add_to_sum(&mut self, values: &[f64]) {
        let sum = values.iter().fold(self.sum, |sum, value| sum + value);
        if sum.is_finite() {
            self.sum = sum;
        } else {
            let start = self.scaled();
            self.scaled_sum = values.iter().fold(start, |sum, value| sum + value * SCALE);
            self.sum = f64::INFINITY;
        }
    }

    fn scaled(&self) -> f64 {
        if self.sum.is_finite() { self.sum * SCALE } else { self.scaled_sum }
    }

    /// Returns the number of samples.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the time of the last sample.
    #[must_use]
    pub const fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// Returns a statistic of a window that begins at `start_ns`, or `None` if the statistic is not
    /// kept.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "2^53 ns are a hundred days")]
    pub fn get(&self, statistic: Statistic, start_ns: i64) -> Option<f64> {
        let value = match statistic {
            Statistic::Count => self.count as f64,
            Statistic::Min => self.min,
            Statistic::Max => self.max,
            Statistic::Sum if self.sum.is_finite() => self.sum,
            Statistic::ScaledSum if !self.sum.is_finite() => self.scaled_sum,
            Statistic::Sum | Statistic::ScaledSum => return None,
            Statistic::Last => self.last,
            Statistic::LastOffset => self.last_ns.saturating_sub(start_ns) as f64,
        };
        (self.count > 0).then_some(value)
    }

    /// Sets a statistic to a value that [`Self::get`] returned.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole numbers")]
    pub fn set(&mut self, statistic: Statistic, start_ns: i64, value: f64) {
        match statistic {
            Statistic::Count => self.count = value as u64,
            Statistic::Min => self.min = value,
            Statistic::Max => self.max = value,
            Statistic::Sum => self.sum = value,
            Statistic::ScaledSum => (self.sum, self.scaled_sum) = (f64::INFINITY, value),
            Statistic::Last => self.last = value,
            Statistic::LastOffset => self.last_ns = start_ns.saturating_add(value as i64),
        }
    }

    /// Returns the whole fold if only the sample and its time are kept of a fold of one sample.
    #[must_use]
    pub fn completed(&self) -> Self {
        if self.count != 1 {
            return *self;
        }
        let mut whole = Self::default();
        whole.add(self.last_ns, self.last);
        whole
    }

    /// Returns the result, or `None` if no sample is in the window.
    ///
    /// The mean is sum / count. If the sum overflows, the mean comes from a second sum, of the
    /// samples times 2^-63, which cannot overflow.
    ///
    /// Example: the mean of 1e308 and 1.5e308 is 1.25e308, although their sum exceeds every double.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count above 2^53 samples cannot be held")]
    pub fn result(&self, aggregation: Aggregation) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let value = match aggregation {
            Aggregation::Mean if self.sum.is_finite() => self.sum / self.count as f64,
            Aggregation::Mean => self.scaled_sum / self.count as f64 / SCALE,
            Aggregation::Min => self.min,
            Aggregation::Max => self.max,
            Aggregation::Last => self.last,
        };
        value.is_finite().then_some(value)
    }
}

// Compares in the total order of IEEE 754, in which -0.0 is below 0.0. The result then does not
// depend on the order in which samples are folded.
fn smaller(a: f64, b: f64) -> f64 {
    if b.total_cmp(&a).is_lt() { b } else { a }
}

fn larger(a: f64, b: f64) -> f64 {
    if b.total_cmp(&a).is_gt() { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(samples: &[(i64, f64)]) -> Fold {
        let mut fold = Fold::default();
        for (time_ns, value) in samples {
            fold.add(*time_ns, *value);
        }
        fold
    }

    #[test]
    fn h28_a_mean_of_finite_samples_is_finite() {
        let huge = fold(&[(0, f64::MAX), (1, f64::MAX)]);
        assert_eq!(huge.result(Aggregation::Mean), Some(f64::MAX));
        let opposite = fold(&[(0, f64::MAX), (1, f64::MAX), (2, -f64::MAX), (3, -f64::MAX)]);
        assert_eq!(opposite.result(Aggregation::Mean), Some(0.0));
    }

    #[test]
    fn parts_folded_alone_merge_into_the_whole() {
        let samples = [(5, 0.0), (9, 2.5), (9, -0.0), (7, f64::MAX), (1, f64::MAX), (2, -3.5)];
        for cut in 0..=samples.len() {
            let mut merged = fold(&samples[..cut]);
            merged.merge(&fold(&samples[cut..]));
            for aggregation in Aggregation::ALL {
                let bits = |fold: &Fold| fold.result(aggregation).map(f64::to_bits);
                assert_eq!(bits(&merged), bits(&fold(&samples)), "{aggregation:?} {cut}");
            }
        }
    }

    #[test]
    fn what_is_kept_of_a_fold_is_that_fold() {
        for samples in [&[(5, 1.5), (4, -0.0)][..], &[(3, f64::MAX), (4, f64::MAX)]] {
            let folded = fold(samples);
            let mut kept = Fold::default();
            for statistic in Statistic::ALL {
                if let Some(value) = folded.get(statistic, 2) {
                    kept.set(statistic, 2, value);
                }
            }
            for aggregation in Aggregation::ALL {
                assert_eq!(kept.result(aggregation), folded.result(aggregation));
            }
        }
        assert!(Statistic::ALL.iter().all(|each| Fold::default().get(*each, 0).is_none()));
    }

    #[test]
    fn a_fold_of_one_sample_is_given_by_the_sample() {
        for value in [1.5, -0.0, f64::MAX] {
            let folded = fold(&[(5, value)]);
            let mut kept = Fold::default();
            for statistic in [Statistic::Count, Statistic::Last, Statistic::LastOffset] {
                kept.set(statistic, 2, folded.get(statistic, 2).unwrap());
            }
            let kept = kept.completed();
            for statistic in Statistic::ALL {
                let bits = |fold: &Fold| fold.get(statistic, 2).map(f64::to_bits);
                assert_eq!(bits(&kept), bits(&folded), "{statistic:?}");
            }
        }
        let two = fold(&[(5, 1.5), (6, 2.5)]);
        assert_eq!(two.completed().result(Aggregation::Min), Some(1.5));
    }

    #[test]
    fn h27_last_is_the_greatest_time_then_the_later_write() {
        let samples = fold(&[(5, 1.0), (9, 2.0), (9, 3.0), (7, 4.0)]);
        assert_eq!(samples.result(Aggregation::Last), Some(3.0));
    }

    #[test]
    fn h12_an_empty_window_has_no_result() {
        for aggregation in Aggregation::ALL {
            assert_eq!(Fold::default().result(aggregation), None);
        }
    }
}
