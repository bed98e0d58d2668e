//! Accounts of accepted keys.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{PoisonError, RwLock};

use super::Owner;

const KEYS_MAX: usize = 65_536;

/// Accounts of accepted keys, so that a request counts for its account before its key is checked.
///
/// A key that no check has accepted yet counts for the address of its client. Otherwise a client
/// could fill the share of another tenant with that tenant's key id, or get a turn for each
/// invented key. The accounts here decide about shares alone; every request is still authenticated.
/// Of a key's text only a hash is kept, made with a secret of this process. Safe to share between
/// threads.
#[derive(Debug, Default)]
pub struct KeyOwners {
    secret: RandomState,
    accounts: RwLock<HashMap<u64, Owner, foldhash::fast::RandomState>>,
}

impl KeyOwners {
    /// Returns the account of a key, or the owner of the address if the key is unknown.
    pub fn of(&self, key: Option<&[u8]>, address: &Owner) -> Owner {
        key.and_then(|key| self.account_of(key)).unwrap_or_else(|| address.clone())
    }

    /// Returns the account of a key if the key is known. An empty key has no account.
    pub fn account_of(&self, key: &[u8]) -> Option<Owner> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.get(&self.secret.hash_one(key)).cloned()
    }

    /// Notes that a key belongs to an account; returns true if that is news. An empty key is not
    /// noted, because a client without any key may send it.
    pub fn learn(&self, key: &[u8], account: &Owner) -> bool {
        if key.is_empty() {
            return false;
        }
        let hash = self.secret.hash_one(key);
        let known = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        if known.get(&hash) == Some(account) {
            return false;
        }
        drop(known);
        let mut accounts = self.accounts.write().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() >= KEYS_MAX {
            accounts.clear();
        }
        let before = accounts.insert(hash, account.clone());
        before.as_ref() != Some(account)
    }
}
