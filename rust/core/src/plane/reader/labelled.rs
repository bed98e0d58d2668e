//! Reads by labels: the samples of each tag set apart, from the segments and blocks that overlap.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;

use super::Reader;
use super::processors::{ReadGuard, in_threads};
use super::series::SHARED_FROM;
use crate::model::catalog::Catalog;
use crate::model::clock::CallTime;
use crate::model::error::Result;
use crate::model::limits::LABEL_POSTINGS_BYTES_MAX;
use crate::model::names::SeriesId;
use crate::plane::failure::Failure;
use crate::plane::follower::PlaneSnapshot;
use crate::query::Selection;
use crate::query::labelled::{
    FieldColumns, LabelBounds, LabelMatcher, LabelPostings, LabelQuery, LabelRefusal,
    LabelledSeries, Labels, METRIC, MatchedSeries, SampleColumn, SampleColumns, label_bytes,
    label_texts, labels_of, metric_of,
};

/// Why a read by labels is not answered.
pub type LabelReadError = Failure<LabelRefusal>;

/// Samples of a series in some fields.
type FieldSamples = (SeriesId, FieldColumns);

impl Reader {
    pub(in crate::plane) fn labelled(
        &self,
        query: &LabelQuery,
        bounds: LabelBounds,
        now: CallTime,
    ) -> Result<Vec<LabelledSeries>, LabelReadError> {
        self.follower.follow()?;
        let reading = ReadGuard::begin();
        let found = self.retrying(|| {
            let start_ns = query.start_ns.max(self.follower.kept_from_ns(now));
            let times_ns = start_ns..query.end_ns;
            let snapshot = self.follower.snapshot(&times_ns);
            self.join_recent();
            self.sealed.prefetch(&mut snapshot.segments_in(&times_ns));
            // Look at the names after the rows, so that they include the names of all rows.
            let matched = {
                let catalog = &self.registry.names().catalog;
                let candidates = self.candidates(query, catalog);
                query.matched(catalog, candidates.as_deref(), bounds.until)
            };
            let matched = match matched {
                Ok(matched) => matched,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let mut found: Vec<FieldSamples> = Vec::new();
            let samples = AtomicUsize::new(0);
            for of_measurement in matched {
                match self.collected(
                    query,
                    &of_measurement,
                    (&snapshot, &times_ns),
                    (&samples, bounds),
                    &reading,
                ) {
                    Ok(more) => found.extend(more),
                    Err(Failure::Refused(refusal)) => return Ok(Err(refusal)),
                    Err(Failure::Failed(error)) => return Err(error),
                }
            }
            Ok(Ok(found))
        })?;
        let found = found.map_err(Failure::Refused)?;
        self.named(found, bounds).map_err(Failure::Refused)
    }

    /// Returns the series that the index of a label leaves, of the condition that leaves the fewest.
    /// Returns `None` if no condition names values or their beginning, or if there are too many
    /// series for an index.
    fn candidates(&self, query: &LabelQuery, catalog: &Catalog) -> Option<Vec<SeriesId>> {
        if LabelPostings::bytes_max(catalog) > LABEL_POSTINGS_BYTES_MAX / 4 {
            return None;
        }
        let cache = &self.sealed.caches.postings;
        let of_condition = |matcher: &LabelMatcher| {
            let sought = matcher.sought().filter(|_| matcher.label != METRIC)?;
            let known = cache.get(&matcher.label).unwrap_or_default();
            let postings = match known.extended(&matcher.label, catalog) {
                Some(extended) => {
                    let bytes = extended.bytes();
                    cache.put(matcher.label.clone(), extended, bytes)
                }
                None => known,
            };
            postings.candidates(&matcher.label, &sought, catalog)
        };
        query.matchers.iter().filter_map(of_condition).min_by_key(Vec::len)
    }

    /// Returns the samples of the matched series, which threads read that share the series. `bounds`
    /// has the number of samples that the whole read has found, and the bounds of the read.
    fn collected(
        &self,
        query: &LabelQuery,
        matched: &MatchedSeries,
        (snapshot, times_ns): (&PlaneSnapshot, &Range<i64>),
        bounds: (&AtomicUsize, LabelBounds),
        reading: &ReadGuard,
    ) -> Result<Vec<FieldSamples>, LabelReadError> {
        let read = |series: &&[SeriesId]| -> Result<Vec<FieldSamples>, LabelReadError> {
            let selection = Selection::of_series(
                matched.measurement,
                series,
                matched.fields.clone(),
                times_ns.clone(),
                &snapshot.manifest.tombstones,
                &self.registry.names().catalog,
            );
            let mut columns = SampleColumns::new(series.len(), query.keeps_samples, bounds);
            self.collect(snapshot, &selection, &mut columns)?;
            let found = columns.finish().map_err(Failure::Refused)?.into_iter();
            Ok(found.map(|(at, fields)| (series[at as usize], fields)).collect())
        };
        let (count, segments) = (matched.series.len(), snapshot.segments_in(times_ns).count());
        let part_items = reading.part_items(count, segments, SHARED_FROM);
        let parts: Vec<&[SeriesId]> = matched.series.chunks(part_items).collect();
        let mut found = Vec::new();
        for part in in_threads(&parts, read) {
            found.extend(part?);
        }
        Ok(found)
    }

    pub(in crate::plane) fn label_texts(&self, label: Option<&str>) -> Result<BTreeSet<String>> {
        self.follower.follow()?;
        Ok(label_texts(&self.registry.names().catalog, label))
    }

    /// Gives the series their labels, and sorts them by their labels.
    fn named(
        &self,
        found: Vec<FieldSamples>,
        bounds: LabelBounds,
    ) -> Result<Vec<LabelledSeries>, LabelRefusal> {
        let names = self.registry.names();
        let mut named = Vec::with_capacity(found.len());
        let mut bytes = 0;
        for (id, fields) in found {
            let Some(series) = names.catalog.series(id) else { continue };
            let labels = labels_of(series.name());
            for (field, SampleColumn { times_ns, values }) in fields {
                let Some(field) = names.catalog.field(field) else { continue };
                let labels = with_metric(labels.clone(), &metric_of(&field.name));
                bytes += label_bytes(&labels) + size_of_val(&*values) + size_of_val(&*times_ns);
                if bytes / 16 > bounds.samples_max {
                    return Err(LabelRefusal::TooManySamples);
                }
                named.push(LabelledSeries { labels, times_ns, values });
            }
        }
        named.sort_by(|one, other| one.labels.cmp(&other.labels));
        Ok(named)
    }
}

/// Adds the name of the metric to labels, which stay in order.
fn with_metric(mut labels: Labels, metric: &str) -> Labels {
    let at = labels.partition_point(|(label, _)| **label < *METRIC);
    labels.insert(at, (METRIC.into(), metric.into()));
    labels
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::model::limits::WriteLimits;
    use crate::model::time::SECOND_NS;
    use crate::plane::{Acknowledgement, CompactionTrigger, Plane};
    use crate::query::labelled::{LabelMatcher, LabelTest};
    use crate::wire::Format;

    /// 2026-09-21T14:13:20Z.
    const TIME_NS: i64 = 1_790_000_000 * SECOND_NS;
    const NOW_NS: i64 = TIME_NS + 3_600 * SECOND_NS;

    /// Returns the metrics with a sample within `seconds` of the time, and their values.
    fn metrics(plane: &Plane, seconds: i64) -> Vec<(String, Vec<f64>)> {
        let query = LabelQuery {
            matchers: Vec::new(),
            start_ns: TIME_NS - seconds * SECOND_NS,
            end_ns: TIME_NS + seconds * SECOND_NS,
            keeps_samples: true,
        };
        let until = Instant::now() + Duration::from_hours(1);
        let found = plane.labelled(&query, LabelBounds { samples_max: 100, until }, TIME_NS);
        let named = |series: LabelledSeries| (series.labels[0].1.to_string(), series.values);
        found.unwrap().into_iter().map(named).collect()
    }

    /// Each record has one of three metrics, so that few rows have a value of a metric. Each entity
    /// has two series, whose rows alternate. The rows of an entity are neighbours in a segment, and
    /// in the log once its blocks are joined.
    #[test]
    fn a_metric_has_the_same_samples_whether_it_is_asked_for_alone_or_with_others() {
        let plane = Plane::in_memory("acme").unwrap();
        for minute in 13..30 {
            let record = |series: usize| {
                let (core, entity) = (series / 20, series % 20);
                let metric = ["a", "b", "c"][(series + minute) % 3];
                format!(
                    r#"{{"measurement":"link","time":"2026-09-21T14:{minute}:20Z",
                    "tags":{{"core":"{core}","entity_id":"{entity}"}},
                    "fields":{{"{metric}":{series}.{minute}}}}}"#
                )
            };
            let body = format!("[{}]", (0..40).map(record).collect::<Vec<_>>().join(","));
            let (limits, when) = (WriteLimits::default(), Acknowledgement::Durable);
            plane.write(Format::Json, body.as_bytes(), &limits, NOW_NS, when).unwrap();
        }
        let read = |label: &str, of: &str, seconds: i64| {
            let test = LabelTest::Matching(regex::Regex::new(&format!("^(?:{of})$")).unwrap());
            let query = LabelQuery {
                matchers: vec![LabelMatcher { label: label.to_owned(), test }],
                start_ns: TIME_NS - SECOND_NS,
                end_ns: TIME_NS + seconds * SECOND_NS,
                keeps_samples: true,
            };
            let until = Instant::now() + Duration::from_hours(1);
            let bounds = LabelBounds { samples_max: 100_000, until };
            plane.labelled(&query, bounds, NOW_NS).unwrap()
        };
        let value = |series: usize, minute: usize| format!("{series}.{minute}").parse().unwrap();
        for is_compacted in [false, true] {
            if is_compacted {
                plane.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
            }
            // Blocks of the log are joined after some reads.
            for seconds in [7_200, 7_200, 7_200, 86_400] {
                let all = read(METRIC, ".*", seconds);
                assert_eq!(all.len(), 3 * 40);
                for found in &all {
                    let metric = "abc".find(&*found.labels[0].1).unwrap();
                    let number = |at: usize| found.labels[at].1.parse::<usize>().unwrap();
                    let series = 20 * number(1) + number(2);
                    let minutes = (13..30).filter(|minute| (series + minute) % 3 == metric);
                    let expected: Vec<f64> = minutes.map(|minute| value(series, minute)).collect();
                    assert_eq!(found.values, expected, "{:?}", found.labels);
                }
                let of_entity = |found: &LabelledSeries| &*found.labels[2].1 == "7";
                let of_7: Vec<_> = all.iter().filter(|found| of_entity(found)).cloned().collect();
                assert_eq!(read("entity_id", "7", seconds), of_7, "compacted: {is_compacted}");
                let apart: Vec<_> = ["a", "b", "c"].map(|of| read(METRIC, of, seconds)).concat();
                assert_eq!(apart, all, "compacted: {is_compacted}, {seconds} s");
            }
        }
    }

    /// Twice as many series as are sorted into an index at first, so that an index is asked and grows.
    #[test]
    fn conditions_find_the_same_series_whether_an_index_has_them_or_not() {
        let plane = Plane::in_memory("acme").unwrap();
        let limits = WriteLimits { batch_records_max: 10_000, ..WriteLimits::default() };
        let write = |entities: std::ops::Range<usize>| {
            let record = |entity: usize| {
                format!(
                    r#"{{"measurement":"link","time":"2026-09-21T14:13:20Z",
                    "tags":{{"entity_id":"{entity}","site":"s{}"}},"fields":{{"x":1}}}}"#,
                    entity % 7
                )
            };
            let body = format!("[{}]", entities.map(record).collect::<Vec<_>>().join(","));
            let when = Acknowledgement::Durable;
            plane.write(Format::Json, body.as_bytes(), &limits, NOW_NS, when).unwrap();
        };
        let count = |label: &str, test: LabelTest| {
            let query = LabelQuery {
                matchers: vec![LabelMatcher { label: label.to_owned(), test }],
                start_ns: TIME_NS,
                end_ns: TIME_NS + 1,
                keeps_samples: false,
            };
            let until = Instant::now() + Duration::from_hours(1);
            let bounds = LabelBounds { samples_max: 1_000_000, until };
            plane.labelled(&query, bounds, NOW_NS).unwrap().len()
        };
        let regex = |text: &str| LabelTest::Matching(regex::Regex::new(text).unwrap());
        let equal = |text: &str| LabelTest::Equal(text.to_owned());
        let of_s3 = regex::Regex::new("^(?:s3.*)$").unwrap();
        let mut entities = 0;
        for end in [700, 2_100, 2_800] {
            write(entities..end);
            entities = end;
            for (label, test, expected) in [
                ("site", equal("s3"), end / 7),
                ("site", regex("^(?:s3|s5)$"), end / 7 * 2),
                ("site", regex("^(?:s3|)$"), end / 7),
                ("site", regex("^(?:s3.*)$"), end / 7),
                ("site", regex("^(?:s.*)$"), end),
                ("site", regex("^(?:s[35])$"), end / 7 * 2),
                ("site", LabelTest::NotMatching(of_s3.clone()), end / 7 * 6),
                ("site", LabelTest::NotEqual("s3".to_owned()), end / 7 * 6),
                ("site", equal(""), 0),
                ("zone", equal(""), end),
                ("entity_id", equal("12"), 1),
            ] {
                assert_eq!(count(label, test.clone()), expected, "{label} {test:?}");
            }
        }
    }

    #[test]
    fn a_boolean_is_0_or_1_in_reads_of_a_minute_and_of_a_day_before_and_after_compaction() {
        let plane = Plane::in_memory("acme").unwrap();
        let body = br#"[{"measurement":"link","time":"2026-09-21T14:13:20Z",
            "tags":{"entity_id":"a"},"fields":{"is_up":true,"is_far":false,"snr_db":7.5}}]"#;
        let limits = WriteLimits::default();
        plane.write(Format::Json, body, &limits, TIME_NS, Acknowledgement::Durable).unwrap();
        let expected = [("is_far", 0.0), ("is_up", 1.0), ("snr_db", 7.5)];
        let expected = expected.map(|(metric, value)| (metric.to_owned(), vec![value]));
        for is_compacted in [false, true] {
            if is_compacted {
                plane.compact(CompactionTrigger::Now, TIME_NS).unwrap().unwrap();
            }
            assert_eq!(metrics(&plane, 60), expected, "{is_compacted}");
            assert_eq!(metrics(&plane, 86_400), expected, "{is_compacted}");
        }
    }
}
