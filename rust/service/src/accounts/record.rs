//! The single encoding of the records of accounts, and access to the records.

use fleetcast_core::model::error::Error;
use fleetcast_core::storage::records::RecordTransaction;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Most bytes of a key in a store.
const KEY_BYTES_MAX: usize = 511;
/// Count of the records that one call asks for.
const PAGE: usize = 1_024;

/// A kind of records, encoded in JSON.
pub trait Record: Serialize + DeserializeOwned {
    /// The space that holds these records.
    const SPACE: &'static str;
    /// The name of this kind of record for operators.
    const WHAT: &'static str;

    /// Encodes the record.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the record cannot be encoded, which no kind of record allows.
    fn encode(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|error| Error::Invalid { message: error.to_string() })
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the bytes are not such a record.
    fn decode(bytes: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(bytes).map_err(|_| Error::Corrupt { what: Self::WHAT })
    }

    /// Returns the record of a key. Returns `None` too for a text that cannot be a key.
    ///
    /// # Errors
    /// Returns the errors of [`Self::decode`], and an error if the store cannot be used now.
    fn get(view: &mut RecordTransaction, key: &str) -> Result<Option<Self>, Error> {
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            return Ok(None);
        }
        view.get(Self::SPACE, key.as_bytes())?.map(|bytes| Self::decode(&bytes)).transpose()
    }

    /// Returns all records whose keys begin with `prefix`, with their keys, ascending.
    ///
    /// # Errors
    /// Returns the errors of [`Self::get`].
    fn all(view: &mut RecordTransaction, prefix: &str) -> Result<Vec<(String, Self)>, Error> {
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
