//! Accounts of a request that was served here, by indexes and texts of Python.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pyo3::prelude::*;

use fleetcast_core::plane::Written;
use fleetcast_front::books::{Counters, Histogram, LogLine, write_line};

use crate::unreadable::{Source, note};

/// `metrics.surfaces.RequestIndexes`.
#[derive(FromPyObject)]
pub(super) struct RequestIndexes {
    in_flight: usize,
    total: usize,
    usage: usize,
    seconds: HistogramIndexes,
}

/// `metrics.surfaces.WriteIndexes`.
#[derive(FromPyObject)]
pub(super) struct WriteIndexes {
    accepted: usize,
    rejected: usize,
    clamped: usize,
    no_entity: usize,
    other_measurement: usize,
    commit_seconds: HistogramIndexes,
}

/// `metrics.counters.Histogram`.
#[derive(FromPyObject)]
struct HistogramIndexes {
    buckets: Vec<usize>,
    sum: usize,
}

pub(super) struct Books {
    requests: RequestIndexes,
    seconds: Histogram,
    writes: WriteIndexes,
    commit_seconds: Histogram,
    line: LogLine,
    source: Source,
}

impl Books {
    pub(super) fn new(
        requests: RequestIndexes,
        writes: WriteIndexes,
        bounds: &Arc<[f64]>,
        (texts, source): ([String; 6], Source),
    ) -> Self {
        let histogram = |indexes: &HistogramIndexes| Histogram {
            bounds: Arc::clone(bounds),
            buckets: indexes.buckets.clone().into(),
            sum: indexes.sum,
        };
        Self {
            seconds: histogram(&requests.seconds),
            commit_seconds: histogram(&writes.commit_seconds),
            requests,
            writes,
            line: LogLine { texts: texts.map(String::into_boxed_str) },
            source,
        }
    }

    pub(super) fn begin(&self, counters: &Counters) {
        counters.add(self.requests.in_flight, 1);
    }

    /// Takes `begin` back: it begins anew elsewhere.
    pub(super) fn interrupt(&self, counters: &Counters) {
        counters.take(self.requests.in_flight, 1);
    }

    pub(super) fn end(
        &self,
        counters: &Counters,
        id: &[u8],
        duration: Duration,
        written: &Written,
        bytes: (u64, usize),
    ) {
        counters.add(self.writes.accepted, written.accepted_count.into());
        counters.add(self.writes.rejected, written.rejected_indices.len() as u64);
        counters.add(self.writes.clamped, written.clamped_count.into());
        if written.no_entity_count + written.other_measurement_count > 0 {
            counters.add(self.writes.no_entity, written.no_entity_count.into());
            counters.add(self.writes.other_measurement, written.other_measurement_count.into());
            note(&self.source, written);
        }
        self.commit_seconds.observe(counters, written.commit);
        counters.take(self.requests.in_flight, 1);
        counters.add(self.requests.total, 1);
        counters.add(self.requests.usage, 1);
        self.seconds.observe(counters, duration);
        write_line(&self.line.of(id, duration, bytes, SystemTime::now()));
    }
}
