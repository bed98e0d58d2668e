//! Attributes of OpenTelemetry, which become tags.

use std::borrow::Cow;

use foldhash::quality::RandomState;
use hashbrown::HashSet;

use crate::wire::rules::Tags;
use crate::wire::tokens::protobuf::{Reader, Scan, delimited, fixed64, text, varint};

/// `Resource.attributes`
const OF_RESOURCE: u32 = delimited(1);
/// Fields of `KeyValue`.
const KEY: u32 = delimited(1);
const VALUE: u32 = delimited(2);
/// Fields of `AnyValue`.
const STRING: u32 = delimited(1);
const BOOL: u32 = varint(2);
const INT: u32 = varint(3);
const DOUBLE: u32 = fixed64(4);
const ARRAY: u32 = delimited(5);
const LIST: u32 = delimited(6);
const BYTES: u32 = delimited(7);

/// Bytes before those of a resource in a raw key.
const LENGTH_BYTES: usize = 8;

/// Begins a raw key with the bytes of a resource.
pub(super) fn begin_key(key: &mut Vec<u8>, resource: &[u8]) {
    key.clear();
    key.extend_from_slice(&(resource.len() as u64).to_le_bytes());
    key.extend_from_slice(resource);
}

/// The tags of a raw key: those of the resource, and the entries of a point behind them, which go
/// before those of the same name. Lists, maps and bytes are left out.
pub(super) fn read(key: &[u8]) -> Scan<Tags<'_>> {
    let (length, rest) = key.split_at_checked(LENGTH_BYTES).unwrap_or_default();
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    let (resource, own) =
        rest.split_at_checked(usize::try_from(length).unwrap_or(usize::MAX)).unwrap_or_default();
    let mut tags = Vec::new();
    let mut reader = Reader::new(own);
    while !reader.is_empty() {
        reader.tag()?;
        push(&mut tags, reader.delimited()?)?;
    }
    let mut reader = Reader::new(resource);
    let mut of_resource = Vec::new();
    while !reader.is_empty() {
        match reader.tag()? {
            OF_RESOURCE => push(&mut of_resource, reader.delimited()?)?,
            other => reader.skip(other)?,
        }
    }
    let own: HashSet<_, RandomState> = tags.iter().map(|(name, _)| name.clone()).collect();
    tags.extend(of_resource.into_iter().filter(|(name, _)| !own.contains(name)));
    Ok(tags)
}

fn push<'t>(tags: &mut Tags<'t>, entry: &'t [u8]) -> Scan<()> {
    let (mut name, mut value) = ("", None);
    let mut reader = Reader::new(entry);
    while !reader.is_empty() {
        match reader.tag()? {
            KEY => name = text(reader.delimited()?)?,
            VALUE => value = any_value(reader.delimited()?)?,
            other => reader.skip(other)?,
        }
    }
    tags.extend(value.map(|value| (Cow::Borrowed(name), value)));
    Ok(())
}

/// The value as a tag has it; `None` where it is not one value.
fn any_value(bytes: &[u8]) -> Scan<Option<Cow<'_, str>>> {
    let mut value = None;
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        value = match reader.tag()? {
            STRING => Some(text(reader.delimited()?)?.into()),
            BOOL => Some(if reader.varint()? == 0 { "false" } else { "true" }.into()),
            INT => Some(reader.varint()?.cast_signed().to_string().into()),
            DOUBLE => Some(reader.double()?.to_string().into()),
            ARRAY | LIST | BYTES => {
                reader.delimited()?;
                None
            }
            other => {
                reader.skip(other)?;
                value
            }
        };
    }
    Ok(value)
}
