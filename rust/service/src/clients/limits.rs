//! Rate limit and lockout per client, in files that all processes of a host share.

use std::fs::DirBuilder;
use std::num::NonZeroU64;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use fleetcast_limiter::{Client, Limiter, LimiterError, LimiterResult, LimiterRules};

use super::address::Networks;
use crate::refusal::{ContextValue, Refusal};

/// Called with each error of a file.
pub type FaultHandler = Arc<dyn Fn(&LimiterError) + Send + Sync>;

/// Counts in a file that all processes share.
///
/// The counts protect the service, so an error of the file lets requests pass. After an error the
/// file is opened again, so that the error ends when its cause does.
pub struct LimiterFile {
    path: PathBuf,
    rules: LimiterRules,
    on_fault: FaultHandler,
    /// `None` before the first use, and after an error.
    limiter: RwLock<Option<Arc<Limiter>>>,
}

impl LimiterFile {
    /// Makes a handle of the file at `path`. The first use opens the file.
    #[must_use]
    pub fn new(path: PathBuf, rules: LimiterRules, on_fault: FaultHandler) -> Self {
        Self { path, rules, on_fault, limiter: RwLock::new(None) }
    }

    fn ask<R>(&self, question: impl FnOnce(&Limiter) -> LimiterResult<Option<R>>) -> Option<R> {
        self.try_to_ask(question).unwrap_or_else(|error| {
            (self.on_fault)(&error);
            None
        })
    }

    /// Returns the result of `question`.
    ///
    /// # Errors
    /// Returns the error of the file.
    pub fn try_to_ask<R>(
        &self,
        question: impl FnOnce(&Limiter) -> LimiterResult<R>,
    ) -> LimiterResult<R> {
        self.limiter().and_then(|limiter| question(&limiter)).inspect_err(|_| {
            *self.limiter.write().unwrap_or_else(PoisonError::into_inner) = None;
        })
    }

    fn limiter(&self) -> LimiterResult<Arc<Limiter>> {
        let known = self.limiter.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(limiter) = known {
            return Ok(limiter);
        }
        let mut known = self.limiter.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = self.path.parent() {
            // If this fails, opening the file reports why.
            drop(DirBuilder::new().recursive(true).mode(0o700).create(folder));
        }
        let limiter = Arc::new(Limiter::open(&self.path, self.rules)?);
        *known = Some(Arc::clone(&limiter));
        Ok(limiter)
    }
}

/// Rate limit and lockout for one listener.
pub struct ClientLimits {
    exempt: Networks,
    rates: Arc<LimiterFile>,
    lockouts: Arc<LimiterFile>,
}

impl ClientLimits {
    /// Counts requests in `rates`, except requests from `exempt`, and invalid keys in `lockouts`.
    #[must_use]
    pub fn new(exempt: Networks, rates: Arc<LimiterFile>, lockouts: Arc<LimiterFile>) -> Self {
        Self { exempt, rates, lockouts }
    }

    /// Counts a request of the client at an address.
    ///
    /// # Errors
    /// Returns `rate_limited` if the client has sent too many requests.
    pub fn admit(&self, address: &str) -> std::result::Result<(), Refusal> {
        if self.rates.rules.requests_per_minute == 0 || self.exempt.has(address) {
            return Ok(());
        }
        refuse("rate_limited", self.rates.ask(|rates| rates.admit(Client::of(address), None)))
    }

    /// Refuses a client that is locked out.
    ///
    /// # Errors
    /// Returns `auth_lockout` if the client is locked out.
    pub fn check_lockout(&self, address: &str) -> std::result::Result<(), Refusal> {
        if self.lockouts.rules.lockout_failures == 0 {
            return Ok(());
        }
        let wait = self.lockouts.ask(|lockouts| lockouts.lockout(Client::of(address), None));
        refuse("auth_lockout", wait)
    }

    /// Counts an invalid key.
    pub fn record_failure(&self, address: &str) {
        if self.lockouts.rules.lockout_failures > 0 {
            let failed = |limiter: &Limiter| limiter.record_failure(Client::of(address), None);
            self.lockouts.ask(|limiter| failed(limiter).map(|()| None::<()>));
        }
    }
}

fn refuse(code: &'static str, wait: Option<NonZeroU64>) -> std::result::Result<(), Refusal> {
    match wait {
        None => Ok(()),
        Some(seconds) => {
            Err(Refusal::new(code).with("retry_after_seconds", ContextValue::Whole(seconds.get())))
        }
    }
}
