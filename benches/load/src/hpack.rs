//! As much of HPACK (RFC 7541) as one kind of request needs.

use std::io;

/// Static fields `:method: POST` and `:scheme: https`.
const POST_HTTPS: [u8; 2] = [0x83, 0x87];
const AUTHORITY: u8 = 1;
const PATH: u8 = 4;
const CONTENT_TYPE: u8 = 31;
const FIRST_DYNAMIC: u8 = 62;
const INCREMENTAL: u8 = 0x40;
const INDEXED: u8 = 0x80;

/// Header blocks of a channel's requests.
pub(crate) struct Blocks {
    /// That of the first request, which has all fields in full.
    pub(crate) first: Vec<u8>,
    /// That of each later one: the peer has the fields in its table.
    pub(crate) later: Vec<u8>,
}

impl Blocks {
    /// Fields of a call of a method with a key.
    pub(crate) fn of_call(path: &str, authority: &str, key: &str) -> Self {
        let mut first = POST_HTTPS.to_vec();
        for (index, value) in
            [(PATH, path), (AUTHORITY, authority), (CONTENT_TYPE, "application/grpc")]
        {
            integer(&mut first, index.into(), INCREMENTAL, 6);
            text(&mut first, value);
        }
        let named = [("te", "trailers"), ("user-agent", "fleetcast-load"), ("x-api-key", key)];
        for (name, value) in named {
            first.push(INCREMENTAL);
            text(&mut first, name);
            text(&mut first, value);
        }
        let mut later = POST_HTTPS.to_vec();
        // The newest has the lowest index.
        later.extend((FIRST_DYNAMIC..FIRST_DYNAMIC + 6).rev().map(|index| INDEXED | index));
        Self { first, later }
    }
}

/// The status of gRPC in the fields of a block, which were written without a table.
///
/// # Errors
///
/// A block that is none.
pub(crate) fn grpc_status(mut block: &[u8]) -> io::Result<Option<u16>> {
    let mut found = None;
    while let Some(&first) = block.first() {
        if first & INDEXED != 0 {
            take_integer(&mut block, 7)?;
        } else if first & 0x60 == 0x20 {
            take_integer(&mut block, 5)?; // the size of the table
        } else {
            let bits = if first & INCREMENTAL != 0 { 6 } else { 4 };
            let index = take_integer(&mut block, bits)?;
            let name = if index == 0 { take_text(&mut block)? } else { &[] };
            let value = take_text(&mut block)?;
            if name == b"grpc-status" {
                found = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            }
        }
    }
    Ok(found)
}

fn integer(to: &mut Vec<u8>, value: usize, flags: u8, bits: u32) {
    let limit = (1 << bits) - 1;
    if value < limit {
        to.push(flags | u8::try_from(value).expect("below the limit"));
        return;
    }
    to.push(flags | u8::try_from(limit).expect("of so many bits"));
    let mut rest = value - limit;
    while rest >= 0x80 {
        to.push(u8::try_from(rest & 0x7F).expect("seven bits") | 0x80);
        rest >>= 7;
    }
    to.push(u8::try_from(rest).expect("seven bits"));
}

fn text(to: &mut Vec<u8>, value: &str) {
    integer(to, value.len(), 0, 7);
    to.extend_from_slice(value.as_bytes());
}

fn take_integer(block: &mut &[u8], bits: u32) -> io::Result<usize> {
    let mask = (1_usize << bits) - 1;
    let mut value = usize::from(take_byte(block)?) & mask;
    if value < mask {
        return Ok(value);
    }
    for shift in (0..28).step_by(7) {
        let byte = take_byte(block)?;
        value += usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Bytes of a text; one in the code of Huffman stays so.
fn take_text<'a>(block: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let length = take_integer(block, 7)?;
    let (text, rest) = block.split_at_checked(length).ok_or(io::ErrorKind::InvalidData)?;
    *block = rest;
    Ok(text)
}

fn take_byte(block: &mut &[u8]) -> io::Result<u8> {
    let (&byte, rest) = block.split_first().ok_or(io::ErrorKind::InvalidData)?;
    *block = rest;
    Ok(byte)
}

#[cfg(test)]
mod tests {
    use super::{Blocks, grpc_status, integer, take_integer};

    /// RFC 7541, C.1.
    #[test]
    fn integers_are_those_of_the_standard() {
        for (value, bits, expected) in
            [(10, 5, &[0b01010][..]), (1_337, 5, &[0b11111, 0b1001_1010, 0b1010]), (42, 8, &[42])]
        {
            let mut written = Vec::new();
            integer(&mut written, value, 0, bits);
            assert_eq!(written, expected);
            assert_eq!(take_integer(&mut &written[..], bits).unwrap(), value);
        }
    }

    #[test]
    fn a_status_is_found_among_other_fields() {
        let mut block = vec![0x20]; // no table
        for (name, value) in [("grpc-message", "no"), ("grpc-status", "8")] {
            block.push(0);
            super::text(&mut block, name);
            super::text(&mut block, value);
        }
        assert_eq!(grpc_status(&block).unwrap(), Some(8));
        assert_eq!(grpc_status(&[0x88]).unwrap(), None);
        grpc_status(&block[..block.len() - 1]).unwrap_err();
    }

    #[test]
    fn later_calls_name_each_field_by_its_index() {
        let blocks = Blocks::of_call("/a", "b", "c");
        assert_eq!(blocks.later, [0x83, 0x87, 0xC3, 0xC2, 0xC1, 0xC0, 0xBF, 0xBE]);
    }
}
