//! CPU time that owners have used lately.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::Owner;

/// After this time, CPU time counts for half.
const HALF_LIFE: Duration = Duration::from_secs(1);
/// CPU time below which an owner is not large: a tenth of a core does not reach it.
const LARGE_NS: u64 = 100_000_000;
/// CPU time that is forgotten.
const FORGOTTEN_NS: u64 = 1_000_000;

/// CPU time of each owner, of which older time counts for less.
///
/// Example: an owner that keeps a core busy has between one and two seconds. Two seconds after it
/// stopped it has a quarter of that.
#[derive(Debug)]
pub(super) struct Usage {
    used_ns: HashMap<Owner, u64, foldhash::fast::RandomState>,
    total_ns: u64,
    halved_at: Instant,
}

impl Usage {
    pub(super) fn new(now: Instant) -> Self {
        Self { used_ns: HashMap::default(), total_ns: 0, halved_at: now }
    }

    /// Counts CPU time of an owner.
    pub(super) fn add(&mut self, owner: &Owner, used: Duration, now: Instant) {
        self.age(now);
        let used_ns = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX);
        self.total_ns = self.total_ns.saturating_add(used_ns);
        if let Some(sum) = self.used_ns.get_mut(owner) {
            *sum = sum.saturating_add(used_ns);
        } else {
            self.used_ns.insert(owner.clone(), used_ns);
        }
    }

    /// CPU time that an owner has used lately.
    pub(super) fn of(&self, owner: &str) -> u64 {
        self.used_ns.get(owner).copied().unwrap_or(0)
    }

    /// Returns true if an owner has used more CPU time than its equal part, and others have used
    /// some. Example: of three owners, the owner with more than a third is large.
    pub(super) fn is_large(&self, owner: &str) -> bool {
        let (used_ns, owners) = (self.of(owner), self.used_ns.len() as u64);
        used_ns >= LARGE_NS && owners > 1 && used_ns.saturating_mul(owners) > self.total_ns
    }

    /// Returns true if other owners have used CPU time lately. A probe of health is forgotten.
    pub(super) fn has_others(&self, owner: &str) -> bool {
        self.total_ns.saturating_sub(self.of(owner)) >= FORGOTTEN_NS
    }

    fn age(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.halved_at);
        let halvings = u32::try_from(passed.as_secs() / HALF_LIFE.as_secs()).unwrap_or(u32::MAX);
        if halvings == 0 {
            return;
        }
        self.halved_at = now;
        self.used_ns.retain(|_, used_ns| {
            *used_ns = used_ns.checked_shr(halvings).unwrap_or(0);
            *used_ns >= FORGOTTEN_NS
        });
        self.total_ns = self.used_ns.values().sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn time_counts_for_half_after_a_second_and_is_forgotten_in_the_end() {
        let (start, owner) = (Instant::now(), Owner::from("a"));
        let mut usage = Usage::new(start);
        usage.add(&owner, SECOND, start);
        usage.add(&owner, SECOND, start + SECOND);
        assert_eq!(usage.of("a"), 1_500_000_000);
        usage.add(&Owner::from("b"), SECOND, start + 3 * SECOND);
        assert_eq!(usage.of("a"), 375_000_000);
        usage.add(&Owner::from("b"), SECOND, start + 90 * SECOND);
        assert_eq!((usage.of("a"), usage.used_ns.len()), (0, 1));
    }

    #[test]
    fn others_are_active_from_a_millisecond_on() {
        let start = Instant::now();
        let mut usage = Usage::new(start);
        usage.add(&Owner::from("a"), SECOND, start);
        usage.add(&Owner::from("probe"), Duration::from_micros(100), start);
        assert!(!usage.has_others("a"));
        assert!(usage.has_others("probe"));
        usage.add(&Owner::from("b"), Duration::from_millis(1), start);
        assert!(usage.has_others("a"));
        assert!(usage.has_others("new"));
    }

    #[test]
    fn large_is_who_uses_more_than_an_equal_part_beside_others() {
        let start = Instant::now();
        let mut usage = Usage::new(start);
        usage.add(&Owner::from("a"), SECOND, start);
        assert!(!usage.is_large("a"), "it is alone");
        usage.add(&Owner::from("b"), SECOND / 100, start);
        assert!(usage.is_large("a"));
        assert!(!usage.is_large("b"));
        usage.add(&Owner::from("b"), SECOND, start);
        assert!(usage.is_large("b"));
        assert!(!usage.is_large("a"));
    }
}
