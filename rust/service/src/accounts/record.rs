//! The one encoding of the records of accounts, and the way to them.

use fleetcast_core::model::error::Error;
use fleetcast_core::storage::records::View;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of the longest key that a store takes.
const KEY_BYTES_MAX: usize = 511;
/// Records that are asked for at once.
const PAGE: usize = 1_024;

/// A kind of records, encoded in JSON.
pub trait Record: Serialize + DeserializeOwned {
    /// The space of these records.
    const SPACE: &'static str;
    /// Such a record, in words of an operator.
    const WHAT: &'static str;

    /// The bytes of the record.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are none, which no kind of records allows.
    fn encode(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|error| Error::Invalid { message: error.to_string() })
    }

    /// The record of stored bytes.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for other bytes.
    fn decode(bytes: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(bytes).map_err(|_| Error::Corrupt { what: Self::WHAT })
    }

    /// The record of a key, `None` also for a text that cannot be a key.
    ///
    /// # Errors
    /// As [`Self::decode`], and those of a store that cannot be used now.
    fn get(view: &mut View, key: &str) -> Result<Option<Self>, Error> {
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            return Ok(None);
        }
        view.get(Self::SPACE, key.as_bytes())?.map(|bytes| Self::decode(&bytes)).transpose()
    }

    /// All records whose keys begin with `prefix`, with their keys, ascending.
    ///
    /// # Errors
    /// As [`Self::get`].
    fn all(view: &mut View, prefix: &str) -> Result<Vec<(String, Self)>, Error> {
        let (mut found, mut next) = (Vec::new(), Some(Vec::new()));
        while let Some(first) = next {
            let page = view.under(Self::SPACE, prefix.as_bytes(), &first, PAGE)?;
            for (key, bytes) in page.0 {
                let key =
                    String::from_utf8(key).map_err(|_| Error::Corrupt { what: Self::WHAT })?;
                found.push((key, Self::decode(&bytes)?));
            }
            next = page.1;
        }
        Ok(found)
    }
}
