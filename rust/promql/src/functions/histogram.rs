//! `histogram_quantile` over buckets with an upper bound in the label `le`.

use std::cmp::Ordering;
use std::collections::HashMap;

use fleetcast_core::query::labelled::Labels;
use foldhash::fast::RandomState;

use crate::column::{ABSENT, StepColumn, is_absent};
use crate::labels;

/// Label of the upper bound of a bucket.
const BOUND: &str = "le";

/// A bucket: its upper bound, and the number of values that are not above it.
#[derive(Clone, Copy)]
struct Bucket {
    upper: f64,
    count: f64,
}

/// Buckets of a histogram: upper bound, and a count at each step.
type Buckets = Vec<(f64, Vec<f64>)>;

/// Returns the quantile of each histogram at each step. Columns without a bound are left out.
pub(crate) fn histogram_quantile(fractions: &[f64], columns: Vec<StepColumn>) -> Vec<StepColumn> {
    // Histograms are told apart by all other labels, the name of the metric among them.
    let mut histograms: Vec<(Labels, Buckets)> = Vec::new();
    let mut index_of: HashMap<Labels, usize, RandomState> = HashMap::default();
    for StepColumn { mut labels, values } in columns {
        let Ok(upper) = labels::value(&labels, BOUND).parse::<f64>() else { continue };
        labels::set(&mut labels, BOUND, "");
        let at = *index_of.entry(labels.clone()).or_insert(histograms.len());
        if at == histograms.len() {
            histograms.push((labels, Vec::new()));
        }
        histograms[at].1.push((upper, values));
    }
    let quantiles = histograms.into_iter().map(|(labels, mut buckets)| {
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let at = |(step, fraction): (usize, &f64)| {
            let present = buckets.iter().map(|(upper, counts)| (*upper, counts[step]));
            let present = present.filter(|(_, count)| !is_absent(*count));
            quantile(*fraction, present.map(|(upper, count)| Bucket { upper, count }).collect())
        };
        let values = fractions.iter().enumerate().map(at).collect();
        StepColumn { labels: labels::without_metric(labels), values }
    });
    quantiles.filter(|column| !column.is_empty()).collect()
}

/// Returns the quantile of the values that sorted buckets count (`bucketQuantile` in Prometheus'
/// `promql/quantile.go`), or [`ABSENT`] without buckets.
fn quantile(fraction: f64, buckets: Vec<Bucket>) -> f64 {
    let Some(highest) = buckets.last() else { return ABSENT };
    if fraction.is_nan() {
        return f64::NAN;
    }
    if fraction < 0.0 {
        return f64::NEG_INFINITY;
    }
    if fraction > 1.0 {
        return f64::INFINITY;
    }
    if highest.upper != f64::INFINITY {
        return f64::NAN;
    }
    let buckets = rising(buckets);
    let [rest @ .., highest] = &buckets[..] else { return f64::NAN };
    if rest.is_empty() || highest.count == 0.0 {
        return f64::NAN;
    }
    let mut rank = fraction * highest.count;
    // As a search by halves finds it: NaN is no match.
    let at = rest
        .partition_point(|bucket| !bucket.count.partial_cmp(&rank).is_some_and(Ordering::is_ge));
    let Some(bucket) = rest.get(at) else { return rest[rest.len() - 1].upper };
    let Some(below) = at.checked_sub(1).map(|below| rest[below]) else {
        return if bucket.upper <= 0.0 {
            bucket.upper
        } else {
            bucket.upper * (rank / bucket.count)
        };
    };
    rank -= below.count;
    below.upper + (bucket.upper - below.upper) * (rank / (bucket.count - below.count))
}

/// Joins buckets of one bound, and raises counts that are below the count of a lower bucket.
#[expect(clippy::float_cmp, reason = "the same bound")]
fn rising(buckets: Vec<Bucket>) -> Vec<Bucket> {
    let mut kept: Vec<Bucket> = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        match kept.last_mut() {
            Some(last) if last.upper == bucket.upper => last.count += bucket.count,
            _ => kept.push(bucket),
        }
    }
    let mut most = kept.first().map_or(f64::NAN, |bucket| bucket.count);
    for bucket in &mut kept {
        if bucket.count > most {
            most = bucket.count;
        } else if bucket.count < most {
            bucket.count = most;
        }
    }
    kept
}
