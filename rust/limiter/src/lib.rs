//! Request rate and lockout per client, counted together by all processes of a host.
//!
//! One file holds everything: a ring of the last admitted instants and one of the last failures
//! for each client. A call takes the lock on the file, reads a few hundred bytes, changes at most
//! two places, each with one write inside one page, and lets go. So whatever kills a process and
//! whenever, the kernel frees the lock and every entry is as it was before the call or after it.
//!
//! The rings make the rate exact: a request is admitted when the N-th last admitted one is a
//! minute old, so any N + 1 admitted in a row span a minute, wherever one starts to count.

mod client;
mod clock;
mod error;
mod file;
mod ring;
mod table;
#[cfg(test)]
mod tests;

use std::num::NonZeroU64;
use std::path::Path;

pub use client::Client;
pub use error::{Error, Result};

use file::Shared;
use table::Table;

const SECOND_NS: u64 = 1_000_000_000;

/// The span over which the rate is counted.
const RATE_WINDOW_NS: u64 = 60 * SECOND_NS;

/// The numbers of the rules. A limit of 0 is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Requests admitted in any 60 s.
    pub requests_per_minute: u32,
    /// Failures within the window that lock a client out.
    pub lockout_failures: u32,
    /// How far apart these failures may lie, seconds.
    pub lockout_window_seconds: u32,
    /// How long a lock lasts, seconds.
    pub lockout_seconds: u32,
}

/// The counts of all clients. Safe to share between threads; every process opens its own.
#[derive(Debug)]
pub struct Limiter {
    rules: Rules,
    shared: Shared,
}

/// Whole seconds until a refused client should come back: rounded up, at least 1.
pub type RetryAfter = NonZeroU64;

impl Limiter {
    /// Opens the file at `path`, making it where it is missing or of an earlier boot or of other
    /// rings. Any number of processes may do so at once.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] as the operating system has it.
    pub fn open(path: &Path, rules: Rules) -> Result<Self> {
        let shared = Shared::open(path, rules)?;
        Ok(Self { rules, shared })
    }

    /// Counts a request, unless `client` has used up its minute: then says when to come back.
    /// Refused requests do not count. `now_ns` replaces the clock, which is read while the
    /// file is locked.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Forked`] where another process opened this.
    pub fn admit(&self, client: Client, now_ns: Option<u64>) -> Result<Option<RetryAfter>> {
        if self.rules.requests_per_minute == 0 {
            return Ok(None);
        }
        self.locked(now_ns, |table, now_ns| {
            let slot = table.find_or_claim(client, now_ns)?;
            let ring = table.admitted(&slot, now_ns);
            let place = ring.place()?;
            // Rising by at least 1 ns even where processes read their clocks out of turn.
            let now_ns = now_ns.max(slot.since_ns()).max(place.newest_ns.saturating_add(1));
            if place.oldest_ns != 0 && now_ns - place.oldest_ns < RATE_WINDOW_NS {
                return Ok(Some(retry_after(place.oldest_ns + RATE_WINDOW_NS - now_ns)));
            }
            ring.write(place.index, now_ns)?;
            Ok(None)
        })
    }

    /// When `client` may come back, where it is locked out.
    ///
    /// # Errors
    ///
    /// As [`Limiter::admit`].
    pub fn lockout(&self, client: Client, now_ns: Option<u64>) -> Result<Option<RetryAfter>> {
        if self.rules.lockout_failures == 0 {
            return Ok(None);
        }
        self.locked(now_ns, |table, now_ns| {
            let slot = table.find(client)?;
            let left_ns = slot.map_or(0, |slot| table.locked_ns(&slot, now_ns));
            Ok((left_ns > 0).then(|| retry_after(left_ns)))
        })
    }

    /// Counts a failure. The one that reaches the limit locks the client out and clears the count;
    /// failures of requests that were under way then neither count nor extend it.
    ///
    /// # Errors
    ///
    /// As [`Limiter::admit`].
    pub fn record_failure(&self, client: Client, now_ns: Option<u64>) -> Result<()> {
        if self.rules.lockout_failures == 0 {
            return Ok(());
        }
        self.locked(now_ns, |table, now_ns| {
            let slot = table.find_or_claim(client, now_ns)?;
            if table.locked_ns(&slot, now_ns) > 0 {
                return Ok(());
            }
            let ring = table.failed(&slot, now_ns);
            let place = ring.place()?;
            let failed_ns = now_ns.max(slot.since_ns()).max(place.newest_ns.saturating_add(1));
            // The ring holds one failure less than lock: this is the one more.
            let window_ns = u64::from(self.rules.lockout_window_seconds) * SECOND_NS;
            if ring.len() == 0 || (place.oldest_ns != 0 && failed_ns - place.oldest_ns < window_ns)
            {
                let lockout_ns = u64::from(self.rules.lockout_seconds) * SECOND_NS;
                return table.lock_until(&slot, now_ns.saturating_add(lockout_ns));
            }
            ring.write(place.index, failed_ns)
        })
    }

    /// How many clients fit. One more pushes out the one of its bucket that was idle longest.
    #[must_use]
    pub fn clients_max(&self) -> u64 {
        self.shared.layout().clients_max()
    }

    /// Runs `work` while no other thread or process does.
    fn locked<R>(
        &self,
        now_ns: Option<u64>,
        work: impl FnOnce(&Table<'_>, u64) -> std::io::Result<R>,
    ) -> Result<R> {
        let held = self.shared.hold()?;
        let outcome = now_ns.map_or_else(clock::boottime_ns, Ok).and_then(|now_ns| {
            // 0 is "never" in the file.
            work(&Table::new(held.file(), self.shared.layout(), self.rules), now_ns.max(1))
        });
        outcome.map_err(|error| Error::io("count a request in", self.shared.path(), error))
    }
}

fn retry_after(left_ns: u64) -> RetryAfter {
    NonZeroU64::new(left_ns.div_ceil(SECOND_NS)).unwrap_or(RetryAfter::MIN)
}
