//! The places in which a key may stand.

use std::borrow::Cow;

/// The fields of a listener that a key may stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPlaces {
    /// `x-api-key`.
    Public,
    /// `x-api-key`, else `Authorization`: `Token KEY`, `Bearer KEY`, or `Basic` with the key as
    /// password.
    Adapters,
}

impl KeyPlaces {
    /// The text of the key that came with a request, `None` if there is none.
    pub(super) fn find<'r>(self, field: impl Fn(&str) -> Option<&'r [u8]>) -> Option<Cow<'r, str>> {
        if let Some(key) = field("X_API_KEY") {
            return Some(text(key));
        }
        if self == Self::Public {
            return None;
        }
        let authorization = field("AUTHORIZATION").filter(|value| !value.is_empty())?;
        let authorization = text(authorization);
        let (scheme, credentials) = authorization.split_once(' ').unwrap_or((&authorization, ""));
        Some(match &*scheme.to_ascii_lowercase() {
            "token" | "bearer" => credentials.trim().to_owned().into(),
            "basic" => password(credentials.trim()).unwrap_or_default().into(),
            _ => "".into(),
        })
    }
}

/// A field as text: one that is no ASCII is no key, but is still told apart from none.
fn text(value: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(value)
}

/// The password of basic credentials; `None` if they are none.
fn password(credentials: &str) -> Option<String> {
    let plain = String::from_utf8(base64(credentials.as_bytes())?).ok()?;
    plain.split_once(':').map(|(_, password)| password.to_owned())
}

/// The bytes of a text in base64 (RFC 4648, 4), padded.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let (groups, rest) = text.as_chunks::<4>();
    let mut bytes = Vec::with_capacity(3 * groups.len());
    for (number, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|digit| **digit == b'=').count();
        if padding > 2 || padding > 0 && number + 1 < groups.len() {
            return None;
        }
        let mut bits = 0_u32;
        for digit in group.iter().take(4 - padding) {
            bits = bits << 6 | u32::from(digit_of(*digit)?);
        }
        bits <<= 6 * padding;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    rest.is_empty().then_some(bytes)
}

fn digit_of(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}
