//! Counters and log lines of the requests that are answered here.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use fleetcast_core::plane::WriteReport;
use fleetcast_front::fair::Owner;

use super::counters::{Counters, Histogram};
use super::line_bound::write_served;
use super::log_line::{AnswerStatus, ServedRequest};
use super::unreadable::{RecordSource, note_unreadable};

/// Bound on the count of cached indexes: of accounts and routes, and of tenants.
const KNOWN_MAX: usize = 65_536;

/// Labels by which a request is counted.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct RequestLabels {
    /// The method, or the name of the surface.
    pub method: &'static str,
    /// The path, or the call.
    pub route: &'static str,
    /// The status of the answer.
    pub status: AnswerStatus<'static>,
    /// The error code of the answer, if the answer is an error.
    pub code: Option<&'static str>,
    /// The account, if the key is known.
    pub account: Option<Owner>,
    /// Tenant and id of the key of a refusal, if the key is known.
    pub refused_key: Option<(String, String)>,
    /// True if the account, or the address, already held its share.
    pub is_over_share: bool,
}

/// Indexes of the counters that one request changes.
#[derive(Debug)]
pub struct RequestIndexes {
    /// Requests under way, a gauge.
    pub in_flight: usize,
    /// Counters that each request raises by one.
    pub counts: Box<[usize]>,
    /// Durations of the route.
    pub seconds: Histogram,
}

/// Indexes of the counters that one batch changes.
#[derive(Debug)]
pub struct WriteIndexes {
    /// Records that were stored.
    pub accepted: usize,
    /// Records that were rejected.
    pub rejected: usize,
    /// Records whose time was set to the time of the service.
    pub clamped: usize,
    /// Records without an entity.
    pub no_entity: usize,
    /// Records of a measurement that no read shows.
    pub other_measurement: usize,
    /// Durations of commits.
    pub commit_seconds: Histogram,
}

/// Finds the indexes of counters by their names, which are the names of the application.
pub trait Indexes: Send + Sync {
    /// Returns the counters of requests.
    fn of_requests(&self, labels: &RequestLabels) -> Option<RequestIndexes>;

    /// Returns the counter of a tenant's CPU time, in nanoseconds.
    fn of_cpu(&self, tenant: &str) -> Option<usize>;

    /// Returns the counters of batches.
    fn of_writes(&self, tenant: &str) -> Option<WriteIndexes>;
}

type IndexCache<K, V> = RwLock<HashMap<K, Arc<V>, foldhash::fast::RandomState>>;

/// Counts and logs requests of one process. Safe to share between threads.
pub struct Accounting {
    counters: Counters,
    indexes: Box<dyn Indexes>,
    /// The index of the counter of requests answered here; `None` if they are not counted.
    answered: Option<usize>,
    /// The name of the process.
    process: String,
    requests: IndexCache<RequestLabels, RequestIndexes>,
    writes: IndexCache<Owner, WriteIndexes>,
    /// Counters of the CPU time of accounts.
    cpu: IndexCache<Owner, usize>,
}

/// A request that is under way.
pub struct RequestEntry {
    accounting: Arc<Accounting>,
    indexes: Option<Arc<RequestIndexes>>,
}

impl Accounting {
    /// Makes an accounting that counts in `counters`, at the indexes that `indexes` knows.
    #[must_use]
    pub fn new(
        counters: Counters,
        indexes: Box<dyn Indexes>,
        answered: Option<usize>,
        process: &str,
    ) -> Self {
        let process = process.to_owned();
        let (requests, writes, cpu) = (RwLock::default(), RwLock::default(), RwLock::default());
        Self { counters, indexes, answered, process, requests, writes, cpu }
    }

    /// Counts a request as under way.
    pub fn begin(self: &Arc<Self>, labels: &RequestLabels) -> RequestEntry {
        let indexes = known(&self.requests, labels, || self.indexes.of_requests(labels));
        if let Some(indexes) = &indexes {
            self.counters.add(indexes.in_flight, 1);
        }
        RequestEntry { accounting: Arc::clone(self), indexes }
    }

    /// Learns the tenant of an account, for which CPU time is counted.
    pub fn learn(&self, account: &Owner, tenant: &str) {
        known(&self.cpu, account, || self.indexes.of_cpu(tenant));
    }

    /// Counts the CPU time of an account. The time of an unknown owner is not counted: it is an
    /// address.
    pub fn note_used(&self, owner: &Owner, used: Duration) {
        if let Some(index) = known(&self.cpu, owner, || None) {
            self.counters.add(*index, u64::try_from(used.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// Counts a batch that was written by a key.
    pub fn wrote(&self, account: &Owner, (tenant, key_id): (&str, &str), written: &WriteReport) {
        let indexes = known(&self.writes, account, || self.indexes.of_writes(tenant));
        let Some(indexes) = indexes else { return };
        let counters = &self.counters;
        counters.add(indexes.accepted, written.accepted_count.into());
        counters.add(indexes.rejected, written.rejected_indices.len() as u64);
        counters.add(indexes.clamped, written.clamped_count.into());
        indexes.commit_seconds.observe(counters, written.commit);
        if written.no_entity_count + written.other_measurement_count > 0 {
            counters.add(indexes.no_entity, written.no_entity_count.into());
            counters.add(indexes.other_measurement, written.other_measurement_count.into());
            note_unreadable(&RecordSource { tenant, key_id, process: &self.process }, written);
        }
    }

    /// The name of the process.
    #[must_use]
    pub fn process(&self) -> &str {
        &self.process
    }
}

impl RequestEntry {
    /// Counts and logs the request when it has its answer.
    pub fn end(self, served: &ServedRequest<'_>) {
        let (counters, duration): (_, Duration) = (&self.accounting.counters, served.duration);
        if let Some(indexes) = &self.indexes {
            indexes.counts.iter().for_each(|index| counters.add(*index, 1));
            indexes.seconds.observe(counters, duration);
        }
        if let Some(answered) = self.accounting.answered {
            counters.add(answered, 1);
        }
        write_served(served);
    }

    /// The accounting that holds this entry.
    #[must_use]
    pub fn accounting(&self) -> &Arc<Accounting> {
        &self.accounting
    }
}

impl Drop for RequestEntry {
    /// The request is no longer under way: it is answered, or another part answers it.
    fn drop(&mut self) {
        if let Some(indexes) = &self.indexes {
            self.accounting.counters.take(indexes.in_flight, 1);
        }
    }
}

/// Counts a request as under way until it is dropped.
pub struct InFlightGuard {
    accounting: Arc<Accounting>,
    gauge: usize,
}

impl InFlightGuard {
    /// Adds one to the gauge at that index.
    #[must_use]
    pub fn begin(accounting: &Arc<Accounting>, gauge: usize) -> Self {
        accounting.counters.add(gauge, 1);
        Self { accounting: Arc::clone(accounting), gauge }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.accounting.counters.take(self.gauge, 1);
    }
}

/// Returns the value of a key. The first use of the key makes the value.
fn known<K: Eq + Hash + Clone, V>(
    all: &IndexCache<K, V>,
    key: &K,
    make: impl FnOnce() -> Option<V>,
) -> Option<Arc<V>> {
    let found = all.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
    if found.is_some() {
        return found;
    }
    let made = Arc::new(make()?);
    let mut all = all.write().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= KNOWN_MAX {
        all.clear();
    }
    all.insert(key.clone(), Arc::clone(&made));
    Some(made)
}
