//! The identity behind a key: each request reads the accounts as they are.
//!
//! Records that were read a moment ago are not opened and decoded again while the store and its files
//! are as they were.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use fleetcast_core::model::error::Error;
use fleetcast_core::storage::records::{Mark, RecordStore};
use ring::hmac;
use serde::de::DeserializeOwned;

use super::key_text::KeyText;
use super::records::{ApiKey, Identity, KEYS, TENANTS, Tenant};

/// Keys whose records are kept decoded.
const KNOWN_MAX: usize = 4_096;
const HASH_BYTES: usize = 32;

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
    pepper: hmac::Key,
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
            pepper: hmac::Key::new(hmac::HMAC_SHA256, pepper),
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
        let text = KeyText::read(key.ok_or(Rejection::NoKey)?).ok_or(Rejection::InvalidKey)?;
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
        let text = KeyText::read(key)?;
        self.known(text.key_id)?;
        self.identity(&text, now).ok()
    }

    /// The identity behind a key, as far as changes of the store are known here.
    fn identity(&self, text: &KeyText<'_>, now: i64) -> Result<Arc<Identity>, Rejection> {
        let known = self.records_of(text.key_id).map_err(Rejection::Unavailable)?;
        // An unknown id costs the same hash and comparison.
        let hash = known.as_ref().map_or([0; HASH_BYTES], |known| known.hash);
        let is_genuine = hmac::verify(&self.pepper, text.secret.as_bytes(), &hash).is_ok();
        let known = known.filter(|_| is_genuine).ok_or(Rejection::InvalidKey)?;
        let is_for_here = [&*known.key.environment, text.environment]
            .iter()
            .all(|environment| *environment == self.environment);
        if known.key.has_ended(now) || !is_for_here {
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
        let mut snapshot = self.records.begin(false)?;
        let mut get = |space, key: &str| -> Result<Option<Vec<u8>>, Error> {
            Ok(snapshot.get_all(space, &[key.as_bytes()])?.pop().flatten())
        };
        let Some(key) = get(KEYS, key_id)? else { return Ok(None) };
        let key: Arc<ApiKey> = Arc::new(decoded(&key, "the record of a key")?);
        let tenant = get(TENANTS, &key.tenant)?;
        let tenant = tenant.map(|tenant| decoded::<Tenant>(&tenant, "the record of a tenant"));
        let identity = tenant.transpose()?.map(|tenant| {
            let account = tenant.account_id.as_str().into();
            Arc::new(Identity { account, tenant, key: Arc::clone(&key) })
        });
        let hash = hash_of(&key.hash).ok_or(Error::Corrupt { what: "the record of a key" })?;
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

fn decoded<T: DeserializeOwned>(record: &[u8], what: &'static str) -> Result<T, Error> {
    serde_json::from_slice(record).map_err(|_| Error::Corrupt { what })
}

/// The bytes of a hash in hexadecimal.
fn hash_of(text: &str) -> Option<[u8; HASH_BYTES]> {
    let mut hash = [0; HASH_BYTES];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != HASH_BYTES || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(pairs) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
    }
    Some(hash)
}
