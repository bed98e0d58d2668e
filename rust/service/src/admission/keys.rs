//! The header fields that may carry a key.

use std::borrow::Cow;

use base64::alphabet::STANDARD;
use base64::engine::Engine;
use base64::engine::general_purpose::{GeneralPurpose, PAD};

/// Base64 (RFC 4648, 4), padded. Clients need not clear the unused bits of the last character.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// The fields of a listener that may carry a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPlaces {
    /// `x-api-key`.
    Public,
    /// `x-api-key`, else `Authorization`: `Token KEY`, `Bearer KEY`, or `Basic` with the key as
    /// password.
    Adapters,
}

impl KeyPlaces {
    /// Returns the names of the fields. The first field that a request has decides.
    #[must_use]
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Public => &["X_API_KEY"],
            Self::Adapters => &["X_API_KEY", "AUTHORIZATION"],
        }
    }

    /// Returns the text of the key in a request, or `None` if there is no key.
    pub(super) fn find<'r>(self, field: impl Fn(&str) -> Option<&'r [u8]>) -> Option<Cow<'r, str>> {
        let (name, value) = self.fields().iter().find_map(|name| Some((name, field(name)?)))?;
        if *name == "X_API_KEY" {
            return Some(text(value));
        }
        let authorization = Some(value).filter(|value| !value.is_empty())?;
        let authorization = text(authorization);
        let (scheme, credentials) = authorization.split_once(' ').unwrap_or((&authorization, ""));
        Some(match &*scheme.to_ascii_lowercase() {
            "token" | "bearer" => credentials.trim().to_owned().into(),
            "basic" => password(credentials.trim()).unwrap_or_default().into(),
            _ => "".into(),
        })
    }
}

/// Returns a field as text. A field that is not ASCII is an invalid key, which differs from no key.
fn text(value: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(value)
}

/// Returns the password of basic credentials, or `None` if they are malformed.
fn password(credentials: &str) -> Option<String> {
    let plain = String::from_utf8(BASE64.decode(credentials).ok()?).ok()?;
    plain.split_once(':').map(|(_, password)| password.to_owned())
}
