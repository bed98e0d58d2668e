//! Tags as bytes, under which their series is remembered.

use super::input::InputTag;
use crate::model::fault::FaultCode;
use crate::wire::rules::TagPairs;

/// First byte of every raw key of a series in columns.
pub(in crate::wire) const RAW_KEY_FORMAT: u8 = b'a';

/// Fault of a tag, and the tag's key.
pub(in crate::wire) type TagFault = (FaultCode, String);

/// Puts `tags` into `raw`: length and bytes of each key and value. A missing text has a length that
/// no text can have.
pub(super) fn put_raw(tags: &[InputTag<'_>], raw: &mut Vec<u8>) {
    raw.clear();
    for InputTag { key, value } in tags {
        put(raw, *key);
        put(raw, value.as_deref());
    }
}

/// Puts a tag into `raw`.
pub(in crate::wire) fn put_tag(raw: &mut Vec<u8>, key: &str, value: &str) {
    put(raw, Some(key.as_bytes()));
    put(raw, Some(value.as_bytes()));
}

fn put(raw: &mut Vec<u8>, text: Option<&[u8]>) {
    let length = text.map_or(u32::MAX, |text| u32::try_from(text.len()).unwrap_or(u32::MAX - 1));
    raw.extend_from_slice(&length.to_le_bytes());
    raw.extend_from_slice(text.unwrap_or_default());
}

/// Reads the tags of `raw`, as [`put_raw`] wrote them.
pub(in crate::wire) fn tags_of(raw: &[u8]) -> Result<TagPairs<'_>, TagFault> {
    let mut tags = TagPairs::new();
    let mut rest = raw;
    while !rest.is_empty() {
        let key = take(&mut rest).ok_or_else(|| (FaultCode::StringType, String::new()))?;
        let value = take(&mut rest).ok_or_else(|| (FaultCode::StringType, key.to_owned()))?;
        if tags.iter().any(|(other, _)| *other == key) {
            return Err((FaultCode::DuplicateKey, key.to_owned()));
        }
        tags.push((key.into(), value.into()));
    }
    Ok(tags)
}

fn take<'r>(rest: &mut &'r [u8]) -> Option<&'r str> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let Some((text, after)) = after.split_at_checked(length) else {
        *rest = after;
        return None;
    };
    *rest = after;
    std::str::from_utf8(text).ok()
}
