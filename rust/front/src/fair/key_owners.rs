//! Accounts of accepted keys.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{PoisonError, RwLock};

use super::{Owner, OwnerName};

const KEYS_MAX: usize = 65_536;

/// Accounts of accepted keys, so that what comes with one counts for its account early.
///
/// A key that nobody has accepted yet says nothing: what comes with it counts for its address. Else
/// anybody could fill another's share with its key id, or get a turn for each key they invent.
/// What is remembered decides about shares alone; each request is decided on anew. Of the text of a
/// key only a hash is kept, by a secret of this process. Safe to share between threads.
#[derive(Debug, Default)]
pub struct KeyOwners {
    secret: RandomState,
    accounts: RwLock<HashMap<u64, Owner, foldhash::fast::RandomState>>,
}

impl KeyOwners {
    /// The account of a key, or the address that it came from.
    pub fn of(&self, key: Option<&[u8]>, address: &Owner) -> Owner {
        key.and_then(|key| self.account_of(key)).unwrap_or_else(|| address.clone())
    }

    /// The account of a key, if that is known. An empty key is nobody's.
    pub fn account_of(&self, key: &[u8]) -> Option<Owner> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.get(&self.secret.hash_one(key)).cloned()
    }

    /// Notes that a key is the account's; returns true if that is news. An empty key stays nobody's:
    /// a client without any key may send it.
    pub fn learn(&self, key: &[u8], account: &(impl OwnerName + ?Sized)) -> bool {
        if key.is_empty() {
            return false;
        }
        let hash = self.secret.hash_one(key);
        let known = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        if known.get(&hash).is_some_and(|known| **known == *account.text()) {
            return false;
        }
        drop(known);
        let mut accounts = self.accounts.write().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() >= KEYS_MAX {
            accounts.clear();
        }
        let before = accounts.insert(hash, account.kept());
        before.is_none_or(|before| *before != *account.text())
    }
}
