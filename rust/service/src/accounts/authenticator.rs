//! The identity behind a key. Each request reads the present state of the accounts.
//!
//! Records that were read shortly before are not opened and decoded again while the store and its
//! files are unchanged.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use fleetcast_core::model::error::Error;
use fleetcast_core::storage::records::{RecordStore, RecordTransaction, SealedRecords, StateMark};

use super::record::Record;
use super::records::{ApiKey, Identity, Tenant};
use super::secret_hash::{HASH_BYTES, SecretHasher, read_hash};
use super::secret_text::{SecretKind, SecretText};

/// Bound on the count of keys whose decoded records are kept.
const KNOWN_MAX: usize = 4_096;

/// The reason for which a key gives no identity.
#[derive(Debug)]
pub enum Rejection {
    /// No key was sent.
    NoKey,
    /// A key was sent and is not valid. This counts as a failure of the client.
    InvalidKey,
    /// The tenant of the key does not exist.
    TenantUnknown,
    /// The tenant of the key is disabled.
    TenantDisabled,
    /// The accounts cannot be read now.
    Unavailable(Error),
}

/// Checks keys for one environment. Safe to share between threads.
pub struct Authenticator {
    records: Arc<dyn RecordStore>,
    pepper: Pepper,
    environment: String,
    known: RwLock<HashMap<String, Arc<KeyRecords>, foldhash::fast::RandomState>>,
}

/// The records of a key in one version of the store.
struct KeyRecords {
    mark: StateMark,
    key: Arc<ApiKey>,
    hash: [u8; HASH_BYTES],
    identity: Option<Arc<Identity>>,
}

/// The secret of the hashes in the records.
enum Pepper {
    Given(SecretHasher),
    /// A secret of the store, read with the first request.
    Kept {
        store: Arc<SealedRecords>,
        label: String,
        read: OnceLock<SecretHasher>,
    },
}

impl Pepper {
    fn hasher(&self) -> Result<&SecretHasher, Error> {
        match self {
            Self::Given(hasher) => Ok(hasher),
            Self::Kept { store, label, read } => {
                if let Some(hasher) = read.get() {
                    return Ok(hasher);
                }
                let pepper = store.secret(label)?;
                Ok(read.get_or_init(|| SecretHasher::new(&*pepper)))
            }
        }
    }
}

impl Authenticator {
    /// Makes an authenticator that reads `records`. `pepper` is the secret of the hashes in the
    /// records.
    #[must_use]
    pub fn new(records: Arc<dyn RecordStore>, pepper: &[u8], environment: &str) -> Self {
        Self {
            records,
            pepper: Pepper::Given(SecretHasher::new(pepper)),
            environment: environment.to_owned(),
            known: RwLock::default(),
        }
    }

    /// Makes an authenticator that reads `records`, whose secret with this label is the secret of
    /// the hashes. The first request reads the secret.
    #[must_use]
    pub fn of_store(records: Arc<SealedRecords>, label: &str, environment: &str) -> Self {
        let (store, label) = (Arc::clone(&records), label.to_owned());
        let pepper = Pepper::Kept { store, label, read: OnceLock::new() };
        let environment = environment.to_owned();
        Self { records, pepper, environment, known: RwLock::default() }
    }

    /// Returns the identity behind the text of a key. `now` is in seconds since 1970.
    ///
    /// A refusal rests on the newest state. If recent changes may be unknown here, the check runs
    /// again.
    ///
    /// # Errors
    /// Returns the [`Rejection`] if the key gives no identity.
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

    /// Returns the identity behind a key whose records were read before, by the changes of the
    /// store that are known here. A replica that was read once is not asked for newer records.
    ///
    /// Returns `None` for every other key; [`Self::identify`] tells the reason.
    pub fn identify_known(&self, key: &str, now: i64) -> Option<Arc<Identity>> {
        let text = SecretText::read(SecretKind::Key, key)?;
        self.known(text.id)?;
        self.identity(&text, now).ok()
    }

    /// Returns the identity behind a key, by the changes of the store that are known here.
    fn identity(&self, text: &SecretText<'_>, now: i64) -> Result<Arc<Identity>, Rejection> {
        let known = self.records_of(text.id).map_err(Rejection::Unavailable)?;
        let hash = known.as_ref().map(|known| &known.hash);
        let hasher = self.pepper.hasher().map_err(Rejection::Unavailable)?;
        let is_genuine = hasher.proves(text.secret, hash);
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

    /// Returns the records of a key as they were read last.
    fn known(&self, key_id: &str) -> Option<Arc<KeyRecords>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(key_id).cloned()
    }

    fn records_of(&self, key_id: &str) -> Result<Option<Arc<KeyRecords>>, Error> {
        // The mark is read before the records. If the records are newer, they are read again next
        // time.
        let mark = self.records.mark()?;
        if let Some(known) = self.known(key_id).filter(|known| known.mark == mark) {
            return Ok(Some(known));
        }
        let mut view = RecordTransaction::new(self.records.begin(false)?);
        let Some(key) = ApiKey::get(&mut view, key_id)? else { return Ok(None) };
        let hash = read_hash(&key.hash).ok_or(Error::Corrupt { what: ApiKey::WHAT })?;
        let key = Arc::new(key);
        let identity = Tenant::get(&mut view, &key.tenant)?.map(|tenant| {
            let account = tenant.account_id.as_str().into();
            Arc::new(Identity { account, tenant: Arc::new(tenant), key: Arc::clone(&key) })
        });
        let found = Arc::new(KeyRecords { mark, key, hash, identity });
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
