//! The identity behind a key: each request reads the accounts as they are.
//!
//! Records that were read a moment ago are not opened and decoded again while the store and its files
//! are as they were.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use fleetcast_core::model::error::Error;
use fleetcast_core::storage::records::{Mark, RecordStore, View};

use super::record::Record;
use super::records::{ApiKey, Identity, Tenant};
use super::secret_hash::{HASH_BYTES, SecretHasher, read_hash};
use super::secret_text::{SecretKind, SecretText};

/// Keys whose records are kept decoded.
const KNOWN_MAX: usize = 4_096;

/// The reason for which a key gives no identity.
#[derive(Debug)]
pub enum Rejection {
    /// No key was sent.
    NoKey,
    /// A key was sent and is no good: the kind that counts as a failure of the client.
    InvalidKey,
    /// The tenant of the key is not there.
    TenantUnknown,
    /// The tenant of the key is disabled.
    TenantDisabled,
    /// The accounts cannot be read now.
    Unavailable(Error),
}

/// Checks keys for one environment. Safe to share between threads.
pub struct Authenticator {
    records: Arc<dyn RecordStore>,
    hasher: SecretHasher,
    environment: String,
    known: RwLock<HashMap<String, Arc<Known>, foldhash::fast::RandomState>>,
}

/// The records of a key, as one version of the store has them.
struct Known {
    mark: Mark,
    key: Arc<ApiKey>,
    hash: [u8; HASH_BYTES],
    identity: Option<Arc<Identity>>,
}

impl Authenticator {
    /// Checks keys by the records of `records`, whose hashes are made under `pepper`.
    #[must_use]
    pub fn new(records: Arc<dyn RecordStore>, pepper: &[u8], environment: &str) -> Self {
        Self {
            records,
            hasher: SecretHasher::new(pepper),
            environment: environment.to_owned(),
            known: RwLock::default(),
        }
    }

    /// The identity behind the text of a key, `now` being seconds since 1970.
    ///
    /// A refusal rests on the newest state: if changes of others may not be known yet, it is decided
    /// once more.
    ///
    /// # Errors
    /// The reason for which there is none.
    pub fn identify(&self, key: Option<&str>, now: i64) -> Result<Arc<Identity>, Rejection> {
        let text = SecretText::read(SecretKind::Key, key.ok_or(Rejection::NoKey)?)
            .ok_or(Rejection::InvalidKey)?;
        match self.identity(&text, now) {
            Err(Rejection::Unavailable(error)) => Err(Rejection::Unavailable(error)),
            Err(rejection) if !self.records.renew().map_err(Rejection::Unavailable)? => {
                Err(rejection)
            }
            Err(_) => self.identity(&text, now),
            found => found,
        }
    }

    /// The identity behind a key whose records were read before, as far as changes of the store are
    /// known here. A replica of another machine's records, once read, is not asked for newer ones.
    ///
    /// `None` for every other key: [`Self::identify`] has more to say about it.
    pub fn identify_known(&self, key: &str, now: i64) -> Option<Arc<Identity>> {
        let text = SecretText::read(SecretKind::Key, key)?;
        self.known(text.id)?;
        self.identity(&text, now).ok()
    }

    /// The identity behind a key, as far as changes of the store are known here.
    fn identity(&self, text: &SecretText<'_>, now: i64) -> Result<Arc<Identity>, Rejection> {
        let known = self.records_of(text.id).map_err(Rejection::Unavailable)?;
        let hash = known.as_ref().map(|known| &known.hash);
        let is_genuine = self.hasher.proves(text.secret, hash);
        let known = known.filter(|_| is_genuine).ok_or(Rejection::InvalidKey)?;
        let is_for_here = [&*known.key.environment, text.environment]
            .iter()
            .all(|environment| *environment == self.environment);
        if known.key.ended(now).is_some() || !is_for_here {
            return Err(Rejection::InvalidKey);
        }
        match &known.identity {
            None => Err(Rejection::TenantUnknown),
            Some(identity) if identity.tenant.disabled => Err(Rejection::TenantDisabled),
            Some(identity) => Ok(Arc::clone(identity)),
        }
    }

    /// The records of a key as they were read last.
    fn known(&self, key_id: &str) -> Option<Arc<Known>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(key_id).cloned()
    }

    fn records_of(&self, key_id: &str) -> Result<Option<Arc<Known>>, Error> {
        // Before the records, which may be newer: then they are read once more.
        let mark = self.records.mark()?;
        if let Some(known) = self.known(key_id).filter(|known| known.mark == mark) {
            return Ok(Some(known));
        }
        let mut view = View::new(self.records.begin(false)?);
        let Some(key) = ApiKey::get(&mut view, key_id)? else { return Ok(None) };
        let hash = read_hash(&key.hash).ok_or(Error::Corrupt { what: ApiKey::WHAT })?;
        let key = Arc::new(key);
        let identity = Tenant::get(&mut view, &key.tenant)?.map(|tenant| {
            let account = tenant.account_id.as_str().into();
            Arc::new(Identity { account, tenant: Arc::new(tenant), key: Arc::clone(&key) })
        });
        let found = Arc::new(Known { mark, key, hash, identity });
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key_id.to_owned(), Arc::clone(&found));
        Ok(Some(found))
    }
}

/// The wall clock, in seconds since 1970.
#[must_use]
pub fn wall_seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(now).unwrap_or(i64::MAX)
}
