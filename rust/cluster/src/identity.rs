//! Ids of 16 bytes as PostgreSQL's `uuid`.

use fleetcast_core::model::error::{Error, Result};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

type SqlError = Box<dyn std::error::Error + Sync + Send>;

/// An id of 16 bytes without structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(pub(crate) [u8; 16]);

impl Id {
    /// Returns the random id that follows the version and the kind in a sealed blob.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the blob is too short for an id.
    pub(crate) fn of_sealed(sealed: &[u8], what: &'static str) -> Result<Self> {
        let id = sealed.get(2..).and_then(|rest| rest.first_chunk());
        id.map(|id| Self(*id)).ok_or(Error::Corrupt { what })
    }

    /// Returns the id in a plane's name, a UUID with or without hyphens.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] for another name.
    pub(crate) fn of_plane(name: &str) -> Result<Self> {
        let digits: String = name.chars().filter(|character| *character != '-').collect();
        let id = u128::from_str_radix(&digits, 16).ok().map(|id| Self(id.to_be_bytes()));
        let id = id.filter(|id| name == id.hyphenated() || name == id.hex());
        id.ok_or_else(|| Error::Invalid { message: "a plane's name is a UUID".to_owned() })
    }

    pub(crate) fn hex(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    /// Returns the name of a plane with this id.
    pub(crate) fn hyphenated(self) -> String {
        let hex = self.hex();
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }
}

impl ToSql for Id {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, SqlError> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> std::result::Result<Self, SqlError> {
        Ok(Self(raw.try_into()?))
    }

    accepts!(UUID);
}
