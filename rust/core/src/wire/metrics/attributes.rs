//! Attributes of OpenTelemetry, which become tags.

use std::borrow::Cow;

use foldhash::quality::RandomState;
use hashbrown::HashSet;
use ring::digest::{SHA256, digest};

use crate::wire::rules::TagPairs;
use crate::wire::tokens::protobuf::{
    MessageReader, ProtobufResult, delimited, fixed64, text, varint,
};

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

/// Bytes of a resource from which on raw keys contain its SHA-256 instead. Copying fewer bytes
/// costs no more than the digest. Tags of a resource often have some hundred bytes, which each
/// point would repeat.
pub(super) const DIGESTED_BYTES_MIN: usize = 256;

/// Begins a raw key with the resource or its digest.
pub(super) fn begin_key(key: &mut Vec<u8>, resource: &[u8]) {
    key.clear();
    key.extend_from_slice(&(resource.len() as u64).to_le_bytes());
    if resource.len() < DIGESTED_BYTES_MIN {
        key.extend_from_slice(resource);
    } else {
        key.extend_from_slice(digest(&SHA256, resource).as_ref());
    }
}

/// Returns the encoded attributes of a resource that become tags, and their number.
pub(super) fn tags_of_resource(resource: &[u8]) -> ProtobufResult<(Vec<u8>, usize)> {
    let (mut kept, mut tags) = (Vec::new(), TagPairs::new());
    let mut reader = MessageReader::new(resource);
    while !reader.is_empty() {
        let (start, before) = (reader.rest, tags.len());
        match reader.tag()? {
            OF_RESOURCE => push(&mut tags, reader.delimited()?)?,
            other => reader.skip(other)?,
        }
        if tags.len() > before {
            let entry = start.get(..start.len() - reader.rest.len());
            kept.extend_from_slice(entry.unwrap_or_default());
        }
    }
    Ok((kept, tags.len()))
}

/// Returns the tags of a resource and of a point. If both have an attribute, the point's value
/// counts. Lists, maps and bytes are left out.
pub(super) fn read<'t>(resource: &'t [u8], own: &'t [u8]) -> ProtobufResult<TagPairs<'t>> {
    let mut tags = Vec::new();
    let mut reader = MessageReader::new(own);
    while !reader.is_empty() {
        reader.tag()?;
        push(&mut tags, reader.delimited()?)?;
    }
    let mut reader = MessageReader::new(resource);
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

fn push<'t>(tags: &mut TagPairs<'t>, entry: &'t [u8]) -> ProtobufResult<()> {
    let (mut name, mut value) = ("", None);
    let mut reader = MessageReader::new(entry);
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

/// Returns the value as a tag has it, or `None` if it is not a single value.
fn any_value(bytes: &[u8]) -> ProtobufResult<Option<Cow<'_, str>>> {
    let mut value = None;
    let mut reader = MessageReader::new(bytes);
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
