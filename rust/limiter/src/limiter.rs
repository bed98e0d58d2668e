//! Decisions by the rules, each under the lock on the file.

use std::num::NonZeroU64;
use std::path::Path;

use crate::client::Client;
use crate::clock;
use crate::error::{Error, Result};
use crate::file::SharedFile;
use crate::rules::{RATE_WINDOW_NS, Rules, SECOND_NS};
use crate::table::Table;

/// The counts of all clients. Safe to share between threads; every process opens its own.
#[derive(Debug)]
pub struct Limiter {
    rules: Rules,
    file: SharedFile,
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
        Ok(Self { rules, file: SharedFile::open(path, rules)? })
    }

    /// Counts a request, unless `client` has used up its minute: then returns when to come back.
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
            let cursor = ring.cursor()?;
            // Rising by at least 1 ns even where processes read their clocks out of turn.
            let now_ns = now_ns.max(slot.since_ns()).max(cursor.newest_ns.saturating_add(1));
            if cursor.oldest_ns != 0 && now_ns - cursor.oldest_ns < RATE_WINDOW_NS {
                return Ok(Some(retry_after(cursor.oldest_ns + RATE_WINDOW_NS - now_ns)));
            }
            ring.write(cursor.index, now_ns)?;
            Ok(None)
        })
    }

    /// The wait of `client` until it may come back, where it is locked out.
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
            let cursor = ring.cursor()?;
            let failed_ns = now_ns.max(slot.since_ns()).max(cursor.newest_ns.saturating_add(1));
            // The ring holds one failure less than lock: this is the one more.
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

    /// Number of clients that fit. One more pushes out the one of its bucket that was idle longest.
    #[must_use]
    pub fn clients_max(&self) -> u64 {
        self.file.layout().clients_max()
    }

    #[cfg(test)]
    pub(crate) fn layout(&self) -> crate::layout::Layout {
        self.file.layout()
    }

    /// Runs `work` while no other thread or process does.
    fn locked<R>(
        &self,
        now_ns: Option<u64>,
        work: impl FnOnce(&Table<'_>, u64) -> std::io::Result<R>,
    ) -> Result<R> {
        let held = self.file.hold()?;
        let outcome = now_ns.map_or_else(clock::boottime_ns, Ok).and_then(|now_ns| {
            // 0 is "never" in the file.
            work(&Table::new(held.file(), self.file.layout(), self.rules), now_ns.max(1))
        });
        outcome.map_err(|error| Error::io("count a request in", self.file.path(), error))
    }
}

fn retry_after(left_ns: u64) -> RetryAfter {
    NonZeroU64::new(left_ns.div_ceil(SECOND_NS)).unwrap_or(RetryAfter::MIN)
}
