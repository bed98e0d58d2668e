//! Decisions by the rules. Each is made under the lock on the file.

use std::num::NonZeroU64;
use std::path::Path;

use crate::client::Client;
use crate::clock;
use crate::error::{LimiterError, LimiterResult};
use crate::file::SharedFile;
use crate::rules::{LimiterRules, RATE_WINDOW_NS, SECOND_NS};
use crate::table::ClientTable;

/// The counts of all clients. Threads may share the handle. Every process opens another handle.
#[derive(Debug)]
pub struct Limiter {
    rules: LimiterRules,
    file: SharedFile,
}

/// Whole seconds until a refused client should try again: rounded up, at least 1. Example: 1.2 s
/// left become 2.
pub type RetryAfter = NonZeroU64;

impl Limiter {
    /// Opens the file at `path`. Makes the file if it is missing, or if it has an earlier boot or
    /// other rings. Any number of processes may do so at the same time.
    ///
    /// # Errors
    ///
    /// Returns [`LimiterError::Io`] if the operating system refuses.
    pub fn open(path: &Path, rules: LimiterRules) -> LimiterResult<Self> {
        Ok(Self { rules, file: SharedFile::open(path, rules)? })
    }

    /// Counts a request, and returns `None`. If `client` has used up its minute, returns the time
    /// to wait and does not count the request. `now_ns` replaces the clock, which is read while the
    /// file is locked.
    ///
    /// # Errors
    ///
    /// Returns [`LimiterError::Io`] if the file cannot be read or written, and
    /// [`LimiterError::Forked`] if another process opened this handle.
    pub fn admit(&self, client: Client, now_ns: Option<u64>) -> LimiterResult<Option<RetryAfter>> {
        if self.rules.requests_per_minute == 0 {
            return Ok(None);
        }
        self.locked(now_ns, |table, now_ns| {
            let slot = table.find_or_claim(client, now_ns)?;
            let ring = table.admitted(&slot, now_ns);
            let cursor = ring.cursor()?;
            // Instants rise by at least 1 ns, even if processes read their clocks out of turn.
            let now_ns = now_ns.max(slot.since_ns()).max(cursor.newest_ns.saturating_add(1));
            if cursor.oldest_ns != 0 && now_ns - cursor.oldest_ns < RATE_WINDOW_NS {
                return Ok(Some(retry_after(cursor.oldest_ns + RATE_WINDOW_NS - now_ns)));
            }
            ring.write(cursor.index, now_ns)?;
            Ok(None)
        })
    }

    /// Returns the time that `client` must wait if it is locked out, otherwise `None`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Limiter::admit`].
    pub fn lockout(
        &self,
        client: Client,
        now_ns: Option<u64>,
    ) -> LimiterResult<Option<RetryAfter>> {
        if self.rules.lockout_failures == 0 {
            return Ok(None);
        }
        self.locked(now_ns, |table, now_ns| {
            let slot = table.find(client)?;
            let left_ns = slot.map_or(0, |slot| table.locked_ns(&slot, now_ns));
            Ok((left_ns > 0).then(|| retry_after(left_ns)))
        })
    }

    /// Counts a failure. If it reaches the limit, locks the client out and clears the count.
    /// Failures of requests in progress then neither count nor extend the lockout.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Limiter::admit`].
    pub fn record_failure(&self, client: Client, now_ns: Option<u64>) -> LimiterResult<()> {
        if self.rules.lockout_failures == 0 {
            return Ok(());
        }
        self.locked(now_ns, |table, now_ns| {
            let slot = table.find_or_claim(client, now_ns)?;
            if table.locked_ns(&slot, now_ns) > 0 {
                return Ok(());
            }
            let ring = table.failed(&slot, now_ns);
            let cursor = ring.cursor()?;
            let failed_ns = now_ns.max(slot.since_ns()).max(cursor.newest_ns.saturating_add(1));
            // The ring has one failure less than the limit, and this failure is the last.
            let window_ns = u64::from(self.rules.lockout_window_seconds) * SECOND_NS;
            if ring.len() == 0
                || (cursor.oldest_ns != 0 && failed_ns - cursor.oldest_ns < window_ns)
            {
                let lockout_ns = u64::from(self.rules.lockout_seconds) * SECOND_NS;
                return table.lock_until(&slot, now_ns.saturating_add(lockout_ns));
            }
            ring.write(cursor.index, failed_ns)
        })
    }

    /// Returns the most clients that fit. A further client pushes out the client of its bucket that
    /// was idle longest.
    #[must_use]
    pub fn clients_max(&self) -> u64 {
        self.file.layout().clients_max()
    }

    #[cfg(test)]
    pub(crate) fn layout(&self) -> crate::layout::FileLayout {
        self.file.layout()
    }

    /// Runs `work` under the lock on the file.
    fn locked<R>(
        &self,
        now_ns: Option<u64>,
        work: impl FnOnce(&ClientTable<'_>, u64) -> std::io::Result<R>,
    ) -> LimiterResult<R> {
        let held = self.file.hold()?;
        let outcome = now_ns.map_or_else(clock::boottime_ns, Ok).and_then(|now_ns| {
            // 0 means never in the file.
            work(&ClientTable::new(held.file(), self.file.layout(), self.rules), now_ns.max(1))
        });
        outcome.map_err(|error| LimiterError::io("count a request in", self.file.path(), error))
    }
}

fn retry_after(left_ns: u64) -> RetryAfter {
    NonZeroU64::new(left_ns.div_ceil(SECOND_NS)).unwrap_or(RetryAfter::MIN)
}
